/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that were linked with a runtime of their own keep it on Windows: no library is
 * loaded before them that could take its place, so no address is in one of ours.
 */
#include "common/guard.h"

static unsigned linked(const void *address)
{
	(void)address;
	return 0;
}

extern struct vcuda_guard vcuda_guard;
struct vcuda_guard vcuda_guard = {.linked = linked};
