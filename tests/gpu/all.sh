#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: several of this folder's tests in one go, for a machine that is lent by the minute.
#
#	tests/gpu/all.sh [--dist DIR] [--log DIR] [-jN] [--seconds S] [PART ...]
#
# A part is the name of a script beside this one, with its options after it in one word: programs
# "programs textures --only native" cufft operators …; without a part, those that compare with native and
# need nothing that is not in DIR (.dist, made by `make dist`). Parts that want the GPU's memory or time to
# themselves come first, one after the other: programs that take all memory, tenants, kill. Of the rest N are
# under way at once (4): none of them measures time. Each part's output goes to LOG/PART.txt; the table of
# their last lines comes last. What is not begun after S seconds (540) is not begun at all, and what runs
# then is ended. Exit status 0 if every part passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
dist=$here/../../.dist
log=
jobs=4
seconds=540
while [ $# -gt 0 ]; do
	case $1 in
	--dist) dist=${2:?--dist wants a folder} && shift ;;
	--log) log=${2:?--log wants a folder} && shift ;;
	--seconds) seconds=${2:?--seconds wants a number} && shift ;;
	-j*) jobs=${1#-j} ;;
	-*) echo "all.sh: unknown option '$1'" >&2 && exit 2 ;;
	*) break ;;
	esac
	shift
done
[ -d "$dist/programs" ] || {
	echo "all.sh: no $dist/programs: \`make dist\` makes it" >&2
	exit 2
}
log=${log:-$(mktemp -d)}
mkdir -p "$log" || exit 2
[ $# -gt 0 ] || set -- programs cublas cudnn cufft curand cusolver cusparse cusparselt nccl torch rows operators \
	frameworks tenants kill sandbox train_under_cuts records

alone=()
beside=()
for part; do
	case $part in
	*" --memory "*) [[ $part == *" --memory only"* ]] && alone+=("$part") || beside+=("$part") ;;
	programs | "programs "*) alone+=("$part --memory only") && beside+=("$part --memory without") ;;
	tenants | "tenants "* | kill | "kill "*) alone+=("$part") ;;
	*) beside+=("$part") ;;
	esac
done
set -- "${alone[@]}" "${beside[@]}"

# PART: its script with its options, for as long as there is time.
run_part() {
	local words name script begun=$SECONDS left
	read -ra words <<<"$1"
	name=${words[0]}
	for script in "$here/$name.sh" "$here/$name.py"; do
		[ -x "$script" ] && break
	done
	left=$((seconds - SECONDS))
	if [ ! -x "$script" ] || [ $left -lt 5 ]; then
		[ -x "$script" ] && echo "not begun" || echo "no script of this name"
		false
	else
		timeout -k 15 $left "$script" --dist "$dist" "${words[@]:1}"
	fi >"$log/$2.txt" 2>&1
	echo "$? $((SECONDS - begun))" >"$log/$2.end"
}

number=0
for part; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	number=$((number + 1))
	run_part "$part" "$number-${part%% *}" &
	[ $number -gt ${#alone[@]} ] || wait
done
wait

bad=0
number=0
for part; do
	number=$((number + 1))
	file=$log/$number-${part%% *}
	read -r status took <"$file.end"
	rm -f "$file.end"
	[ "$status" = 0 ] || bad=$((bad + 1))
	printf '%-4s %5s s  %-32.32s %s\n' "$([ "$status" = 0 ] && echo pass || echo "$status")" "$took" "$part" \
		"$(tail -n 1 "$file.txt" | cut -c 1-150)"
done
echo "$number parts, $bad not passed; logs: $log"
[ $bad -eq 0 ]
