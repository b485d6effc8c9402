# SPDX-License-Identifier: Apache-2.0
# What the GPU tests of NVIDIA's libraries share, to be sourced: programs of .dist run natively, and
# through us on the same GPU (an agent and a sidecar over loopback, /dev/nvidia* not needed by the
# program).  In order: library_options, library_find, library_start, library_row…, library_end.

library_test=$(basename "$0")
library_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dist=$library_root/.dist
driver=nvidia
folders=()
agent_options=()
passed=0 failed=0 skipped=0
library_agent='' library_sidecar=''

die() {
	echo "$library_test: $*" >&2
	exit 2
}

# [--dist DIR] [--libraries DIR]… [--driver nvidia|software]
library_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--dist) dist=$(cd "${2-}" 2>/dev/null && pwd) || die "no folder '${2-}'" ;;
		--libraries) folders+=("${2:?--libraries wants a folder}") ;;
		--driver) driver=${2:?--driver wants nvidia or software} ;;
		*) die "unknown option '$1'" ;;
		esac
		shift 2
	done
}

# PATTERN…: folders with such libraries, each named once: where the loader finds them,
# /usr/local/cuda, Python's packages.  Shell patterns, "libcublas.so.1[23]"; one of the first must be
# there.
library_find() {
	local pattern file site
	while read -r file; do
		folders+=("$(dirname "$file")")
	done < <(for pattern; do
		ldconfig -p 2>/dev/null | awk '{print $NF}' | while read -r file; do
			case ${file##*/} in $pattern) echo "$file" ;; esac
		done
		for file in /usr/local/cuda*/lib64/$pattern; do
			[ -e "$file" ] && echo "$file"
		done
		for site in $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null); do
			for file in "$site"/nvidia/*/lib/$pattern; do
				[ -e "$file" ] && echo "$file"
			done
		done
	done | awk '{folder = $0; sub("/[^/]*$", "", folder)} !seen[folder]++')
	path=$(IFS=:; echo "${folders[*]-}")
	for file in "${folders[@]-}"; do
		for file in "$file"/$1; do
			[ -e "$file" ] && return
		done
	done
	[ "$driver" = software ] || die "no $1 on this machine"
}

# NAME: the folder that has that library; nothing: none does.
library_native() {
	local folder
	for folder in "${folders[@]-}"; do
		[ -e "$folder/$1" ] && echo "$folder" && return
	done
}

library_finish() {
	local pid
	for pid in $library_sidecar $library_agent; do
		kill "$pid" 2>/dev/null
		timeout 10 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$scratch"
}

library_await() { # FILE LOG: until it is there, at most 60 s
	for _ in $(seq 600); do
		[ -e "$1" ] && [ ! -f "$1" -o -s "$1" ] && return
		sleep 0.1
	done
	tail -n 20 "$2" >&2
	die "it did not get ready"
}

# Starts agent (with agent_options) and sidecar; a row's command that begins with `remote` runs through them.
library_start() {
	local port
	scratch=$(mktemp -d)
	trap library_finish EXIT
	trap 'exit 130' INT TERM
	LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$dist/bin/gpu-agent" \
		--driver "$driver" --insecure --address 127.0.0.1 --ports 0,0,0 \
		"${agent_options[@]}" --ready-file "$scratch/ready.json" >"$scratch/agent.log" 2>&1 &
	library_agent=$!
	library_await "$scratch/ready.json" "$scratch/agent.log"
	port=$(sed -n 's/.*"recv" *: *\([0-9]*\).*/\1/p' "$scratch/ready.json")
	"$dist/bin/vcuda-client" run --agent "127.0.0.1:$port" --socket "$scratch/vcuda.sock" \
		>"$scratch/sidecar.log" 2>&1 &
	library_sidecar=$!
	library_await "$scratch/vcuda.sock" "$scratch/sidecar.log"
	preload=$("$dist/bin/vcuda" preload) || die "no preload list"
}

# NAME COMMAND…: one line, pass or fail; natively skip where the library is too old to have a
# function.  What a program skips of itself, or measured, is told beside it.
library_row() {
	local name=$1 status told lacks='' way=${2%%/*}
	shift
	case $1 in
	remote) shift && set -- env VCUDA_SOCKET="$scratch/vcuda.sock" LD_PRELOAD="$preload" "$@" ;;
	esac
	timeout 120 "$@" >"$scratch/out" 2>&1
	status=$?
	told=$(grep -c '^skip' "$scratch/out")
	[ "$way" = remote ] || lacks=$(sed -n 's/.*symbol lookup error.*undefined symbol: \([^,]*\).*/\1/p' "$scratch/out")
	case $status${lacks:+-$lacks} in
	127-*) library_skip "$name" "this library has no $lacks" ;;
	0)
		passed=$((passed + 1))
		echo "pass  $name$([ "$told" = 0 ] || sed -n 's/^skip: /; not done: /p' "$scratch/out" |
			tr -d '\n')$(sed -n 's/^.*: \([0-9.]* us each\)$/: \1/p' "$scratch/out")"
		;;
	*)
		failed=$((failed + 1))
		echo "fail  $name: status $status: $(grep -v '^skip' "$scratch/out" | tail -n 3)"
		;;
	esac
}

library_skip() { # NAME REASON
	skipped=$((skipped + 1))
	echo "skip  $1: $2"
}

# The last line, and the exit status.
library_end() {
	[ $failed -eq 0 ] || grep -h 'library\.\|level=error' "$scratch/agent.log" | tail -n 5
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ]
}
