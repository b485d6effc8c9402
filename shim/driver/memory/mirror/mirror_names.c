/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses among words: see mirror_names.h, and driver.h for those that work is given.
 */
#include "shim/driver/memory/mirror/mirror_names.h"

#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/mirror/mirror.h"

void mirror_names_note(struct mirror_names *names, const struct mirror_runs *runs)
{
	struct mirror_run run;

	for (uint32_t at = 0; at < runs->used; at += (uint32_t)mirror_run_bytes(run.words)) {
		memcpy(&run, runs->to + at, sizeof(run));
		for (uint32_t i = 0; i < run.words && names->count <= MIRROR_NAMES; i++) {
			uint64_t word;

			memcpy(&word, runs->to + at + sizeof(run) + (size_t)i * 8, 8);
			if (__builtin_expect(!host_maybe(word), 1))
				continue;
			if (names->count < MIRROR_NAMES)
				names->word[names->count] = word;
			names->count++;
		}
	}
}

bool mirror_names_reach(const struct mirror_names *names)
{
	const uint32_t idle = atomic_load(&host_extent.idle);

	if (names->count > MIRROR_NAMES)
		host_named_all();
	else
		host_named(names->word, names->count * sizeof(names->word[0]));
	return names->count && atomic_load(&host_extent.idle) < idle;
}

void mirror_addresses(void *words, size_t bytes)
{
	unsigned char *at = words;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, at + i, 8);
		word = mirror_address(word);
		memcpy(at + i, &word, 8);
	}
}
