/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/codec/name.h"

/* All of libxxhash that is needed is in its header: nothing is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

struct session_name name_of(uint64_t seed, const void *bytes, uint32_t n)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, n, seed);

	return (struct session_name){.low = hash.low64, .high = hash.high64, .length = n};
}
