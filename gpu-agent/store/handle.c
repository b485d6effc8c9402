/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as handles of 64 bytes.  One that is forged, cut or of a tensor that is gone differs
 * from what the store writes for the record that it names, in some byte.
 */
#include <string.h>

#include "gpu-agent/store/store.h"

_Static_assert(sizeof(struct tensor_handle) == REGISTRY_HANDLE, "a cudaIpcMemHandle_t");
_Static_assert(TENSOR_HANDLE_DIGITS <= TENSOR_NAME_MAX, "it travels in a name's place");

void store_handle(const struct tensor_record *r, struct tensor_handle *handle)
{
	*handle = (struct tensor_handle){.bytes = r->bytes, .ctime = r->ctime};
	memcpy(handle->magic, TENSOR_HANDLE_MAGIC, sizeof(handle->magic));
	memcpy(handle->id, r->id, sizeof(handle->id));
	memcpy(handle->gpu, r->gpu, sizeof(handle->gpu));
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint32_t store_table_by_handle(const struct store *s, const char *digits)
{
	struct tensor_handle asked, now;
	unsigned char bytes[sizeof(asked)];
	uint32_t i;

	if (strnlen(digits, TENSOR_HANDLE_DIGITS + 1) != TENSOR_HANDLE_DIGITS)
		return UINT32_MAX;
	for (size_t k = 0; k < sizeof(bytes); k++) {
		int high = digit(digits[2 * k]), low = digit(digits[2 * k + 1]);

		if (high < 0 || low < 0)
			return UINT32_MAX;
		bytes[k] = (unsigned char)(high << 4 | low);
	}
	memcpy(&asked, bytes, sizeof(asked));
	i = store_table_by_id(s, asked.id);
	if (i == UINT32_MAX || (s->table->records[i].state != TENSOR_CREATED &&
				       s->table->records[i].state != TENSOR_SEALED))
		return UINT32_MAX;
	store_handle(&s->table->records[i], &now);
	return memcmp(&asked, &now, sizeof(now)) ? UINT32_MAX : i;
}
