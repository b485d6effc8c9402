/* SPDX-License-Identifier: Apache-2.0
 *
 * Formatted stores: numbers of 32 bits become an element of a surface.
 */
#include <string.h>

#include "softgpu/ptx/ops/round.h"
#include "softgpu/ptx/texture.h"

static uint32_t clamp(uint32_t v, enum ptx_texel texel)
{
	const unsigned bits = ptx_texel_bytes(texel) * 8;
	const int32_t most = (int32_t)(UINT32_MAX >> (33 - bits)), value = (int32_t)v;

	if (texel == PTX_TEXEL_S8 || texel == PTX_TEXEL_S16)
		return (uint32_t)(value > most ? most : value < -most - 1 ? -most - 1 : value);
	return bits < 32 && v >> bits ? (1u << bits) - 1 : v;
}

/* Three of 10 bits and one of 2. */
static void store_packed(void *p, const uint32_t *values, uint32_t count)
{
	uint32_t word = 0;

	for (uint32_t k = 0; k < count && k < 4; k++) {
		const uint32_t most = k < 3 ? 1023 : 3;

		word |= (values[k] < most ? values[k] : most) << 10 * k;
	}
	memcpy(p, &word, sizeof(word));
}

void ptx_texture_store(
	const struct ptx_texture *t, void *p, const uint32_t *values, uint32_t count)
{
	const uint32_t size = ptx_texel_bytes(t->texel);
	float f;

	if (t->texel == PTX_TEXEL_10_10_10_2) {
		store_packed(p, values, count);
		return;
	}
	for (uint32_t k = 0; k < t->channels; k++) {
		uint32_t v = k < count ? values[k] : 0;

		if (t->texel == PTX_TEXEL_F16) {
			memcpy(&f, &v, sizeof(f));
			v = ptx_half_from((double)f);
		} else if (t->texel < PTX_TEXEL_F16) {
			v = clamp(v, t->texel);
		}
		memcpy((char *)p + k * size, &v, size);
	}
}
