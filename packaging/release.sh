#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh BUILD CACHE OUT: every product of the commit that is checked out, built twice, here and from a clone in
# another folder without a compiler cache, compared byte for byte; in OUT the products, an SBOM of each (SPDX 2.3),
# SHA256SUMS and what CHANGELOG.md says of the version. Container images are built where buildah, podman or docker is.
set -euo pipefail
build=$(realpath "${1:?usage: release.sh BUILD CACHE OUT}")
cache=$(realpath "${2:?usage: release.sh BUILD CACHE OUT}")
out=${3:?usage: release.sh BUILD CACHE OUT}
root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/#define VCUDA_VERSION "\(.*\)"/\1/p' "$root/common/version.h")
[ -z "$(git -C "$root" status --porcelain --untracked-files=no)" ] ||
	{ echo "release.sh: the sources differ from the commit: commit them first" >&2; exit 1; }
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
targets="deb wheel" images=
for tool in buildah podman docker; do
	if [ -z "$images" ] && timeout 20 $tool info >/dev/null 2>&1; then
		images=$tool
		targets+=" images"
	fi
done
[ -n "$images" ] || echo "release: no images: neither buildah, podman nor docker works here"

products() { # SOURCES BUILD TO
	local image
	make --no-print-directory -C "$1" -j"$(nproc)" BUILD="$2" CACHE="$cache" all examples >/dev/null
	# shellcheck disable=SC2086
	make --no-print-directory -C "$1" -j"$(nproc)" BUILD="$2" CACHE="$cache" $targets >/dev/null
	rm -rf "$3"
	mkdir -p "$3"
	cp "$1/$2"/deb/*.deb "$1/$2"/wheel/*.whl "$3/"
	"$1/packaging/archives.py" chart "$3" >/dev/null
	"$1/packaging/archives.py" binaries "$3"/*.whl "$3" >/dev/null
	[ -z "$images" ] || for image in "$1/$2"/images/*.tar; do
		cp "$image" "$3/image-$(basename "$image" .tar)-$version.tar"
		cp "${image%.tar}.spdx.json" "$3/image-$(basename "$image" .tar)-$version.tar.spdx.json"
	done
}

documents() { # FOLDER
	local product
	for product in "$1"/*; do # an image has its own already
		[ -e "$product.spdx.json" ] || [ "${product%.json}" != "$product" ] ||
			"$root/packaging/spdx.py" "$cache/glibc-2.17" "$product" >"$product.spdx.json"
	done
	# Of the version, or, before it has a section, of what is not released.
	awk -v wanted="$(grep -qF "## [$version]" "$root/CHANGELOG.md" && echo "[$version]" || echo '[Unreleased]')" \
		'/^## / { on = index($0, wanted) } on' "$root/CHANGELOG.md" >"$1/CHANGES.md"
	[ -s "$1/CHANGES.md" ] || { echo "release.sh: CHANGELOG.md says nothing of $version" >&2; exit 1; }
	(cd "$1" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS)
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/vcuda-second-build-of-a-release.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Apart from what was built for use here, which may be of other flags.
products "$root" "$(realpath --relative-to="$root" "$build")/for-release" "$out"
documents "$out"
git clone -q --no-hardlinks "$root" "$scratch/sources"
git -C "$scratch/sources" checkout -q "$(git -C "$root" rev-parse HEAD)"
CCACHE_DISABLE=1 products "$scratch/sources" build/for-release "$scratch/products"
documents "$scratch/products"
diff "$out/SHA256SUMS" "$scratch/products/SHA256SUMS" ||
	{ echo "release.sh: these differ between two builds of the same commit" >&2; exit 1; }
echo "release: $version of $(git -C "$root" rev-parse --short=12 HEAD), $(wc -l <"$out/SHA256SUMS") files in $out, the same twice"
