#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and NCCL: the programs of tests/nccl natively, and through us on the same GPU.
# With one GPU that is a communicator of one rank, and the refusal of two ranks on it.
#
#	tests/gpu/nccl.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libnccl from where the loader finds it,
# /usr/local/cuda, Python's packages, or --libraries. Exit status 0 if no row fails.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/nccl" ] || die "no $dist/nccl: \`make dist\` makes it"
library_find 'libnccl.so.2'
# NVLS off, natively too: multicast concerns all GPUs of a host, which others use.
agent_options=(--set nccl.allowed=true --set nccl.environment=NCCL_NVLS_ENABLE=0)
gpus=1
[ "$driver" != nvidia ] || gpus=$(find /proc/driver/nvidia/gpus -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
library_start
native=$(library_native libnccl.so.2)
# What a program needs that older libraries lack: 2.29 and 2.30 brought it. `missing` says what the agent lacks.
needs() {
	case $1 in
	grow) echo ncclCommGrow ;;
	windows) echo ncclPutSignal ;;
	suspend) echo ncclCommSuspend ;;
	params) echo ncclParamBind ;;
	esac
}
has() { [ -n "$native" ] && grep -qaw "$1" "$native/libnccl.so.2"; }

for program in "$dist"/nccl/13/*; do
	name=${program##*/}
	[ "$name" != steady ] || continue # what one call costs: it wants words
	if [ "$name" = errors ] && [ "$driver" = nvidia ]; then
		library_skip "$name" "NVIDIA's waits for ever where a rank or a count is wrong"
		continue
	fi
	if [ "$name" != one ] && [ "$name" != params ] && [ "$gpus" -lt 2 ]; then
		library_skip "$name" "needs two GPUs"
		continue
	fi
	words=()
	[ "$name $driver" != "processes nvidia" ] || words=(alive)
	wanted=$(needs "$name")
	if [ -n "$wanted" ] && [ "$driver" = nvidia ] && ! has "$wanted"; then
		library_skip "$name" "this libnccl has no $wanted"
		continue
	fi
	if [ "$name" = missing ]; then
		library_skip "native $name" "is about agents"
	elif [ -n "$native" ] && [ "$driver" = nvidia ]; then
		library_row "native $name" env LD_LIBRARY_PATH="$path" NCCL_NVLS_ENABLE=0 "$program" "${words[@]+"${words[@]}"}"
	else
		library_skip "native $name" "no libnccl.so.2 here"
	fi
	library_row "remote $name" remote "$program" "${words[@]+"${words[@]}"}"
done
library_end
