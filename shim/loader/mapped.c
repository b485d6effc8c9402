/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader tells debuggers of a change in its list of objects by calling an empty function,
 * whose address it publishes (r_brk of struct r_debug: a place for a breakpoint). That function
 * becomes a jump to ours. No other place lies between the mapping of a library and its
 * constructors.
 */
#include "shim/loader/mapped.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* jmp *0(%rip), then the address. */
static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
#define JUMP_BYTES (sizeof(jump) + sizeof(uint64_t))
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
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), address = debug ? debug->r_brk : 0;
	unsigned char *code = (unsigned char *)address;
	void *start = (void *)(address & ~(page - 1));

	/* Aligned like that, the jump lies in one page. */
	if (!address || address % FUNCTION_ALIGN || !empty(code) ||
		mprotect(start, page, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy(code + sizeof(jump), &changed, sizeof(changed));
	memcpy(code, jump, sizeof(jump));
	mprotect(start, page, PROT_READ | PROT_EXEC);
	return true;
}
