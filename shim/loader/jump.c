/* SPDX-License-Identifier: Apache-2.0
 *
 * See jump.h.
 */
#include "shim/loader/jump.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void jump_write(unsigned char *code, const void *target)
{
	static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};

	_Static_assert(
		sizeof(jump) + sizeof(target) == JUMP_BYTES, "the instruction, the address");
	memcpy(code + sizeof(jump), &target, sizeof(target));
	memcpy(code, jump, sizeof(jump));
}

bool jump_put(unsigned char *code, const void *target)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)code & ~(page - 1);
	size_t bytes = (uintptr_t)code + JUMP_BYTES - from;

	if (mprotect((void *)from, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	jump_write(code, target);
	mprotect((void *)from, bytes, PROT_READ | PROT_EXEC);
	return true;
}
