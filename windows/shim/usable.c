/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/memory/mirror/mirror.h"
#include "windows/os/os.h"

bool mirror_usable(uint64_t at, uint64_t end, bool write)
{
	return os_usable(at, end, write);
}
