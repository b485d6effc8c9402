/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/replacement.h"

void replacement_begin(struct replacement *r, uint64_t now)
{
	if (!r->due)
		r->due = now + REPLACEMENT_NS;
}

bool replacement_waits(struct replacement *r, uint32_t ready, uint32_t waiting, uint64_t now)
{
	if (r->due && ready && !waiting && now < r->due)
		return true;
	r->due = 0;
	return false;
}
