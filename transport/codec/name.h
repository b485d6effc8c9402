/* SPDX-License-Identifier: Apache-2.0
 *
 * What a payload is called: XXH3-128 of its bytes, with a seed.  It tells payloads apart that
 * nobody made to look alike; who knows the seed can make two of one name.
 */
#ifndef VCUDA_TRANSPORT_CODEC_NAME_H
#define VCUDA_TRANSPORT_CODEC_NAME_H

#include <stdint.h>

#include "protocol/wire/session.h"

/* Of N bytes; where others write to them meanwhile, of none that they ever were, and that is
 * all. */
struct session_name name_of(uint64_t seed, const void *bytes, uint32_t n);

#endif
