#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: what the device gives for textures and for single instructions, recorded
# natively for the software GPU to be held against, and compared through us on the same GPU.
#
#	tests/gpu/records.sh [--dist DIR] [--driver nvidia|software]
#
# Prints each record with its file's name before each line; at home
# `sed -n 's/^textures-h200.txt: //p' OUTPUT >tests/programs/textures-h200.txt` makes it a test's
# (tests/programs/programs.mk), and so instructions-h200.txt. Everything comes from DIR (.dist, made by
# `make dist`). Exit status 0 if both were recorded and are the same remotely.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/programs" ] || die "no $dist/programs: \`make dist\` makes it"
path=$dist/native
library_start
for program in textures instructions; do
	record=$scratch/$program-h200.txt
	native=(env LD_LIBRARY_PATH="$path" "$dist/programs/13/$program")
	[ "$driver" = nvidia ] || native=("$dist/bin/vcuda" run --software -- "$dist/programs/13/$program")
	if timeout 120 "${native[@]}" --record >"$record" 2>"$scratch/err"; then
		passed=$((passed + 1))
		echo "pass  native $program: $(wc -l <"$record") lines"
		library_row "remote $program" remote "$dist/programs/13/$program" --against "$record"
	else
		failed=$((failed + 1))
		echo "fail  native $program: $(tail -n 3 "$scratch/err")"
	fi
	sed "s/^/${record##*/}: /" "$record"
done
library_end
