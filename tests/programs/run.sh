#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the CUDA programs of build/programs, each in both ABIs, and prints a line for each.
#
#	tests/programs/run.sh [options] [NAME ...] [-- COMMAND PREFIX ...]
#
# Without names all programs run; the prefix is `build/bin/vcuda run --software --` unless
# another is given.  A program passes with exit status 0 and is skipped with 77.

set -u

usage() {
	cat <<'EOF'
usage: run.sh [options] [NAME ...] [-- COMMAND PREFIX ...]
  --native         no prefix: the program as it is
  --agent ADDRESS  the prefix `vcuda run --agent ADDRESS --`
  --abi 12|13      only this one of the two
  --perf VALUE     VCUDA_PERF=VALUE, e.g. no_post,no_cache
  --strict         VCUDA_STRICT=1
  --memory only|without  those that take all of the device's memory; all but those
  --programs DIR   the programs (build/programs)
  --timeout S      seconds a program may take (60)
  --log DIR        keep what each program printed, as DIR/ABI-NAME.log
  --results FILE   write a line for each: NAME ABI VERDICT SECONDS
  -jN              run N at a time (1)
EOF
}

die() {
	echo "run.sh: $*" >&2
	exit 2
}

root=$(cd "$(dirname "$0")/../.." && pwd)
programs=$root/build/programs
prefix=("$root/build/bin/vcuda" run --software --)
abis="13 12"
limit=60
jobs=1
log=
memory=
results=
names=()

while [ $# -gt 0 ]; do
	case $1 in
	--native) prefix=() ;;
	--agent)
		[ $# -gt 1 ] || die "--agent wants an address"
		prefix=("$root/build/bin/vcuda" run --agent "$2" --)
		shift ;;
	--abi)
		case ${2-} in 12 | 13) abis=$2 ;; *) die "--abi is 12 or 13, not '${2-}'" ;; esac
		shift ;;
	--perf)
		[ $# -gt 1 ] || die "--perf wants a value"
		export VCUDA_PERF=$2
		shift ;;
	--strict) export VCUDA_STRICT=1 ;;
	--memory)
		case ${2-} in only | without) memory=$2 ;; *) die "--memory is only or without" ;; esac
		shift ;;
	--programs)
		[ $# -gt 1 ] || die "--programs wants a folder"
		programs=$2
		shift ;;
	--timeout)
		case ${2-} in '' | *[!0-9]*) die "--timeout wants seconds, not '${2-}'" ;; esac
		limit=$2
		shift ;;
	--log)
		[ $# -gt 1 ] || die "--log wants a folder"
		log=$2
		shift ;;
	--results)
		[ $# -gt 1 ] || die "--results wants a file"
		results=$2
		shift ;;
	-j*)
		jobs=${1#-j}
		case $jobs in '' | 0 | *[!0-9]*) die "-jN wants a number, not '$1'" ;; esac ;;
	-h | --help)
		usage
		exit 0 ;;
	--)
		shift
		prefix=("$@")
		break ;;
	-*) die "unknown option '$1' (--help lists them)" ;;
	*) names+=("$1") ;;
	esac
	shift
done

[ -d "$programs" ] || die "no $programs: run \`make programs\` first"
if [ ${#prefix[@]} -gt 0 ] && ! command -v "${prefix[0]}" >/dev/null; then
	die "cannot run ${prefix[0]}"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "$log" ]; then
	mkdir -p "$log" || exit 2
else
	log=$scratch
fi

# Runs one program and prints its line; what it printed follows if it did not pass.
run_one() { # ABI NAME
	local output=$log/$1-$2.log began ended status verdict

	began=$(date +%s%N)
	timeout -k 5 "$limit" "${prefix[@]}" "$programs/$1/$2" </dev/null >"$output" 2>&1
	status=$?
	ended=$(date +%s%N)
	case $status in
	0) verdict=pass ;;
	77) verdict=skip ;;
	124 | 137) verdict=fail && echo "no end within $limit s" >>"$output" ;;
	*) verdict=fail && echo "exit status $status" >>"$output" ;;
	esac
	{
		printf '%-22s %s  %-4s  %4d.%02d s\n' "$2" "$1" $verdict \
			$(((ended - began) / 1000000000)) $(((ended - began) / 10000000 % 100))
		[ $verdict = pass ] || tail -n 12 "$output" | sed 's/^/    /'
	} >"$scratch/$1-$2.line"
	echo $verdict >"$scratch/$1-$2.verdict"
	printf '%s %s %s %d.%02d\n' "$2" "$1" $verdict $(((ended - began) / 1000000000)) \
		$(((ended - began) / 10000000 % 100)) >"$scratch/$1-$2.result"
	cat "$scratch/$1-$2.line"
}

chosen=()
for abi in $abis; do
	if [ ${#names[@]} -eq 0 ]; then
		for program in "$programs/$abi"/*; do
			[ -f "$program" ] && [ -x "$program" ] && chosen+=("$abi ${program##*/}")
		done
	else
		for name in "${names[@]}"; do
			[ -x "$programs/$abi/$name" ] && chosen+=("$abi $name")
		done
	fi
done
for name in "${names[@]}"; do
	[ -x "$programs/12/$name" ] || [ -x "$programs/13/$name" ] || die "no program '$name'"
done
[ ${#chosen[@]} -gt 0 ] || die "no programs in $programs"

# They take all of the device's memory, so nothing runs beside them.
alone() { # "ABI NAME"
	case ${1#* } in error-memory | memory-full | memory-fragments) ;; *) false ;; esac
}

for i in "${!chosen[@]}"; do
	if alone "${chosen[i]}"; then kind=only; else kind=without; fi
	[ "${memory:-$kind}" = $kind ] || unset "chosen[i]"
done

for one in "${chosen[@]}"; do
	! alone "$one" || wait
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	# shellcheck disable=SC2086 # two words on purpose
	run_one $one 2>/dev/null &
	! alone "$one" || wait
done
wait

count() {
	find "$scratch" -name '*.verdict' -exec cat {} + | grep -c "^$1$"
}
[ -z "$results" ] || find "$scratch" -name '*.result' -exec cat {} + >"$results" || exit 2
failed=$(count fail)
# Once more where a log that was cut off still has them.
if [ "$failed" -gt 0 ] && [ ${#chosen[@]} -gt 1 ]; then
	echo "failed:"
	grep -lx fail "$scratch"/*.verdict | sed 's/verdict$/line/' | xargs cat
fi
echo "$(count pass) passed, $failed failed, $(count skip) skipped"
[ "$failed" -eq 0 ]
