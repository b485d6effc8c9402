#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: every CUDA program of tests/programs natively, and through us on the
# same GPU (an agent on NVIDIA's driver and a sidecar, over loopback), side by side.
#
#	tests/gpu/programs.sh [--dist DIR] [--log DIR] [-jN] [--only native|remote]
#		[--perf VALUE] [--strict] [--unix|--local] [--memory only|without] [NAME ...]
#
# Everything comes from DIR (.dist, made by `make dist`).  A row passes if it passes both ways;
# it is skipped if the program skips itself natively.  Exit status 0 if no row fails.
# --memory: only the programs that take all of the GPU's memory, which want the GPU to themselves; or all
# but those. A program may take three minutes: natively each start of the driver takes seconds where
# several parts share the machine.
# --unix, --local: agent and sidecar talk over a Unix socket, or by memory that they share, not over loopback.

set -u
die() {
	echo "programs.sh: $*" >&2
	exit 2
}

root=$(cd "$(dirname "$0")/../.." && pwd)
dist=$root/.dist
log=
arms="native remote"
options=(-j4 --timeout 180)
remote_options=()
names=()
scheme=
limit=()
while [ $# -gt 0 ]; do
	case $1 in
	--dist) dist=$(cd "${2-}" 2>/dev/null && pwd) || die "no folder '${2-}'" && shift ;;
	--log) log=${2:?--log wants a folder} && shift ;;
	--only)
		case ${2-} in native | remote) arms=$2 ;; *) die "--only is native or remote" ;; esac
		shift ;;
	--perf) remote_options+=(--perf "${2:?--perf wants a value}") && shift ;;
	--strict) remote_options+=(--strict) ;;
	--unix | --local) scheme=${1#--} ;;
	--memory)
		options+=(--memory "${2:?--memory is only or without}")
		# A card of that size: what is left of the whole one changes when the agent makes the next
		# worker's context.
		[ "$2" != only ] || limit=(--vram-limit 64Gi)
		shift ;;
	-j*) options+=("$1") ;;
	-*) die "unknown option '$1'" ;;
	*) names+=("$1") ;;
	esac
	shift
done
[ -d "$dist/programs" ] || die "no $dist/programs: \`make dist\` makes it"

scratch=$(mktemp -d)
log=${log:-$scratch/log}
mkdir -p "$log" || exit 2
agent=
sidecar=
finish() {
	for pid in $sidecar $agent; do
		kill "$pid" 2>/dev/null
	done
	for pid in $sidecar $agent; do
		timeout 10 tail --pid="$pid" -f /dev/null || kill -9 "$pid" 2>/dev/null
	done
	rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Waits until COMMAND holds; dies with the log of the one awaited if it ended or took too long.
await() { # PID LOG SECONDS COMMAND...
	local pid=$1 text=$2 deadline=$((SECONDS + $3))
	shift 3
	until "$@"; do
		if ! kill -0 "$pid" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
			tail -n 20 "$text" >&2
			die "it did not get ready"
		fi
		sleep 0.05
	done
}

for arm in $arms; do
	if [ $arm = native ]; then
		# The runtimes that the programs name: the carried ones. What CUDA leaves open and
		# vcuda does one way is not asked of NVIDIA's driver.
		VCUDA_TEST_NATIVE=1 LD_LIBRARY_PATH=$dist/native${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
			"$root/tests/programs/run.sh" "${options[@]}" --programs "$dist/programs" \
			--log "$log/native" --results "$scratch/native" "${names[@]}" -- \
			>"$log/native.txt"
		continue
	fi
	"$dist/bin/gpu-agent" --driver nvidia --insecure \
		--address "${scheme:+$scheme://$scratch/agent.sock, }127.0.0.1" --ports 0,0,0 \
		--warm 4 --ready-file "$scratch/ready.json" >"$log/agent.log" 2>&1 &
	agent=$!
	await $agent "$log/agent.log" 60 test -s "$scratch/ready.json"
	port=$(sed -n 's/.*"recv" *: *\([0-9]*\).*/\1/p' "$scratch/ready.json")
	[ -n "$port" ] || die "no receive port in $(cat "$scratch/ready.json")"
	address=127.0.0.1:$port
	[ -z "$scheme" ] || address=$scheme://$scratch/agent.sock
	"$dist/bin/vcuda-client" run --agent "$address" --socket "$scratch/vcuda.sock" \
		"${limit[@]}" \
		>"$log/sidecar.log" 2>&1 &
	sidecar=$!
	await $sidecar "$log/sidecar.log" 30 test -S "$scratch/vcuda.sock"
	preload=$("$dist/bin/vcuda" preload)
	"$root/tests/programs/run.sh" "${options[@]}" "${remote_options[@]}" \
		--programs "$dist/programs" --log "$log/remote" --results "$scratch/remote" \
		"${names[@]}" -- env VCUDA_SOCKET="$scratch/vcuda.sock" LD_PRELOAD="$preload" \
		>"$log/remote.txt"
done

# What went wrong first, then the table.
for arm in $arms; do
	[ -e "$scratch/$arm" ] || die "no results: $(tail -n 3 "$log/$arm.txt")"
	awk -v arm="$arm" '/^[^ ]/ { show = / fail  / } show { print arm ": " $0 }' "$log/$arm.txt"
done
for arm in $arms; do
	sed "s/^/$arm /" "$scratch/$arm"
done | sort -k2,3 | awk -v arms="$arms" '
	{ row = $2 " " $3; verdict[$1, row] = $4; seconds[$1, row] = $5; rows[row] = 1 }
	END {
		n = split(arms, arm, " ")
		printf "%-26s", "program"
		for (i = 1; i <= n; i++)
			printf "%-8s%10s  ", arm[i], ""
		print ""
		for (row in rows) {
			line = sprintf("%-26s", row)
			total = "pass"
			for (i = 1; i <= n; i++) {
				got = verdict[arm[i], row]
				line = line sprintf("%-8s%8.2f s  ", got, seconds[arm[i], row])
				if (got != "pass" && total != "fail")
					total = got == "skip" ? "skip" : "fail"
			}
			if (n == 2 && verdict["remote", row] == "skip" && verdict["native", row] == "pass")
				total = "fail"
			count[total]++
			print line | "sort"
		}
		close("sort")
		printf "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"]
		exit count["fail"] > 0
	}'
