#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU and cuRAND: writes what NVIDIA's library answers natively, a line a case
# (tests/curand/record.c), to standard output.
#
#	tests/gpu/curand.sh [--dist DIR] [--libraries DIR] [--abi 12|13] >curand.txt
#
# Everything comes from DIR (.dist, made by `make dist`); NVIDIA's libcurand from where the loader
# finds it, /usr/local/cuda, Python's packages, or --libraries.  Exit status 2 if there is none.

set -u
. "$(dirname "$0")/library.sh"
abi=12
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--abi) abi=${2:?--abi wants 12 or 13} ;;
	*) options+=("$1" "${2-}") ;;
	esac
	shift 2
done
library_options "${options[@]}"
[ -d "$dist/curand" ] || die "no $dist/curand: \`make dist\` makes it"
library_find 'libcurand.so.10'
LD_LIBRARY_PATH="$(library_native libcurand.so.10):$dist/native" exec timeout 500 \
	"$dist/curand/$abi/record" device
