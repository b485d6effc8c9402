/* SPDX-License-Identifier: Apache-2.0
 *
 * What `vcuda doctor` reads of a program's file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "command/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_facts facts;

	elf_look(data, n, &facts);
	if (strnlen(facts.script, sizeof(facts.script)) == sizeof(facts.script) ||
		strnlen(facts.interpreter, sizeof(facts.interpreter)) ==
			sizeof(facts.interpreter))
		abort();
	if (!facts.elf && (facts.static_cudart || facts.device_code))
		abort();
	return 0;
}
