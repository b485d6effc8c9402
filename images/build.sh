#!/usr/bin/env bash
# build.sh BUILD CACHE [IMAGE...]: the images, out of what make has built.  Each gets a folder
# BUILD/images/NAME with its rootfs, BUILD/images/NAME.spdx.json and BUILD/images/NAME.tar, an
# archive that `docker load`, `podman load` and `ctr images import` take.
#
#   TOOL=buildah|podman|docker   what builds (the first that is there)
#   BASE=REFERENCE               base of gpu-agent and demo.  local is made from Debian's packages: the
#                                default for root with mmdebstrap; docker.io/library/debian:bookworm-slim
#                                for others
#   REGISTRY=ghcr.io/vcuda TAG=VERSION
#
# The same sources give the same image, whatever built it: files in one order, owner 0, time 0
# (archive.py).
set -euo pipefail
build=$(realpath "${1:?usage: build.sh BUILD CACHE [IMAGE...]}")
cache=$(realpath "${2:?usage: build.sh BUILD CACHE [IMAGE...]}")
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
version=$(sed -n 's/#define VCUDA_VERSION "\(.*\)"/\1/p' "$root/common/version.h")
REGISTRY=${REGISTRY:-ghcr.io/vcuda} TAG=${TAG:-$version} BASE=${BASE:-}
out=$build/images
store=$cache/cluster/store
base_tar=$cache/cluster/base.tar
export SOURCE_DATE_EPOCH=0
umask 022

if [ -z "${TOOL:-}" ]; then
	for TOOL in buildah podman docker; do command -v $TOOL >/dev/null && break; done
fi
case $TOOL in
buildah|podman|docker) ;;
*) echo "build.sh: TOOL=$TOOL: it is buildah, podman or docker" >&2; exit 2 ;;
esac
if [ -z "$BASE" ]; then
	BASE=docker.io/library/debian:bookworm-slim
	if [ -s "$base_tar" ] || { [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; }; then BASE=local; fi
fi
command -v "$TOOL" >/dev/null || { echo "build.sh: no $TOOL here; buildah, podman or docker builds" >&2; exit 1; }
# A store of our own: it works in a container too, and clashes with nobody.
buildah() { command buildah --storage-driver vfs --root "$store" --runroot "$store.run" "$@"; }

fresh() { # NAME: its empty rootfs, with the licences of what is in it
	rm -rf "${out:?}/$1"
	mkdir -p "$out/$1/rootfs/usr/share/doc/vcuda"
	cp "$root/LICENSE" "$out/$1/rootfs/usr/share/doc/vcuda/"
}

client_files() { # FOLDER: what `vcuda-client install` copies
	mkdir -p "$1"
	while read -r library; do
		install -m 755 "$build/lib/$library" "$1/"
	done < <(cd "$build/lib" && ls libutilities.so libvcuda.so libvcuda-*.so lib*.so.[0-9]* |
		grep -v softgpu)
	# A link stays one.
	(cd "$build/lib" && find . -maxdepth 1 -type l -name 'lib*.so.[0-9]*') | while read -r link; do
		ln -sfn "$(readlink "$build/lib/$link")" "$1/$link"
	done
	install -D -m 644 -t "$1/driver" "$build"/lib/driver/*.so
	install -m 644 "$build/lib/preload.list" "$1/"
	install -m 755 "$out/bin/vcuda" "$out/bin/vcuda-client" "$1/"
	ln -sfn vcuda "$1/nvidia-smi"
	find "$1" -name '*.so*' -type f -exec strip --strip-unneeded {} +
}

client_licences() { # FOLDER
	cp "$cache/sources/libyaml/License" "$1/libyaml.LICENSE"
	cp "$cache/sources/cjson/LICENSE" "$1/cJSON.LICENSE"
	cp "$cache/sources/libzstd/LICENSE" "$1/zstd.LICENSE"
	cp "$cache/sources/xxhash/LICENSE" "$1/xxhash.LICENSE"
	cp "$cache/sources/openssl/LICENSE.txt" "$1/OpenSSL.LICENSE"
}

open_folders() { # ROOTFS: a new volume of docker's takes over the rights of the folder under it
	chmod 1777 "$1/target" "$1/target/lib/vcuda" "$1/run/tensor-fusion"
}

rootfs_client() {
	local r=$out/client/rootfs
	client_files "$r/opt/vcuda"
	client_licences "$r/usr/share/doc/vcuda"
	mkdir -p "$r/usr/bin" "$r/lib" "$r/target/lib/vcuda" "$r/run/tensor-fusion" "$r/etc"
	ln -s /opt/vcuda/vcuda-client "$r/usr/bin/vcuda-client"
	ln -s /opt/vcuda "$r/lib/vcuda"
	open_folders "$r"
	printf 'vcuda:x:65532:65532::/:/nonexistent\n' >"$r/etc/passwd"
	printf 'vcuda:x:65532:\n' >"$r/etc/group"
}

rootfs_client-slim() {
	local r=$out/client-slim/rootfs tool
	client_files "$r/lib/vcuda"
	client_licences "$r/usr/share/doc/vcuda"
	cp -L "$r/lib/vcuda/libcuda.so.1" "$r/lib/vcuda/official.libcuda.so.1"
	mkdir -p "$r/bin" "$r/usr/bin" "$r/target/lib/vcuda" "$r/tmp" "$r/run/tensor-fusion"
	chmod 1777 "$r/tmp"
	ln -s /lib/vcuda/vcuda-client "$r/usr/bin/vcuda-client"
	open_folders "$r"
	install -m 755 "$(busybox_static)" "$r/bin/busybox"
	for tool in sh cp mv ln ls cat mkdir rm echo env sleep true false test ps kill; do
		ln -s busybox "$r/bin/$tool"
	done
}

busybox_static() {
	[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends busybox-static >/dev/null
	echo /bin/busybox
}

rootfs_gpu-agent() { # [IMAGE]
	local r=$out/${1:-gpu-agent}/rootfs name
	local o=$r/opt/vcuda
	mkdir -p "$o/bin" "$o/lib/deps" "$r/usr/local/bin" "$r/etc/vcuda" "$r/var/cache/vcuda" \
		"$r/run/vcuda"
	install -m 755 "$build"/bin/{gpu-agent,vcuda,vcuda-client,vcuda-top} "$o/bin/"
	install -m 755 "$build"/lib/libvcuda-softgpu*.so "$o/lib/"
	closure "$o/lib/deps" "$o"/bin/* "$o"/lib/*.so
	strip --strip-unneeded "$o"/bin/* "$o"/lib/*.so
	for name in gpu-agent vcuda vcuda-client vcuda-top; do ln -s /opt/vcuda/bin/$name "$r/usr/local/bin/$name"; done
	printf '# docs/AGENT.md says what may stand here.\nlibrary_path: /opt/vcuda/cuda/lib\n' \
		>"$r/etc/vcuda/agent.yaml"
	cp "$cache/sources/xxhash/LICENSE" "$r/usr/share/doc/vcuda/xxhash.LICENSE"
	chmod 1777 "$r/var/cache/vcuda" "$r/run/vcuda"
}

# With CUDA's libraries, NVIDIA's own, for programs that call them: 3 GiB.  cuDNN compiles some of its
# kernels where they run: nvrtc, and for 9.28 nvJitLink and a runtime of CUDA's, are opened by it.
rootfs_gpu-agent-cuda12() {
	rootfs_gpu-agent gpu-agent-cuda12
	cuda_libraries gpu-agent-cuda12 nvidia-cublas-cu12==12.9.1.4 nvidia-cudnn-cu12==9.10.2.21 \
		nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-curand-cu12==10.3.10.19 \
		nvidia-cufft-cu12==11.4.1.4 nvidia-cusolver-cu12==11.7.5.82 \
		nvidia-cusparse-cu12==12.5.10.65 nvidia-nvjitlink-cu12==12.9.86 \
		nvidia-cusparselt-cu12==0.8.1 nvidia-cuda-cupti-cu12==12.9.79
}
rootfs_gpu-agent-cuda13() {
	rootfs_gpu-agent gpu-agent-cuda13
	cuda_libraries gpu-agent-cuda13 nvidia-cublas==13.1.0.3 nvidia-cudnn-cu13==9.28.0.42 \
		nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-cuda-runtime==13.0.96 \
		nvidia-curand==10.4.0.35 nvidia-cufft==12.0.0.61 nvidia-cusolver==12.0.4.66 \
		nvidia-cusparse==12.6.3.3 nvidia-cusparselt-cu13==0.8.1 nvidia-cuda-cupti==13.0.85
}

cuda_libraries() { # IMAGE PACKAGE...: into /opt/vcuda/cuda/lib, with their licences
	local image=$1 work=$out/$1/wheels package name version library rootfs=$out/$1/rootfs
	local folder=$rootfs/opt/vcuda/cuda/lib documents=$rootfs/usr/share/doc/vcuda
	shift
	mkdir -p "$folder"
	"$cache/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile \
		--target "$work" "$@"
	# cuda-packages, for sbom.py: name, version, file of its licence, libraries.
	for package in "$work"/*.dist-info; do
		name=$(sed -n '/^Name: /{s///p;q}' "$package/METADATA")
		version=$(sed -n '/^Version: /{s///p;q}' "$package/METADATA")
		cp "$(find "$package" -iname 'license*' -type f | sort | head -n 1)" \
			"$documents/$name-$version.LICENSE"
		printf '%s %s %s' "$name" "$version" "$name-$version.LICENSE"
		# Not NVBLAS, cuSOLVERMg and nvrtc's second form, which nothing here opens.
		sed 's/,.*//' "$package/RECORD" | grep -E '/lib[^/]*\.so[^/]*$' |
			grep -vE '/libnvblas|/libcusolverMg|\.alt\.so' | sort | while read -r library; do
			mv "$work/$library" "$folder/"
			printf ' %s' "${library##*/}"
		done
		echo
	done >"$documents/cuda-packages"
	rm -rf "$work"
}

closure() { # FOLDER FILE...: the libraries that they need, but for glibc's, which are the base's
	local folder=$1 library
	shift
	for library in $(ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u); do
		case ${library##*/} in
		libc.so.*|libm.so.*|libpthread.so.*|libdl.so.*|librt.so.*|ld-linux*|libresolv.so.*) ;;
		libcuda.so*|libnvidia*) echo "build.sh: $library must not be in an image" >&2; exit 1 ;;
		lib*vcuda*) ;;
		*) cp -L "$library" "$folder/" ;;
		esac
	done
	for library in "$folder"/*; do patchelf --set-rpath '$ORIGIN' "$library"; done
}

rootfs_demo() {
	local r=$out/demo/rootfs program
	mkdir -p "$r/usr/local/bin"
	for program in device-query matmul pinned-memory; do
		install -m 755 "$build/programs/13/$program" "$r/usr/local/bin/"
	done
	install -m 755 "$build/examples/vectorAdd" "$r/usr/local/bin/vectorAdd"
}

# Debian's, with what it needs; it keeps nothing.
rootfs_redis() {
	local r=$out/redis/rootfs
	mkdir -p "$r/opt/redis/bin" "$r/opt/redis/lib/deps" "$r/usr/local/bin" "$r/usr/share/doc/redis"
	install -m 755 "$(readlink -f "$(command -v redis-server)")" "$r/opt/redis/bin/redis-server"
	closure "$r/opt/redis/lib/deps" "$r/opt/redis/bin/redis-server"
	patchelf --set-rpath '$ORIGIN/../lib/deps' "$r/opt/redis/bin/redis-server"
	cp /usr/share/doc/redis-server/copyright "$r/usr/share/doc/redis/"
	ln -s /opt/redis/bin/redis-server "$r/usr/local/bin/redis-server"
}

base_image() { # a Debian of essential packages, of the same layer for every tool
	local tar=$base_tar
	if [ ! -s "$tar" ]; then
		command -v mmdebstrap >/dev/null || { echo "build.sh: BASE=local wants mmdebstrap and root:" \
			"install it, or set BASE=docker.io/library/debian:bookworm-slim" >&2; exit 1; }
		mkdir -p "$cache/cluster"
		mmdebstrap --quiet --format=tar --variant=essential --mode=root \
			--include=ncurses-base,procps,libstdc++6 --dpkgopt='path-exclude=/usr/share/man/*' \
			--dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$tar.part"
		mv "$tar.part" "$tar"
	fi
	BASE=localhost/debian-essential:$(sha256sum "$tar" | cut -c1-12)
	tar -xOf "$tar" ./var/lib/dpkg/status | awk '/^Package:/ {p = $2} /^Version:/ {print p, $2}' \
		>"$out/base.packages"
	have "$BASE" && return
	"$here/archive.py" base "$tar" "$BASE" "$out/base.tar"
	load "$out/base.tar" "$BASE"
	rm "$out/base.tar"
}

have() { # REFERENCE
	case $TOOL in
	buildah) buildah inspect --type image "$1" ;;
	*) "$TOOL" image inspect "$1" ;;
	esac >/dev/null 2>&1
}

load() { # ARCHIVE REFERENCE
	case $TOOL in
	buildah) buildah pull -q "docker-archive:$1:$2" ;;
	*) "$TOOL" load -q -i "$1" ;;
	esac >/dev/null
}

build() { # FILE FOLDER ARGUMENT...: an image without a name; prints its id
	local file=$1 folder=$2
	shift 2
	case $TOOL in
	buildah) buildah bud -q --isolation chroot --network host -f "$file" "$@" "$folder" ;;
	# Newer ones add a list of what built it, with the time.
	docker) BUILDX_NO_DEFAULT_ATTESTATIONS=1 docker build -q -f "$file" "$@" "$folder" ;;
	podman) podman build -q --layers=false -f "$file" "$@" "$folder" ;;
	esac
}

save() { # ID ARCHIVE
	case $TOOL in
	buildah) buildah push -q "$1" "docker-archive:$2" ;;
	*) "$TOOL" save -o "$2" "$1" ;;
	esac >/dev/null
}

image() { # NAME
	local name=$1 reference=$REGISTRY/$1:$TAG file=$1 packages="" arguments id digest
	case $name in # a variant is a suffix of the tag
	gpu-agent-*) file=gpu-agent reference=$REGISTRY/gpu-agent:$TAG-${name#gpu-agent-} ;;
	esac
	fresh "$name"
	"rootfs_$name"
	if [[ $file != client* && $BASE == localhost/debian-essential:* ]]; then
		packages=$out/base.packages
	fi
	"$here/sbom.py" "$name" "$version" "$out/$name/rootfs" "$cache/sources" $packages >"$out/$name.spdx.json"
	cp "$out/$name.spdx.json" "$out/$name/rootfs/usr/share/doc/vcuda/"
	if find "$out/$name/rootfs" -perm /6000 -type f | grep .; then
		echo "build.sh: $name: no file may be setuid" >&2; exit 1
	fi
	chmod -R go+rX "$out/$name/rootfs"
	find "$out/$name/rootfs" -exec touch -h -d @0 {} +
	arguments=(--build-arg "BASE=$BASE"
		--label org.opencontainers.image.title="vcuda $name"
		--label org.opencontainers.image.version="$version"
		--label org.opencontainers.image.licenses=Apache-2.0
		--label org.opencontainers.image.vendor=vcuda
		--label org.opencontainers.image.description="$(sed -n '1s/^# //p' "$here/$file.Containerfile")")
	rm -f "$out/$name.tar"
	# What builders tell of themselves is of interest where they fail.
	id=$(build "$here/$file.Containerfile" "$out/$name" "${arguments[@]}" 2>"$out/build.log") ||
		{ cat "$out/build.log" >&2; echo "build.sh: $TOOL did not build $name" >&2; exit 1; }
	save "$id" "$out/$name.tar.made"
	digest=$("$here/archive.py" normalize "$out/$name.tar.made" "$reference")
	mv "$out/$name.tar.made" "$out/$name.tar"
	# The name in the tool's store is that of the same image, and what came before it is gone.
	[ "$TOOL" = buildah ] || load "$out/$name.tar" "$reference"
	remove "$id"
	printf '%-32s %6.1f MiB  sha256:%.12s\n' "$reference" \
		"$(du -sb "$out/$name/rootfs" | awk '{print $1 / 1048576}')" "$digest"
}

remove() { # ID: and what is left of builds before
	case $TOOL in
	buildah) buildah rmi "$1" ;;
	*) "$TOOL" rmi "$1" ;;
	esac >/dev/null 2>&1 || true
}

[ $# -gt 0 ] || set -- client client-slim gpu-agent demo redis
mkdir -p "$out"
if [ "$BASE" = local ]; then base_image; fi
for name; do image "$name"; done
rm -f "$out/build.log"
