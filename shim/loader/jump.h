/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that becomes a jump to somewhere else.
 */
#ifndef VCUDA_SHIM_LOADER_JUMP_H
#define VCUDA_SHIM_LOADER_JUMP_H

#include <stdbool.h>

/* jmp *0(%rip), then the address: reaches anywhere, spoils no register. */
#define JUMP_BYTES 14

/* Writes the jump over code that may be written. */
void jump_write(unsigned char *code, const void *target);

/* The same over code that may only be read and run, as it may afterwards. False: it stays. */
bool jump_put(unsigned char *code, const void *target);

#endif
