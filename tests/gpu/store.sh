#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: ten programs load one file of weights that is made on the spot.  Device memory and
# bytes on the wire are of one copy, a reader's write is error 700, every sum stays; a table of times is last.
#
#	tests/gpu/store.sh [--dist DIR] [--driver nvidia|software] [--mib SIZE]
#
# SIZE: of the file, in MiB; 14336 if three times that are free in memory and twice on disk, else 4096.  $TMPDIR
# has the file.  Exit status 0 if all holds; times are told and gate nothing.
set -u
. "$(dirname "$0")/library.sh"
mib=
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--mib) mib=${2:?--mib wants a number} && shift ;;
	*) options+=("$1") ;;
	esac
	shift
done
library_options "${options[@]+"${options[@]}"}"
[ -x "$dist/bin/gpu-agent" ] || die "no $dist/bin/gpu-agent: \`make dist\` makes it"
if [ -z "$mib" ]; then
	memory=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
	disk=$(df -Pm "${TMPDIR:-/tmp}" | awk 'NR == 2 {print $4}')
	mib=14336
	[ "$memory" -ge $((3 * mib)) ] && [ "$disk" -ge $((2 * mib)) ] || mib=4096
	[ "$driver" = nvidia ] || mib=48
fi
[ "$driver" = nvidia ] || export LD_LIBRARY_PATH=$dist/lib # the test of this script itself
table=$(mktemp)
trap 'rm -f "$table"' EXIT
BUILD=$dist SHARED_MIB=$mib SHARED_DRIVER=$driver SHARED_TABLE=$table TEST_LIMIT=88 \
	"$library_root/tests/stack/run.py" --in store shared.
status=$?
cat "$table"
exit $status
