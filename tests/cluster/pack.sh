#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh OUT [MEGABYTES]: all that the real node is made of, for a machine without registries and
# without Debian: programs with their libraries, network plugins, helm, the images of `make images` and
# what the tests put into pods.  Packed into folders OUT/1, OUT/2 … of at most MEGABYTES (52) each;
# tests/gpu/cluster.sh takes them and runs the tests of the node on that machine.
set -euo pipefail
out=${1:?usage: pack.sh OUT [MEGABYTES]} limit=$((${2:-52} << 20))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$(dirname "$here")")
build=${BUILD:-$root/build}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vcuda
packed=$cache/cluster/packed
export PATH=$PATH:/usr/sbin:/sbin

"$here/build.sh" kubernetes coredns nvidia
"$root/tests/deploy/tools.sh" helm
mkdir -p "$packed"

pack() { # FILE PLACE: as PLACE.zst, made once
	local to=$packed/${2//\//,}.zst
	[ -e "$1" ] || { echo "pack.sh: $1 is not there (make images, make test-stack)" >&2; exit 1; }
	[ "$to" -nt "$1" ] || { nice zstd -q -8 -f "$1" -o "$to.part" && touch "$to.part" && mv "$to.part" "$to"; }
	echo "${to##*/}"
}

libraries() { # FILE...: what they load, but for glibc's
	ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
		grep -Ev '/(libc|libm|libpthread|libdl|librt|libresolv)\.so'
}

{
	for name in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl coredns \
		nvidia-ctk nvidia-cdi-hook nvidia-container-runtime; do
		pack "$cache/cluster/bin/$name" "vcuda/cluster/bin/$name"
	done
	pack "$cache/go-bin/helm" vcuda/go-bin/helm
	debian=(etcd containerd ctr containerd-shim-runc-v2 runc nft ip socat openssl busybox)
	for name in "${debian[@]}"; do pack "$(command -v $name)" "vcuda/cluster/bin/$name"; done
	for name in bridge host-local portmap loopback; do pack /usr/lib/cni/$name "vcuda/cluster/cni/$name"; done
	for library in $(libraries $(for name in "${debian[@]}"; do command -v $name; done)); do
		pack "$library" "vcuda/cluster/lib/${library##*/}"
	done
	pack "$build/stack/app" build/stack/app
	# In one: the agent and the demo stand on the same base.
	images=$packed/images.tar.zst
	archives=(client.tar client-slim.tar gpu-agent.tar demo.tar redis.tar)
	newest=$(cd "$build/images" && ls -t "${archives[@]}" | head -1)
	if [ ! "$images" -nt "$build/images/$newest" ]; then
		tar -C "$build/images" -c "${archives[@]}" |
			nice zstd -q -8 --long=28 -f -o "$images.part"
		mv "$images.part" "$images"
	fi
	echo images.tar.zst
	# What unpacks them.
	for file in "$(command -v zstd)" $(libraries "$(command -v zstd)"); do
		cp -L "$file" "$packed/" && echo "${file##*/}"
	done
} >"$packed/list"

rm -rf "${out:?}"
python3 - "$packed" "$out" "$limit" <<'P'
import os, shutil, sys
packed, out, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = open(os.path.join(packed, "list")).read().split()
size = {name: os.path.getsize(os.path.join(packed, name)) for name in names}
folders = []
for name in sorted(names, key=size.get, reverse=True):  # first fit
    assert size[name] <= limit, f"{name} has {size[name]} bytes"
    place = next((f for f in folders if f["n"] + size[name] <= limit), None)
    if not place:
        place = {"n": 0, "path": os.path.join(out, str(len(folders) + 1))}
        os.makedirs(place["path"])
        folders.append(place)
    place["n"] += size[name]
    shutil.copy(os.path.join(packed, name), place["path"])
for folder in folders:
    print(f"{folder['path']}: {folder['n'] / 1048576:.1f} MiB")
P
