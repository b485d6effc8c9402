/* SPDX-License-Identifier: Apache-2.0
 *
 * NETWORK.yaml: any bytes are a network or an error that names the file, and a network that is
 * written is read as what it was.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int set(void *network, const struct config_item *item, struct error *error)
{
	return network_set(network, item->key, item, error);
}

/* As network_read does with a file of folder /f. */
static int take(struct network *network, const void *bytes, size_t n, struct error *error)
{
	memset(network, 0, sizeof(*network));
	if (config_read_bytes("f.yaml", bytes, n, set, network, error)) {
		if (strncmp(error->text, "f.yaml:", 7))
			abort();
		return -1;
	}
	return network_complete(network, "/f", error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct network network, again;
	struct error error = {0};
	char *text = NULL;
	size_t written;
	FILE *out;

	if (take(&network, data, n, &error))
		return 0;
	out = open_memstream(&text, &written);
	network_write(out, &network);
	fclose(out);
	if (take(&again, text, written, &error) || memcmp(&network, &again, sizeof(again)))
		abort();
	for (unsigned minute = 0; minute < NETWORK_DAY; minute++)
		network_is_open(&network, minute);
	free(text);
	return 0;
}
