#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuSOLVER: the programs of tests/cusolver natively, and through us on the
# same GPU.
#
#	tests/gpu/cusolver.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcusolver from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  An ABI whose library is not there is
# skipped natively.  Exit status 0 if no row fails; 2 if there is no cuSOLVER at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/cusolver" ] || die "no $dist/cusolver: \`make dist\` makes it"
# cuSOLVER needs the other three.
library_find 'libcusolver.so.1[12]' 'libcublas.so.1[23]' 'libcusparse.so.12' 'libnvJitLink.so.1[23]'
library_start
for abi in 11 12; do
	native=$(library_native libcusolver.so.$abi)
	for program in statuses cholesky lu ldl qr reduce eigen geev svd refine \
			captured sparse sparse_factor sparse_host refactor; do
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native $abi $program" env LD_LIBRARY_PATH="$path" \
				"$dist/cusolver/$abi/$program"
		else
			library_skip "native $abi $program" "no libcusolver.so.$abi here"
		fi
		library_row "remote $abi $program" remote "$dist/cusolver/$abi/$program"
	done
done
library_end
