/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim's walk through a fat binary: whatever the bytes say, the entry that it picks lies
 * inside of them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/driver/module/fatbin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fatbin_target targets[] = {
		{7, 0, false}, {8, 6, false}, {9, 0, false}, {10, 3, false}, {8, 0, true}};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct fatbin_entry entry;

		if (!fatbin_pick(data, size, &targets[i], &entry))
			continue;
		if (entry.start < data || entry.start > data + size ||
			entry.bytes > (size_t)(data + size - entry.start))
			abort();
	}
	return 0;
}
