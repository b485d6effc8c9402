#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: the workers' sandbox around NVIDIA's driver.  A driver with a tenant's code
# in it (tests/stack/prying_driver.c, in front of the machine's libcuda.so.1) tries what a worker must
# not do, while its programs go on; and which parts of the sandbox this kernel has, and what they
# cost a worker's start.  The programs' own tests (programs.sh, cublas.sh, cudnn.sh, torch.sh) run in
# the sandbox too: it is on unless switched off.
#
#	tests/gpu/sandbox.sh [--dist DIR] [--driver nvidia|software]
#
# Exit status 0 if nothing was reached that must not be.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/stack" ] || die "no $dist/stack: \`make dist\` makes it"
path=
prying=$dist/stack/libprying-nvidia.so
if [ "$driver" != nvidia ]; then # the test of this script itself
	prying=$library_root/build/stack/libprying-driver.so
	export LD_LIBRARY_PATH=$dist/lib
fi

BUILD=$dist PRYING_DRIVER=$prying "$library_root/tests/stack/run.py" sandbox.
status=$?

# From the start of the agent until a worker is ready, five times each, in turns.
ready_ms() { # on|off
	local began
	rm -f "$scratch/ready.json"
	began=$(date +%s%N)
	"$dist/bin/gpu-agent" --driver "$driver" --insecure --address 127.0.0.1 --ports 0,0,0 --warm 1 \
		--sandbox "$1" --ready-file "$scratch/ready.json" >"$scratch/agent.log" 2>&1 &
	library_agent=$!
	library_await "$scratch/ready.json" "$scratch/agent.log"
	echo $((($(date +%s%N) - began) / 1000000)) >>"$scratch/$1"
	grep -h 'event=worker.sandbox' "$scratch/agent.log" >"$scratch/said.$1"
	kill $library_agent && wait $library_agent
}
scratch=$(mktemp -d)
trap library_finish EXIT
for _ in 1 2 3 4 5; do
	ready_ms on
	ready_ms off
done 2>/dev/null
library_agent=
sed 's/.*text=/the sandbox here: /' "$scratch/said.on"
echo "ready after, median of 5: $(sort -n "$scratch/on" | sed -n 3p) ms, without it" \
	"$(sort -n "$scratch/off" | sed -n 3p) ms"
exit $status
