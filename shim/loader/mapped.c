/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader tells debuggers of a change in its list of objects by calling an empty function,
 * whose address it publishes (r_brk of struct r_debug: a place for a breakpoint). That function
 * becomes a jump to ours. No other place lies between the mapping of a library and its
 * constructors.
 */
#include "shim/loader/mapped.h"
#include "shim/loader/jump.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Functions begin at multiples of this; what lies between them is never run. */
#define FUNCTION_ALIGN 16

/* A function that only returns, compiled with or without -fcf-protection, and nops behind it.
 * Under a debugger that has its breakpoint there the code is another. */
static bool empty(const unsigned char *code)
{
	static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const unsigned char nops[] = {
		0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x00, 0x40, 0x44, 0x80, 0x84};
	size_t at = memcmp(code, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);

	if (code[at] == 0xf3)
		at++;
	if (code[at++] != 0xc3)
		return false;
	for (; at < JUMP_BYTES; at++)
		if (!memchr(nops, code[at], sizeof(nops)))
			return false;
	return true;
}

bool mapped_watch(void (*changed)(void))
{
	const struct r_debug *debug = dlsym(RTLD_DEFAULT, "_r_debug");
	uintptr_t address = debug ? debug->r_brk : 0;
	unsigned char *code = (unsigned char *)address;

	/* Aligned like that, the jump lies in one page. */
	return address && address % FUNCTION_ALIGN == 0 && empty(code) &&
	       jump_put(code, (const void *)changed);
}
