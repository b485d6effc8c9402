#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuFFT: the programs of tests/cufft natively, and through us on the same GPU.
#
#	tests/gpu/cufft.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcufft from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  Natively, an ABI whose library is
# not there is skipped.  Exit status 0 if no row fails; 2 if there is no cuFFT at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/cufft" ] || die "no $dist/cufft: \`make dist\` makes it"
library_find 'libcufft.so.1[12]'
library_start
for abi in 12 13; do
	native=$(library_native libcufft.so.$((abi - 1)))
	for program in transforms forms statuses captured threads devices host-functions work-area callbacks several-gpus several-calls; do
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native cufft/$abi/$program" env \
				LD_LIBRARY_PATH="$native:$dist/native" "$dist/cufft/$abi/$program"
		else
			library_skip "native cufft/$abi/$program" "no libcufft.so.$((abi - 1)) here"
		fi
		library_row "remote cufft/$abi/$program" remote "$dist/cufft/$abi/$program"
	done
done
native=$(library_native libcufft.so.12)
for thing in transform real area again shape; do
	times=2000
	[ $thing != shape ] || times=100 # a plan that is new takes natively 50 to 100 ms
	[ -n "$native" ] && [ "$driver" = nvidia ] && library_row "native $thing, $times times" env \
		LD_LIBRARY_PATH="$native:$dist/native" "$dist/cufft/13/steady" $thing $times
	library_row "remote $thing, $times times" remote "$dist/cufft/13/steady" $thing $times
done
library_end
