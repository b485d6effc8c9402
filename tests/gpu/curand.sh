#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuRAND: the programs of tests/curand natively, and through us on the
# same GPU; and whether each number and status of record is the same both ways.
#
#	tests/gpu/curand.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#	tests/gpu/curand.sh --record [--dist DIR] [--libraries DIR] >record.txt
#
# --record: what record prints natively on the device, for tests/curand/reduce.py.  Everything comes
# from DIR (.dist, made by `make dist`); NVIDIA's libcurand from where the loader finds it,
# /usr/local/cuda, Python's packages, or --libraries.  Exit status 0 if no row fails; 2 if there is
# no cuRAND at all.

set -u
. "$(dirname "$0")/library.sh"
record=
[ "${1-}" = --record ] && record=yes && shift
library_options "$@"
[ -d "$dist/curand" ] || die "no $dist/curand: \`make dist\` makes it"
library_find 'libcurand.so.10'
native=$(library_native libcurand.so.10)
if [ -n "$record" ]; then
	LD_LIBRARY_PATH=$native:$dist/native exec timeout 500 "$dist/curand/12/record" device
fi

same() { # ABI: record's lines, natively and remotely, but for the front's version
	local abi=$1
	for way in native remote; do
		set -- env LD_LIBRARY_PATH="$native:$dist/native"
		[ $way = remote ] && set -- env VCUDA_SOCKET="$scratch/vcuda.sock" LD_PRELOAD="$preload"
		timeout 300 "$@" "$dist/curand/$abi/record" device | grep -v '^version' \
			>"$scratch/record.$way" || return 1
	done
	cmp "$scratch/record.native" "$scratch/record.remote"
}

library_start
for abi in 12 13; do
	if [ -n "$native" ] && [ "$driver" = nvidia ]; then
		library_row "native curand/$abi/numbers" env \
			LD_LIBRARY_PATH="$native:$dist/native" "$dist/curand/$abi/numbers"
	else
		library_skip "native curand/$abi/numbers" "no libcurand.so.10 here"
	fi
	library_row "remote curand/$abi/numbers" remote "$dist/curand/$abi/numbers"
	if [ -z "$native" ] || [ "$driver" != nvidia ]; then
		library_skip "record $abi" "no libcurand.so.10 here"
	elif same $abi >"$scratch/out" 2>&1; then
		passed=$((passed + 1))
		echo "pass  record $abi: the same natively and remotely"
	else
		failed=$((failed + 1))
		echo "fail  record $abi: $(tail -n 1 "$scratch/out")"
	fi
done
for thing in bits reseed host; do
	[ -n "$native" ] && [ "$driver" = nvidia ] && library_row "native $thing, 2000 times" env \
		LD_LIBRARY_PATH="$native:$dist/native" "$dist/curand/13/steady" $thing 2000
	library_row "remote $thing, 2000 times" remote "$dist/curand/13/steady" $thing 2000
done
library_end
