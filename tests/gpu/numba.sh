#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: Numba's own CUDA suite natively and through us on the same GPU, and a short
# table: how many tests of either arm end in which way, and each that ends differently.
#
#	tests/gpu/numba.sh --pack FILE.tar.xz [--dist DIR] [--driver nvidia|software] [--log DIR]
#	                   [--only WORD] [-jN]
#
# FILE is what tests/numba/pack.sh made; it is for CPython 3.12, which is $PYTHON or python3.12 or
# python3. Everything of ours comes from DIR (.dist, made by `make dist`). Nothing is downloaded and
# nothing of the machine's Python packages is used, but NVRTC. With `--driver software` there is no
# native arm: the test of this script itself. Exit status 0 if no test differs or fails unexpectedly.

set -u
. "$(dirname "$0")/library.sh"
pack=
words=()
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--pack) pack=${2:?--pack wants a file} && shift ;;
	--log | --only) words+=("$1" "${2:?$1 wants a word}") && shift ;;
	-j*) words+=("$1") ;;
	*) options+=("$1" "${2-}") && shift ;;
	esac
	shift
done
library_options "${options[@]}"
[ -f "$pack" ] || die "no pack '$pack': tests/numba/pack.sh makes it"
[ -x "$dist/bin/gpu-agent" ] || die "no $dist/bin/gpu-agent: \`make dist\` makes it"
library_find 'libnvrtc.so.1[23]'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for python in ${PYTHON:-python3.12 python3}; do
	"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null && break
	python=
done
[ -n "$python" ] || die "no CPython 3.12"
# An environment of its own: numba-cuda, where the machine has it, would stand in for numba.cuda.
"$python" -m venv --without-pip "$scratch/venv" || die "no virtual environment"
"$python" -W ignore -m tarfile -e "$pack" "$scratch" >/dev/null || die "cannot unpack $pack"
cp -r "$scratch"/site/. "$scratch/venv/lib/python3.12/site-packages/"
for library in "${folders[@]-}"; do
	[ -e "$scratch/cuda/lib64/libnvrtc.so" ] ||
		for file in "$library"/libnvrtc.so.1[23]; do
			[ -e "$file" ] && ln -s "$file" "$scratch/cuda/lib64/libnvrtc.so"
		done
	for include in "$library/../include" "$library/../../cuda_runtime/include"; do
		[ -e "$scratch/cuda/include" ] || [ ! -e "$include/cuda_fp16.h" ] ||
			ln -s "$(cd "$include" && pwd)" "$scratch/cuda/include"
	done
done
export CUDA_HOME=$scratch/cuda LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

native=--native
[ "$driver" = nvidia ] || native=
"$scratch/venv/bin/python" "$library_root/tests/numba/run.py" --dist "$dist" --driver "$driver" \
	--python "$scratch/venv/bin/python" $native -j8 "${words[@]}"
