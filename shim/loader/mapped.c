/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader tells debuggers of a change in its list of objects by calling an empty function,
 * whose address it publishes (r_brk of struct r_debug: a place for a breakpoint). That function
 * becomes a jump to ours. No other place lies between the mapping of a library and its
 * constructors.
 */
#include "shim/loader/mapped.h"
#include "shim/loader/elf.h"
#include "shim/loader/jump.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Functions begin at multiples of this; what lies between them is never run. */
#define FUNCTION_ALIGN 16

static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
#define BREAKPOINT 0xcc
#define CALL 0xe8
#define JUMP_NEAR 0xe9
/* Of a call or a jump: how far it is stands in four bytes behind the first. */
#define NEAR_BYTES 5

static bool nops(const unsigned char *code, size_t n)
{
	static const unsigned char known[] = {
		0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x00, 0x40, 0x44, 0x80, 0x84};

	for (size_t i = 0; i < n; i++)
		if (!memchr(known, code[i], sizeof(known)))
			return false;
	return true;
}

/* A function that only returns, compiled with or without -fcf-protection, and nops behind it.
 */
static bool empty(const unsigned char *code)
{
	size_t at = memcmp(code, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);

	if (code[at] == 0xf3)
		at++;
	return code[at++] == 0xc3 && nops(code + at, JUMP_BYTES - at);
}

/* ---- Under a debugger ---- */

/* A debugger that started the program has its breakpoint on the function's first byte by now,
 * and writes to that byte whenever the program stops: it can hold nothing else. The loader's
 * calls of the function become calls of the nops behind it, where a jump to ours is put, which
 * goes on to the function. */
static struct {
	void (*changed)(void);
	void (*debugger)(void);
} watched;

static void watched_changed(void)
{
	watched.changed();
	watched.debugger();
}

/* Where nops follow the function that has a breakpoint; NULL: it is not empty, or there are
 * none. */
static unsigned char *behind_breakpoint(unsigned char *code)
{
	bool marked = !memcmp(code + 1, endbr64 + 1, sizeof(endbr64) - 1);
	unsigned char *behind = code + (marked ? sizeof(endbr64) + 1 : 1);

	return code[0] == BREAKPOINT && (!marked || behind[-1] == 0xc3) &&
			       nops(behind, (size_t)(code + FUNCTION_ALIGN - behind))
		       ? behind
		       : NULL;
}

static bool near_to(const unsigned char *from, const void *to, int32_t *distance)
{
	intptr_t far = (intptr_t)to - (intptr_t)(from + NEAR_BYTES);

	*distance = (int32_t)far;
	return *distance == far;
}

struct calls {
	unsigned char *from, *to; /* what they call, and shall */
	size_t moved;
};

static void calls_move(unsigned char *code, size_t n, struct calls *calls)
{
	for (size_t i = 0; i + NEAR_BYTES <= n; i++) {
		int32_t distance, wanted;

		memcpy(&distance, code + i + 1, sizeof(distance));
		if (code[i] != CALL || code + i + NEAR_BYTES + distance != calls->from ||
			!near_to(code + i, calls->to, &wanted))
			continue;
		memcpy(code + i + 1, &wanted, sizeof(wanted));
		calls->moved++;
	}
}

/* In the loader's own code: the segment that has the function. */
static int move_in(struct dl_phdr_info *info, size_t size, void *data)
{
	struct calls *calls = data;
	const Elf64_Phdr *part = loaded_part(
		info, (uintptr_t)calls->from - info->dlpi_addr, FUNCTION_ALIGN, PF_X);
	int32_t distance;

	(void)size;
	if (!part)
		return 0;
	if (near_to(calls->to, (const void *)watched_changed, &distance) &&
		loaded_code_protect(info, PROT_WRITE)) {
		memcpy(calls->to + 1, &distance, sizeof(distance));
		calls->to[0] = JUMP_NEAR;
		calls_move((unsigned char *)info->dlpi_addr + part->p_vaddr, part->p_filesz,
			calls);
		loaded_code_protect(info, 0);
	}
	return 1;
}

static bool watch_beside_debugger(unsigned char *code, void (*changed)(void))
{
	struct calls calls = {code, behind_breakpoint(code), 0};

	if (!calls.to)
		return false;
	watched.changed = changed;
	watched.debugger = (void (*)(void))code;
	dl_iterate_phdr(move_in, &calls);
	return calls.moved != 0;
}

static const struct r_debug *debug;

bool mapped_settled(void)
{
	return !debug || debug->r_state == RT_CONSISTENT;
}

bool mapped_watch(void (*changed)(void))
{
	uintptr_t address;
	unsigned char *code;

	debug = dlsym(RTLD_DEFAULT, "_r_debug");
	address = debug ? debug->r_brk : 0;
	code = (unsigned char *)address;
	/* Aligned like that, the jump lies in one page. */
	if (!address || address % FUNCTION_ALIGN)
		return false;
	return empty(code) ? jump_put(code, (const void *)changed)
			   : watch_beside_debugger(code, changed);
}
