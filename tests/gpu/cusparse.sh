#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuSPARSE: the programs of tests/cusparse natively, and through us on the
# same GPU.
#
#	tests/gpu/cusparse.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcusparse from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries. Programs of both headers run with the
# one that is there. Exit status 0 if no row fails; 2 if there is no cuSPARSE at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/cusparse" ] || die "no $dist/cusparse: \`make dist\` makes it"
# cuSPARSE needs nvJitLink.
library_find 'libcusparse.so.12' 'libnvJitLink.so.1[23]'
library_start
native=$(library_native libcusparse.so.12)
for abi in 12 13; do
	for program in statuses descriptors products vectors spgemm triangles conversions blocks order factors bands \
		regroup captured; do
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native $abi $program" env LD_LIBRARY_PATH="$path" \
				"$dist/cusparse/$abi/$program"
		else
			library_skip "native $abi $program" "no libcusparse.so.12 here"
		fi
		library_row "remote $abi $program" remote "$dist/cusparse/$abi/$program"
	done
done
library_end
