/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA_VISIBLE_DEVICES of this process, as NVIDIA's driver reads it
 * (tests/unit/shim/shim_visible.c has what it was seen to do): the agent tells its workers with
 * it which GPUs are theirs.
 */
#include "softgpu/driver/softgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_PREFIX "GPU-"
#define UUID_TEXT (4 + 36) /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

void device_uuid(unsigned number, unsigned char uuid[16])
{
	memcpy(uuid, settings.identity, sizeof(settings.identity));
	uuid[15] = (unsigned char)(uuid[15] ^ (number + 1));
}

static void uuid_text(unsigned number, char text[UUID_TEXT + 1])
{
	unsigned char u[16];

	device_uuid(number, u);
	snprintf(text, UUID_TEXT + 1,
		UUID_PREFIX "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
			    "%02x%02x%02x%02x%02x%02x",
		u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		u[13], u[14], u[15]);
}

/* The one of COUNT that ENTRY is the beginning of. -1: none, or several. */
static int by_uuid(const char *entry, unsigned count)
{
	size_t n = strcspn(entry, ",");
	char text[UUID_TEXT + 1];
	int found = -1;

	if (strncmp(entry, UUID_PREFIX, strlen(UUID_PREFIX)) != 0)
		return -1;
	for (unsigned i = 0; i < count; i++) {
		uuid_text(i, text);
		if (strncasecmp(entry, text, n < UUID_TEXT ? n : UUID_TEXT) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

static int by_number(const char *entry, unsigned count)
{
	char *end;
	long number = strtol(entry, &end, 10);

	return end == entry || number < 0 || number >= (long)count ? -1 : (int)number;
}

CUresult device_choose(const char *list)
{
	const unsigned count = settings.devices;
	unsigned n = 0;
	bool uuids;

	for (unsigned i = 0; i < count; i++)
		settings.numbers[i] = i;
	if (!list)
		return CUDA_SUCCESS;
	settings.devices = 0;
	uuids = !strncmp(list, UUID_PREFIX, strlen(UUID_PREFIX));
	for (;;) {
		int one = uuids ? by_uuid(list, count) : by_number(list, count);

		if (one < 0)
			break; /* the first that is invalid ends the list */
		for (unsigned i = 0; i < n; i++)
			if (settings.numbers[i] == (unsigned)one)
				return CUDA_ERROR_INVALID_DEVICE;
		settings.numbers[n++] = (unsigned)one;
		list += strcspn(list, ",");
		if (!*list++)
			break;
	}
	settings.devices = n;
	return CUDA_SUCCESS;
}
