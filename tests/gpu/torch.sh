#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and PyTorch: every case of tests/torch through us on that GPU (agent and
# sidecar over loopback, /dev/nvidia* hidden from the programs), and then the results of every
# example natively and remotely.
#
#	tests/gpu/torch.sh [--dist DIR] [--log DIR] [--only CASE,...] [--no-examples]
#
# Everything of ours comes from DIR (.dist, made by `make dist`), PyTorch is that of python3.
# Exit status 0 if nothing fails.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
dist=$root/.dist
log=
examples=1
cases=()
while [ $# -gt 0 ]; do
	case $1 in
	--dist) dist=${2:?--dist wants a folder} && shift ;;
	--log) log=${2:?--log wants a folder} && shift ;;
	--only) cases=(--only "${2:?--only wants cases}") && shift ;;
	--no-examples) examples= ;;
	*) echo "torch.sh: unknown option '$1'" >&2 && exit 2 ;;
	esac
	shift
done
[ -x "$dist/bin/gpu-agent" ] || {
	echo "torch.sh: no $dist/bin/gpu-agent: \`make dist\` makes it" >&2
	exit 2
}
mask=--mask
[ "$(id -u)" = 0 ] || mask=
# The agent's own libraries: those that this PyTorch would use.
libraries=$(python3 -c '
import glob, site
print(":".join(p for s in site.getsitepackages() for p in sorted(glob.glob(f"{s}/nvidia/*/lib"))))')
status=0
python3 "$root/tests/torch/run.py" --dist "$dist" --driver nvidia $mask -j4 \
	--agent-libraries "$libraries" ${log:+--log "$log/cases"} "${cases[@]}" || status=1
if [ -n "$examples" ]; then
	timeout 300 python3 "$root/bench/torch/run.py" --check --dist "$dist" --budget 240 \
		--agent-libraries "$libraries" ${log:+--log "$log/examples"} || status=1
fi
exit $status
