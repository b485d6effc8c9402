/* SPDX-License-Identifier: Apache-2.0
 *
 * What memory the process has, as its kernel says.
 */
#include "shim/driver/memory/mirror/mirror.h"

#include <stdio.h>

bool mirror_usable(uint64_t at, uint64_t end, bool write)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[512], mode[8];

	if (!maps)
		return true;
	while (at < end && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || to <= at)
			continue;
		if (from > at || mode[0] != 'r' || (write && mode[1] != 'w'))
			break;
		at = to;
	}
	fclose(maps);
	return at >= end;
}
