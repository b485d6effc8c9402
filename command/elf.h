/* SPDX-License-Identifier: Apache-2.0
 *
 * What the doctor wants to know of a program's file.  The file is only read, and every offset
 * in it is checked: it may be anything.
 */
#ifndef VCUDA_COMMAND_ELF_H
#define VCUDA_COMMAND_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct elf_facts {
	char script[256];      /* a script: its interpreter; all else is empty then */
	bool elf;	       /* 64 bit, for this machine */
	char interpreter[256]; /* the loader; "" = statically linked */
	bool symbols;	       /* has a symbol table */
	bool device_code;      /* holds code for GPUs (nvcc, clang) */
	bool static_cudart;    /* the CUDA runtime's functions are in its symbol table */
};

/* 0, or -errno with *error. A file that is neither script nor ELF has `elf` false. */
int elf_read(const char *path, struct elf_facts *facts, struct error *error);

/* The same from memory (the fuzz target). */
void elf_look(const unsigned char *bytes, uint64_t n, struct elf_facts *facts);

#endif
