/* SPDX-License-Identifier: Apache-2.0
 *
 * The characters that a tensor's name may have, with an index in Redis or without.
 */
#ifndef VCUDA_GPU_AGENT_STORE_TENSOR_NAME_H
#define VCUDA_GPU_AGENT_STORE_TENSOR_NAME_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of the UTF-8 character at TEXT, which ends with NUL; 0: none, or a control one. */
static inline size_t name_character(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : 4;
	uint32_t code;

	if (n == 1)
		return *at >= 0x20 && *at != 0x7f ? 1 : 0;
	if (n == 4 && *at >> 3 != 30)
		return 0;
	code = *at & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (at[i] >> 6 != 2)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	/* C1 controls, what has a shorter form, surrogates. */
	if (code < 0xa0 || (n == 3 && code < 0x800) || (n == 4 && code < 0x10000) ||
		code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return n;
}

#endif
