#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuBLAS: the programs of tests/cublas and tests/cublaslt natively, and
# through us on the same GPU; then what a small linear layer by cublasLt costs either way.
#
#	tests/gpu/cublas.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcublas from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  Natively, an ABI whose library is
# not there is skipped; remotely the agent serves it with the next major.  Exit status 0 if no row
# fails; 2 if there is no cuBLAS at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
for needed in cublas cublaslt; do
	[ -d "$dist/$needed" ] || die "no $dist/$needed: \`make dist\` makes it"
done
library_find 'libcublas.so.1[23]'
library_start
for abi in 12 13; do
	native=$(library_native libcublas.so.$abi)
	for program in cublas/$abi/products cublas/$abi/others cublas/$abi/grouped \
		cublas/$abi/captured cublas/$abi/level1 cublas/$abi/level2 cublas/$abi/level3 \
		cublas/$abi/factors cublas/$abi/legacy cublas/$abi/xt \
		cublas/$abi/settings \
		cublaslt/$abi/matmul cublaslt/$abi/algorithms cublaslt/$abi/descriptors \
		cublaslt/$abi/capture; do
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native $program" env LD_LIBRARY_PATH="$native:$dist/native" \
				"$dist/$program"
		else
			library_skip "native $program" "no libcublas.so.$abi here"
		fi
		library_row "remote $program" remote "$dist/$program"
	done
done

# Descriptors made, heuristic asked, product run, 5000 times.
for abi in 12 13; do
	native=$(library_native libcublas.so.$abi)
	steady=$dist/cublaslt/$abi/steady
	if [ -n "$native" ] && [ "$driver" = nvidia ]; then
		library_row "native $abi linear layer" env \
			LD_LIBRARY_PATH="$native:$dist/native" "$steady" linear 5000
	fi
	library_row "remote $abi linear layer" remote "$steady" linear 5000
done
library_end
