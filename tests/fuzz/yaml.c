/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar's configuration: any bytes are settings or an error that names file and line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct options options;
	struct error error = {0};

	options_default(&options);
	if (options_read_bytes(&options, "f.yaml", data, n, &error) < 0) {
		if (strncmp(error.text, "f.yaml:", 7))
			abort();
	} else if (options.ring < 256 * 1024 || options.ring & (options.ring - 1) ||
		   !options.max_processes) {
		abort();
	}
	return 0;
}
