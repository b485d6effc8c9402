#!/usr/bin/env bash
# before.sh [COMMIT] [FOLDER]: builds COMMIT's dist into FOLDER, so that it can be compared with
# today's in one run: bench/versions.py --before FOLDER, bench/torch/versions.py --before FOLDER.
# COMMIT is 4f126bc if none is named: the last one before the source was laid out anew. FOLDER is
# .before. It has what a comparison on a GPU needs (binaries, libraries, bench/).
set -euo pipefail
commit=$(git rev-parse --verify "${1:-4f126bc}^{commit}")
folder=$(realpath -m "${2:-.before}")
work=$(mktemp -d "${TMPDIR:-/tmp}/vcuda-before.XXXXXX")
trap 'rm -rf "$work"' EXIT
# A clone and no worktree: nothing of it stays behind in this repository.
git clone -q --no-checkout "$(git rev-parse --show-toplevel)" "$work/src"
cd "$work/src"
git checkout -q "$commit"
make -j"${JOBS:-$(nproc)}" all bench-programs
# Its own dist.sh knows where its files are; the programs of tests are left out.
for target in stack/app stack/libprying-nvidia.so; do
	mkdir -p "build/$(dirname "$target")"
	[ -e "build/$target" ] || : >"build/$target"
done
tools/dist.sh build "$work/dist" "${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vcuda}"
# OpenBLAS, 38 MB, is only the software GPU's.
rm -rf "$folder" "$work/dist/stack" "$work/dist/programs" "$work"/dist/lib/deps/lib{openblas,gfortran,quadmath}*
mv "$work/dist" "$folder"
git log -1 --format="$folder: %h of %cs, %s"
