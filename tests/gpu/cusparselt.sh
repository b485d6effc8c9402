#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuSPARSELt: the programs of tests/cusparselt natively, and through us on the
# same GPU.
#
#	tests/gpu/cusparselt.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcusparseLt from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries. Programs of both headers run with the
# one that is there. Exit status 0 if no row fails; 2 if there is no cuSPARSELt at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/cusparselt" ] || die "no $dist/cusparselt: \`make dist\` makes it"
library_find 'libcusparseLt.so.0'
library_start
native=$(library_native libcusparseLt.so.0)
for abi in 12 13; do
	for program in matmul plans statuses; do
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native $abi $program" env LD_LIBRARY_PATH="$path" \
				"$dist/cusparselt/$abi/$program"
		else
			library_skip "native $abi $program" "no libcusparseLt.so.0 here"
		fi
		library_row "remote $abi $program" remote "$dist/cusparselt/$abi/$program"
	done
done
library_end
