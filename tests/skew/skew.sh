#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two releases work together: the one before (tests/skew/previous, built from the repository's history) and this one.
# Its programs run through its shim and sidecar with this agent, and through ours with its agent, on the software GPU:
# today's ask for what it did not know yet.
#
#	tests/skew/skew.sh BUILD CACHE PROGRAM...
set -uo pipefail
given=${1:?usage: skew.sh BUILD CACHE PROGRAM...}
build=$(realpath "$given") || exit 2
cache=$(realpath "${2:?usage: skew.sh BUILD CACHE PROGRAM...}") || exit 2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
commit=$(cut -d' ' -f1 "$root/tests/skew/previous")
before=$cache/skew/$commit
if [ ! -e "$before/.complete" ]; then
	rm -rf "$before"
	mkdir -p "$before"
	git -C "$root" archive "$commit" | tar -C "$before" -x || exit 1
	# With the packages of today: installing those of its day would take away what others build with.
	make --no-print-directory -C "$before" -j"$(nproc)" CACHE="$cache" -o "$cache/.complete" all >"$before/log" 2>&1 ||
		{ tail -n 20 "$before/log" >&2; exit 1; }
	touch "$before/.complete"
fi
programs=("${@/#$given/$before/build}")
make --no-print-directory -C "$before" CACHE="$cache" -o "$cache/.complete" "${programs[@]#"$before/"}" >"$before/log" 2>&1 ||
	{ tail -n 20 "$before/log" >&2; exit 1; }
scratch=$(mktemp -d)
agent=
trap '[ -z "$agent" ] || kill "$agent" 2>/dev/null; rm -rf "$scratch"' EXIT
passed=0 failed=0

through() { # CLIENT'S-BUILD AGENT'S-BUILD WHAT PROGRAM...
	local client=$1 port program
	rm -f "$scratch/ready.json"
	"$2/bin/gpu-agent" --driver software --address 127.0.0.1 --ports 0,0,0 --insecure --drain 0 \
		--ready-file "$scratch/ready.json" >"$scratch/agent.log" 2>&1 &
	agent=$!
	for _ in $(seq 300); do [ -s "$scratch/ready.json" ] && break; sleep 0.1; done
	port=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["ports"]["recv"])' "$scratch/ready.json") || return
	for program in "${@:4}"; do
		if timeout 120 "$client/bin/vcuda" run --agent "127.0.0.1:$port" -- "$program" >"$scratch/said" 2>&1; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAIL $3: $(basename "$program"): $(tail -n 3 "$scratch/said")"
		fi
	done
	kill "$agent"
	wait "$agent"
	agent=
}

through "$before/build" "$build" "the client of ${commit:0:12} and this agent" "${programs[@]}"
through "$build" "$before/build" "this client and the agent of ${commit:0:12}" "${programs[@]}"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -eq $((2 * $#)) ]
