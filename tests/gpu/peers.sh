#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with two GPUs or more: the programs that use several, natively and through us, with each
# optimisation switched off in turn. What two GPUs are to each other (`nvidia-smi topo -m`) comes first.
#
#	tests/gpu/peers.sh [--dist DIR] [--log DIR] [NAME ...]
#
# Everything comes from DIR (.dist, made by `make dist`). Exit status 77 where there is one GPU only, 0 if
# every program passed both ways.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dist=$here/../../.dist
log=
names=(devices devices-order devices-work managed-devices host-memory-handles peers peer-access peer-copies peer-fault sharing-peers contexts pinned-memory virtual-memory async-memory)
own=()
while [ $# -gt 0 ]; do
	case $1 in
	--dist) dist=${2:?--dist wants a folder} && shift ;;
	--log) log=${2:?--log wants a folder} && shift ;;
	-*) echo "peers.sh: unknown option '$1'" >&2 && exit 2 ;;
	*) own+=("$1") ;;
	esac
	shift
done
[ ${#own[@]} = 0 ] || names=("${own[@]}")
log=${log:-$(mktemp -d)}
mkdir -p "$log" || exit 2

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')
if [ "$gpus" -lt 2 ]; then
	echo "peers: $gpus GPU: nothing to reach"
	exit 77
fi
nvidia-smi topo -m

failed=0
for perf in "" no_post no_cache no_learn no_batch no_slab no_push no_zerocopy no_module_cache; do
	name=${perf:-plain}
	if timeout 300 "$here/programs.sh" --dist "$dist" --log "$log/$name" ${perf:+--perf "$perf"} \
		"${names[@]}" >"$log/$name.table" 2>&1; then
		echo "$name: passed"
	else
		echo "$name: FAILED"
		cat "$log/$name.table"
		failed=1
	fi
done
exit $failed
