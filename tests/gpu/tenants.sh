#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: tenants apart.  What a session leaves in device memory is looked for by the
# next ones (16 GiB, five times), and hogs of tenants with shares of the GPU's time get what they may, what a
# tenant without one uses is counted, and work of a higher class goes first.
#
#	tests/gpu/tenants.sh [--dist DIR] [--driver nvidia|software]
#
# Exit status 0 if all holds.

set -u
. "$(dirname "$0")/library.sh"
library_options "$@"
[ -d "$dist/stack" ] || die "no $dist/stack: \`make dist\` makes it"
mib=16384
if [ "$driver" != nvidia ]; then # the test of this script itself
	export LD_LIBRARY_PATH=$dist/lib
	mib=8
fi
BUILD=$dist RESIDUE_MIB=$mib RESIDUE_DRIVER=$driver "$library_root/tests/stack/run.py" residue.
residue=$?
BUILD=$dist SHARE_DRIVER=$driver "$library_root/tests/stack/run.py" share. priority.
[ $? -eq 0 ] && [ $residue -eq 0 ]
