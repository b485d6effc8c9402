#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: what each call answers after a fault, and what calls and frameworks answer
# that once got something else here (JAX, CuPy, PyTorch, where the machine's Python has them),
# natively and through us on the same GPU, as one table: row, native, remote, the same or not.
#
#	tests/gpu/rows.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything of ours comes from DIR (.dist, made by `make dist`), the Python from $PYTHON or python3.
# With `--driver software` there is no native column: the test of this script itself. Exit status 0 if
# no row differs.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/programs" ] || die "no $dist/programs: \`make dist\` makes it"
library_find 'libcublas.so.1[23]'
library_start
python=${PYTHON:-python3}

# Both arms are on one GPU at a time: JAX would take three quarters of it in each.
export XLA_PYTHON_CLIENT_PREALLOCATE=false

# ARM COMMAND…: what it says, as `KEY VALUE` lines.  A command has 90 s, the frameworks' first import
# from a cold disk among them; how long it took goes to stderr.
rows_of() {
	local arm=$1 prefix=(env "LD_LIBRARY_PATH=$path:$dist/native${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
	local begun=$SECONDS status
	shift
	[ "$arm" = native ] || prefix=(env "VCUDA_SOCKET=$scratch/vcuda.sock" "LD_PRELOAD=$preload")
	"${prefix[@]}" timeout 90 "$@" 2>>"$scratch/$arm.err"
	status=$?
	[ $status -ne 124 ] || echo "$(basename "${@: -1}") ended timed-out"
	[ $((SECONDS - begun)) -lt 20 ] || echo "$arm ${*: -2}: $((SECONDS - begun)) s" >&2
	return $status
}

# Each line has two words and a value; a row that comes again gets a number.
keyed() {
	awk 'NF == 3 { key = $1 "/" $2; n = ++seen[key]; print key (n > 1 ? "#" n : ""), $3 }'
}

# All rows of an arm.
rows_all() {
	local arm=$1
	for abi in 12 13; do
		rows_of $arm "$dist/programs/$abi/after-fault" | sed "s/^/$abi-/"
		for program in graph-copies sharing machine-code module copies-3d; do
			rows_of $arm "$dist/programs/$abi/$program" >/dev/null
			echo "$abi-program $program status-$?"
		done
	done
	for case in calls torch jax cupy; do
		rows_of $arm "$python" "$library_root/tests/gpu/rows.py" $case
	done
}

# Side by side: most of the time is the frameworks' start, and no row is a time.
arms="native remote"
[ "$driver" = nvidia ] || arms=remote
pids=()
for arm in $arms; do
	rows_all $arm | keyed >"$scratch/$arm" &
	pids+=($!)
done
wait "${pids[@]}"
[ "$driver" = nvidia ] || sed 's/ .*/ -/' "$scratch/remote" >"$scratch/native"

awk '
	FNR == NR { native[$1] = $2; order[++n] = $1; next }
	{ remote[$1] = $2; if (!($1 in native)) { native[$1] = "absent"; order[++n] = $1 } }
	END {
		printf "%-62s %-22s %-22s %s\n", "row", "native", "remote", "same"
		for (i = 1; i <= n; i++) {
			row = order[i]
			got = row in remote ? remote[row] : "absent"
			# A library that this machine lacks, and the agent serves.
			lacks = native[row] == "absent" && row ~ /^cublas\/.*-libcublas/
			same = native[row] == "-" || lacks ? "-" : native[row] == got ? "yes" : "NO"
			differ += same == "NO"
			printf "%-62s %-22s %-22s %s\n", row, native[row], got, same
		}
		printf "%d rows, %d differ\n", n, differ
		exit differ > 0
	}' "$scratch/native" "$scratch/remote"
status=$?
[ $status -eq 0 ] || tail -n 40 "$scratch"/*.err >&2
exit $status
