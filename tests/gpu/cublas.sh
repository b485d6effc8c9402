#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuBLAS: the programs of tests/cublas and tests/cublaslt natively, and
# through us on the same GPU (an agent and a sidecar over loopback, /dev/nvidia* not needed by the
# program); then what a small linear layer by cublasLt costs either way.
#
#	tests/gpu/cublas.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcublas from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  Natively, an ABI whose library is
# not there is skipped; remotely the agent serves it with the next major.  Exit status 0 if no row
# fails; 2 if there is no cuBLAS at all.

set -u
die() {
	echo "cublas.sh: $*" >&2
	exit 2
}

root=$(cd "$(dirname "$0")/../.." && pwd)
dist=$root/.dist
folders=()
driver=nvidia
while [ $# -gt 0 ]; do
	case $1 in
	--dist) dist=$(cd "${2-}" 2>/dev/null && pwd) || die "no folder '${2-}'" ;;
	--libraries) folders+=("${2:?--libraries wants a folder}") ;;
	--driver) driver=${2:?--driver wants nvidia or software} ;;
	*) die "unknown option '$1'" ;;
	esac
	shift 2
done
for needed in cublas cublaslt; do
	[ -d "$dist/$needed" ] || die "no $dist/$needed: \`make dist\` makes it"
done

# Folders with a libcublas, each named once.
while read -r file; do
	folders+=("$(dirname "$file")")
done < <({
	ldconfig -p 2>/dev/null | awk '/libcublas\.so\.1[23]/ {print $NF}'
	ls -d /usr/local/cuda*/lib64/libcublas.so.1[23] 2>/dev/null
	for site in $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null); do
		ls -d "$site"/nvidia/{cublas,cu13}/lib/libcublas.so.1[23] 2>/dev/null
	done
} | awk '!seen[$0]++')
path=$(IFS=:; echo "${folders[*]-}")
[ -n "$path" ] || [ "$driver" = software ] || die "no libcublas.so.12 or .13 on this machine"

scratch=$(mktemp -d)
agent= sidecar=
finish() {
	for pid in $sidecar $agent; do
		kill "$pid" 2>/dev/null
		timeout 10 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

await() { # FILE LOG: until it is there, at most 60 s
	for _ in $(seq 600); do
		[ -e "$1" ] && [ ! -f "$1" -o -s "$1" ] && return
		sleep 0.1
	done
	tail -n 20 "$2" >&2
	die "it did not get ready"
}

LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$dist/bin/gpu-agent" \
	--driver "$driver" --address 127.0.0.1 --ports 0,0,0 \
	--ready-file "$scratch/ready.json" >"$scratch/agent.log" 2>&1 &
agent=$!
await "$scratch/ready.json" "$scratch/agent.log"
port=$(sed -n 's/.*"recv" *: *\([0-9]*\).*/\1/p' "$scratch/ready.json")
"$dist/bin/vcuda-client" run --agent "127.0.0.1:$port" --socket "$scratch/vcuda.sock" \
	>"$scratch/sidecar.log" 2>&1 &
sidecar=$!
await "$scratch/vcuda.sock" "$scratch/sidecar.log"
preload=$("$dist/bin/vcuda" preload) || die "no preload list"

passed=0 failed=0 skipped=0
row() { # NAME COMMAND...
	local name=$1 status
	shift
	timeout 120 "$@" >"$scratch/out" 2>&1
	status=$?
	case $status in
	0) passed=$((passed + 1)) && echo "pass  $name: $(tail -n 3 "$scratch/out" | tr '\n' ' ')" ;;
	*) failed=$((failed + 1)) && echo "fail  $name: status $status: $(tail -n 3 "$scratch/out")" ;;
	esac
}
declare -A native
for abi in 12 13; do
	native[$abi]=
	for folder in "${folders[@]-}"; do
		if [ -e "$folder/libcublas.so.$abi" ] && [ -e "$folder/libcublasLt.so.$abi" ]; then
			native[$abi]=$folder
		fi
	done
	for program in cublas/products cublas/others cublas/grouped cublaslt/matmul cublaslt/algorithms \
		cublaslt/descriptors; do
		binary=$dist/${program%/*}/$abi/${program#*/}
		if [ -n "${native[$abi]}" ] && [ "$driver" = nvidia ]; then
			row "native $abi $program" env LD_LIBRARY_PATH="${native[$abi]}:$dist/native" \
				"$binary"
		else
			skipped=$((skipped + 1))
			echo "skip  native $abi $program: no libcublas.so.$abi and libcublasLt.so.$abi here"
		fi
		row "remote $abi $program" env VCUDA_SOCKET="$scratch/vcuda.sock" \
			LD_PRELOAD="$preload" "$binary"
	done
done

# Descriptors made, heuristic asked, product run, 5000 times.
for abi in 12 13; do
	if [ -n "${native[$abi]}" ] && [ "$driver" = nvidia ]; then
		row "native $abi linear layer" env LD_LIBRARY_PATH="${native[$abi]}:$dist/native" \
			"$dist/cublaslt/$abi/steady" linear 5000
	fi
	row "remote $abi linear layer" env VCUDA_SOCKET="$scratch/vcuda.sock" \
		LD_PRELOAD="$preload" "$dist/cublaslt/$abi/steady" linear 5000
done
[ $failed -eq 0 ] || grep -h 'library\.\|level=error' "$scratch/agent.log" | tail -n 5
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
