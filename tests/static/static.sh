#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs with the CUDA runtime linked in statically and stripped work where the runtime is one
# that is known. Others fail, once told on stderr which program it is and what to do; `vcuda
# doctor` says beforehand that it may be so.

set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
vcuda=$build/bin/vcuda
advice='rebuild with -cudart shared'
passed=0
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

result() { # NAME STATUS; what was printed is in $scratch/out
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		echo "pass  $1"
	else
		failed=$((failed + 1))
		echo "fail  $1"
		sed 's/^/    /' "$scratch/out"
	fi
}

run() {
	timeout -k 5 60 "$@" >"$scratch/out" 2>&1 </dev/null
}

for abi in 12 13; do
	# nvcc's device code says its release too, clang's does not.
	version=$abi
	[ $abi = 12 ] || version=13.0
	run "$vcuda" run --software -- "$build/static/stripped/$abi/vector-add"
	[ $? -eq 0 ] && ! grep -q "$advice" "$scratch/out"
	result "CUDA $abi, stripped: works, and nothing is said of it" $?

	run "$vcuda" run --software -- "$build/static/unknown/$abi/vector-add"
	status=$?
	lines=$(grep -c "$advice" "$scratch/out")
	echo "(exit status $status)" >>"$scratch/out"
	[ $status -ne 0 ] && [ $status -lt 124 ]
	result "CUDA $abi, unknown: fails, and ends by itself" $?
	[ "$lines" -eq 1 ] && grep "$advice" "$scratch/out" | grep -q "stripped" &&
		grep "$advice" "$scratch/out" | grep -q "of CUDA $version,"
	result "CUDA $abi, unknown: one line names the program and its CUDA, and says what to do" $?

	run "$vcuda" doctor "$build/static/stripped/$abi/vector-add"
	grep -q "$advice" "$scratch/out"
	result "CUDA $abi, stripped: vcuda doctor says what to do" $?
	run "$vcuda" doctor "$build/static/plain/$abi/vector-add"
	! grep -q "$advice" "$scratch/out"
	result "CUDA $abi, with symbols: vcuda doctor has nothing to say against it" $?
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
