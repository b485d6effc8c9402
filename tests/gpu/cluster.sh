#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The real Kubernetes node of tests/cluster on a machine with a GPU, without registries and without
# Debian's packages.  Before: tests/cluster/pack.sh OUT, where there are both.
#
#	tests/gpu/cluster.sh take FOLDER…   # what pack.sh made, all at once or one after the other
#	tests/gpu/cluster.sh run [WORD…]    # tests/cluster/run.py with it: NVIDIA's runtime gives the GPU
#
# Everything lies in $VCUDA_NODE (/var/tmp/vcuda-node).

set -euo pipefail
place=${VCUDA_NODE:-/var/tmp/vcuda-node}
root=$(cd "$(dirname "$0")/../.." && pwd)
cluster=$place/vcuda/cluster

unpack() {
	local tools=$place/parts file name
	chmod +x "$tools/zstd"
	find "$tools" -name '*,*.zst' | while read -r file; do
		name=$(basename "$file" .zst)
		mkdir -p "$place/$(dirname "${name//,//}")"
		printf '%s\0%s\0' "$file" "$place/${name//,//}"
	done | LD_LIBRARY_PATH=$tools xargs -0 -n 2 -P "$(nproc)" \
		sh -c '"$0"/zstd -d -q -f "$1" -o "$2" && chmod +x "$2"' "$tools"
	mkdir -p "$place/build/images"
	LD_LIBRARY_PATH=$tools "$tools/zstd" -d -q --long=28 -c "$tools/images.tar.zst" |
		tar -C "$place/build/images" -x
	# What the machine has itself is better than what came with us.
	mkdir -p "$cluster/missing"
	for file in "$cluster"/lib/*; do
		name=$(basename "$file")
		ldconfig -p | grep -q "^[[:space:]]*$name " || ln -sfn "$file" "$cluster/missing/$name"
	done
	rm -rf "$tools"
}

case ${1:-} in
take)
	shift
	mkdir -p "$place/parts"
	for folder; do cp "$folder"/* "$place/parts/"; done
	;;
run)
	shift
	[ ! -d "$place/parts" ] || unpack
	[ -d "$cluster" ] || { echo "cluster.sh: nothing was taken: see the head of this file" >&2; exit 2; }
	export XDG_CACHE_HOME=$place BUILD=$place/build PATH=$PATH:/usr/sbin:/sbin
	export LD_LIBRARY_PATH=$cluster/missing${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	exec python3 -B "$root/tests/cluster/run.py" "$@"
	;;
*)
	sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
