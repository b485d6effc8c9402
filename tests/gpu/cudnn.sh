#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuDNN: the programs of tests/cudnn natively, and through us on the same
# GPU.
#
#	tests/gpu/cudnn.sh [--dist DIR] [--libraries DIR] [--driver nvidia|software]
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcudnn from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  Natively, an ABI whose library is
# not there is skipped; remotely the agent serves 8 with 9.  What a program leaves out, since this
# cuDNN does not do it, stands beside its row.  Exit status 0 if no row fails; 2 if there is no cuDNN
# at all.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/cudnn" ] || die "no $dist/cudnn: \`make dist\` makes it"
# cuDNN opens cuBLAS and NVRTC by name.
library_find 'libcudnn.so.[89]' 'libcublas.so.1[23]' 'libnvrtc.so.1[23]'
library_start
for abi in 8 9; do
	native=$(library_native libcudnn.so.$abi)
	for program in convolution backend captured normalization pooling elementwise dropout ctc transformer \
		recurrent networks attention fused algorithms-8 search-8 causal-9; do
		[ -x "$dist/cudnn/$abi/$program" ] || continue # NAME-8, NAME-9: of that one alone
		if [ -n "$native" ] && [ "$driver" = nvidia ]; then
			library_row "native $abi $program" env LD_LIBRARY_PATH="$path" \
				"$dist/cudnn/$abi/$program"
		else
			library_skip "native $abi $program" "no libcudnn.so.$abi here"
		fi
		library_row "remote $abi $program" remote "$dist/cudnn/$abi/$program"
	done
done
library_end
