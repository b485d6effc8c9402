#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with one GPU or more: two agents on the first GPU, each with a limit, and a program that uses
# both.  Copies between them beside raw TCP on as many streams, in turns, and beside the program natively;
# every byte is compared, and an event wait is timed.  With two GPUs also one agent that has both beside the program
# natively, in turns: copies from one to the other, and a kernel that reads the other's memory.  A table is last.
#
#	tests/gpu/agents.sh [--dist DIR] [--driver nvidia|software] [--mib SIZE]
#
# SIZE: of a copy, 256 MiB.  Exit status 0 if every byte is right and the bytes went from agent to agent; times
# gate nothing.
set -u
. "$(dirname "$0")/library.sh"
mib=256 rounds=5
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--mib) mib=${2:?--mib wants a number} && shift ;;
	*) options+=("$1") ;;
	esac
	shift
done
library_options "${options[@]+"${options[@]}"}"
[ -x "$dist/bench/agents" ] || die "no $dist/bench/agents: \`make dist\` makes it"

agents=()
scratch=$(mktemp -d)
finish() {
	local pid
	for pid in "${agents[@]+"${agents[@]}"}"; do
		kill "$pid" 2>/dev/null && wait "$pid" # it writes its cache's list before it ends
	done
	library_finish
}
trap finish EXIT
trap 'exit 130' INT TERM

start_agent() { # NAME GPUS
	CUDA_VISIBLE_DEVICES=$2 "$dist/bin/gpu-agent" --driver "$driver" --insecure --address 127.0.0.1 --ports 0,0,0 \
		--memory-limit $((2 * mib + 512))MiB --peers '127.0.0.1:*' --drain 0 --cache-dir "$scratch/$1.cache" \
		--ready-file "$scratch/$1.json" >"$scratch/$1.log" 2>&1 &
	agents+=($!)
	library_await "$scratch/$1.json" "$scratch/$1.log"
	sed -n 's/.*"recv" *: *\([0-9]*\).*/127.0.0.1:\1/p' "$scratch/$1.json"
}

start_sidecar() { # NAME ADDRESSES
	"$dist/bin/vcuda-client" run --agent "$2" --socket "$scratch/$1.sock" >"$scratch/$1.sidecar.log" 2>&1 &
	agents+=($!)
	library_await "$scratch/$1.sock" "$scratch/$1.sidecar.log"
}

start_agent a 0 >"$scratch/a.address"
start_agent b 0 >"$scratch/b.address"
start_sidecar apart "$(cat "$scratch/a.address")+$(cat "$scratch/b.address")"
preload=$("$dist/bin/vcuda" preload) || die "no preload list"

remote() { # SOCKET COMMAND…
	timeout 60 env VCUDA_SOCKET="$scratch/$1.sock" LD_PRELOAD="$preload" "${@:2}"
}

native() {
	LD_LIBRARY_PATH=$dist/native${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 60 "$dist/bench/agents" "$mib"
}

status=0
for ((i = 0; i < rounds; i++)); do
	remote apart "$dist/bench/agents" "$mib" >>"$scratch/remote" 2>>"$scratch/wrong" || status=1
	"$dist/bench/rawtcp" 0-1023 0-1023 "$mib" 1 >>"$scratch/raw" || status=1
done
remote apart env VCUDA_PERF=no_direct "$dist/bench/agents" "$mib" >"$scratch/relayed" 2>>"$scratch/wrong" || status=1
if [ "$driver" = nvidia ]; then
	CUDA_VISIBLE_DEVICES=0 native >"$scratch/native" 2>>"$scratch/wrong" || status=1
fi
if [ "$driver" = nvidia ] && [ "$(nvidia-smi -L | grep -c '^GPU ')" -gt 1 ]; then
	start_agent both 0,1 >"$scratch/both.address"
	start_sidecar both "$(cat "$scratch/both.address")"
	for ((i = 0; i < 7; i++)); do
		native >>"$scratch/native2" 2>>"$scratch/wrong" || status=1
		remote both "$dist/bench/agents" "$mib" >>"$scratch/both" 2>>"$scratch/wrong" || status=1
	done
fi
cat "$scratch/wrong" >&2
for name in a b; do
	[ "$(grep -c event=direct.open "$scratch/$name.log")" = "$rounds" ] && continue
	echo "agents: agent $name opened no connection for each run: $(grep direct "$scratch/$name.log" | tail -n 1)" >&2
	status=1
done
python3 - "$scratch" "$mib" <<'EOF' || status=1
import json, os, statistics, sys

def read(name):
    file = os.path.join(sys.argv[1], name)
    return [json.loads(line) for line in open(file)] if os.path.exists(file) else []

remote, raw = read("remote"), [one["raw_tcp_gbps"] for one in read("raw")]
both, native = read("both"), read("native2")
rows = [("two agents, direct", remote), ("through the program", read("relayed")), ("natively, on one device", read("native")),
        ("one agent with two devices", both), ("natively, on two devices", native)]
print(f"copies of {sys.argv[2]} MiB, medians of {len(remote)}    GB/s   4 KiB, us   event wait, us   wrong words   kernel, GB/s")
for name, got in rows:
    if got:
        middle = {key: statistics.median(one[key] for one in got) for key in got[0]}
        print(f"{name:<36} {middle['gbps']:8.3f}  {middle['small_us']:9.1f}  {middle['wait_us']:14.1f}   "
              f"{max(one['wrong'] for one in got):11}   {middle['kernel_gbps']:12.1f}")
print(f"{'raw TCP, one stream':<36} {statistics.median(raw):8.3f}")
ratios = [one["gbps"] / beside for one, beside in zip(remote, raw)]
print(f"direct / raw TCP: {statistics.median(ratios):.3f} (bar 0.8)")
for what in ("gbps", "kernel_gbps") if both else ():
    ratios = [one[what] / beside[what] if beside[what] else 0 for one, beside in zip(both, native)]
    print(f"one agent / natively, {what}: {statistics.median(ratios):.3f} (bar 0.95)")
sys.exit(any(one["devices"] != 2 for one in remote) or not remote)
EOF
exit $status
