#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same results with every optimisation switched off, one at a time and all together: runs the
# CUDA programs once for each switch.  Arguments are passed on to run.sh (names, --abi, -jN, …);
# without any, a few programs that lean on the optimisations stand for all.

set -u
here=$(dirname "$0")
# Every word that VCUDA_PERF takes.
switches=$(sed -n 's/.*{"\(no_[a-z_]*\)", PERF_.*/\1/p' "$here/../../shim/driver/device/init.c" | xargs)
[ "$(wc -w <<<"$switches")" -ge 12 ] || { echo "switches.sh: no words in shim/driver/device/init.c" >&2; exit 2; }
[ $# -gt 0 ] || set -- -j2 --abi 13 vector-add streams events copies symbols async-memory \
	host-functions threads pinned-memory error-last module managed managed-ranges managed-system

failed=0
one() { # LABEL OPTION...
	local label=$1 output
	shift
	if output=$("$here/run.sh" "$@"); then
		printf '%-18s %s\n' "$label" "$(tail -n 1 <<<"$output")"
	else
		failed=$((failed + 1))
		printf '%-18s %s\n' "$label" "$(tail -n 1 <<<"$output")"
		awk '/^[^ ]/ { show = / fail  / } show' <<<"$output"
	fi
}
for switch in $switches; do
	one "$switch" --perf "$switch" "$@"
done
one all --perf "${switches// /,}" "$@"
one strict --strict "$@"
[ $failed -eq 0 ]
