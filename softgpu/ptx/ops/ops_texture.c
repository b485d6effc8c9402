/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures (texture.c fetches) and surfaces: lane by lane, since a fetch costs far more
 * than finding out what to do.
 */
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/texture.h"

/* A register holds the number, or where the variable is that does. */
static const struct ptx_texture *look_up(const struct ptx_warp *w, uint64_t number)
{
	const struct ptx_texture *t = ptx_texture_find(number);

	if (!t && ptx_module_opaque(w->block->run->module, number))
		t = ptx_texture_find(
			__atomic_load_n((const uint64_t *)(uintptr_t)number, __ATOMIC_RELAXED));
	return t;
}

static const struct ptx_texture *find(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, bool surface)
{
	uint64_t number = REG(const uint64_t, a)[lane];
	const struct ptx_texture *t = look_up(w, number);

	if (!t || t->surface != surface)
		ptx_fault(w, i, PTX_TRAP, "0x%llx is no %s", (unsigned long long)number,
			surface ? "surface" : "texture");
	return t;
}

OP(istypep, "istypep", "x")
{
	const struct ptx_module *module = w->block->run->module;
	uint32_t *p = ptx_pred(w, i->d), is = 0;
	SRC_A(uint64_t);

	EACH(w->mask) is |= (uint32_t)(ptx_module_opaque(module, a[l]) == i->imm) << l;
	*p = (*p & ~w->mask) | is;
}

OP_FLOW(tex, "tex", "x")
{
	uint32_t *row = REG(uint32_t, b);
	struct ptx_fetch fetch;

	memcpy(&fetch, &i->imm, sizeof(fetch));
	w->at = i;
	EACH(w->mask)
	{
		uint32_t in[PTX_FETCH_RESULT], out[4];

		for (uint32_t k = 0; k < PTX_FETCH_RESULT; k++)
			in[k] = row[k * PTX_LANES + l];
		if (!ptx_texture_fetch(find(w, i, l, false), &fetch, in, out))
			ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "a texture outside of memory");
		for (uint32_t k = 0; k < 4; k++)
			row[(PTX_FETCH_RESULT + k) * PTX_LANES + l] = out[k];
	}
	return i + 1;
}

/* ---- surfaces ---- */

/* The byte that a lane names; NULL: outside, and that is not a fault (.zero). */
static unsigned char *surface_at(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane)
{
	const struct ptx_texture *t = find(w, i, lane, true);
	const struct ptx_texture_level *level = &t->levels[0];
	const uint32_t *row = REG(const uint32_t, b);
	struct ptx_surface s;
	int64_t at[3] = {0}, size[3], element = ptx_texel_bytes(t->texel) * t->channels;
	uint64_t address;
	uint32_t bytes, first;

	memcpy(&s, &i->imm, sizeof(s));
	bytes = s.unit == PTX_SURFACE_ELEMENTS ? (uint32_t)element
					       : (uint32_t)s.bytes * s.count;
	first = s.layered;
	for (uint32_t k = 0; k < s.dims; k++)
		at[k] = (int32_t)row[(first + k) * PTX_LANES + lane];
	if (s.layered)
		at[2] = (int32_t)row[lane];
	size[0] = (int64_t)level->width * element;
	size[1] = level->height;
	size[2] = level->depth;
	if (s.unit != PTX_SURFACE_BYTES)
		at[0] *= bytes;
	else if (at[0] % s.bytes)
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS, "misaligned byte %lld of a surface",
			(long long)at[0]);
	for (uint32_t k = 0; k < 3; k++) {
		const int64_t last = size[k] - (k ? 1 : (int64_t)bytes);

		if (at[k] >= 0 && at[k] <= last)
			continue;
		if (s.outside == PTX_SURFACE_ZERO || last < 0)
			return NULL;
		if (s.outside == PTX_SURFACE_TRAP)
			ptx_fault(w, i, PTX_TRAP, "outside of a surface");
		at[k] = at[k] < 0 ? 0 : last;
	}
	address = ptx_level_address(level, (uint64_t)at[0], (uint64_t)at[1], (uint64_t)at[2]);
	if (level->tiles.across &&
		(uint64_t)at[0] % (1u << level->tiles.x) + bytes > 1u << level->tiles.x)
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS, "byte %lld of a surface in two tiles",
			(long long)at[0]);
	if (ptx_texture_absent(t, address))
		return NULL;
	if (address - w->window_base > w->window_span - bytes || ptx_denied(w, address))
		ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "a surface outside of memory");
	return (unsigned char *)(uintptr_t)address;
}

#define SURFACE_VALUES(body)                                                                   \
	uint64_t *value = REG(uint64_t, d);                                                    \
	struct ptx_surface s;                                                                  \
	memcpy(&s, &i->imm, sizeof(s));                                                        \
	w->at = i;                                                                             \
	EACH(w->mask)                                                                          \
	{                                                                                      \
		unsigned char *p = surface_at(w, i, l);                                        \
		for (uint32_t k = 0; k < s.count; k++)                                         \
			body                                                                   \
	}                                                                                      \
	return i + 1;

OP_FLOW(suld, "suld", "x"){SURFACE_VALUES({
	uint64_t bits = 0;

	if (p)
		memcpy(&bits, p + k * s.bytes, s.bytes);
	value[k * PTX_LANES + l] = bits;
})}

OP_FLOW(sust, "sust", "x"){SURFACE_VALUES({
	if (p)
		memcpy(p + k * s.bytes, &value[k * PTX_LANES + l], s.bytes);
})}

OP_FLOW(sust_p, "sust.p", "x")
{
	const uint64_t *value = REG(const uint64_t, d);
	struct ptx_surface s;

	memcpy(&s, &i->imm, sizeof(s));
	w->at = i;
	EACH(w->mask)
	{
		unsigned char *p = surface_at(w, i, l);
		uint32_t values[4] = {0};

		for (uint32_t k = 0; k < s.count; k++)
			values[k] = (uint32_t)value[k * PTX_LANES + l];
		if (p)
			ptx_texture_store(find(w, i, l, true), p, values, s.count);
	}
	return i + 1;
}

/* ---- reductions ---- */

/* Of values that a formatted reduction takes as the surface has them. */
static bool has_sign(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane)
{
	const enum ptx_texel texel = find(w, i, lane, true)->texel;

	return texel == PTX_TEXEL_S8 || texel == PTX_TEXEL_S16 || texel == PTX_TEXEL_S32;
}

#define SIGNED_OR_NOT(T, compare)                                                              \
	((has_sign(w, i, l) ? (T)old compare(T) v : old compare v) ? old : v)

#define REDUCE(id, name, T, ...)                                                               \
	OP_FLOW(sured_##id, "sured." name, "x")                                                \
	{                                                                                      \
		const uint64_t *value = REG(const uint64_t, d);                                \
		w->at = i;                                                                     \
		EACH(w->mask)                                                                  \
		{                                                                              \
			T *p = (T *)(void *)surface_at(w, i, l), old, new;                     \
			const T v = (T)value[l];                                               \
			if (!p)                                                                \
				continue;                                                      \
			old = __atomic_load_n(p, __ATOMIC_RELAXED);                            \
			do                                                                     \
				new = (T)(__VA_ARGS__);                                        \
			while (!__atomic_compare_exchange_n(                                   \
				p, &old, new, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));      \
		}                                                                              \
		return i + 1;                                                                  \
	}                                                                                      \
	_Static_assert(sizeof(T) >= 4, "what memory swaps at once")

REDUCE(add_u32, "add.u32", uint32_t, old + v);
REDUCE(add_u64, "add.u64", uint64_t, old + v);
REDUCE(min_u32, "min.u32", uint32_t, old < v ? old : v);
REDUCE(min_s32, "min.s32", int32_t, old < v ? old : v);
REDUCE(min_u64, "min.u64", uint64_t, old < v ? old : v);
REDUCE(min_s64, "min.s64", int64_t, old < v ? old : v);
REDUCE(max_u32, "max.u32", uint32_t, old > v ? old : v);
REDUCE(max_s32, "max.s32", int32_t, old > v ? old : v);
REDUCE(max_u64, "max.u64", uint64_t, old > v ? old : v);
REDUCE(max_s64, "max.s64", int64_t, old > v ? old : v);
REDUCE(and_b32, "and.b32", uint32_t, old &v);
REDUCE(and_b64, "and.b64", uint64_t, old &v);
REDUCE(or_b32, "or.b32", uint32_t, old | v);
REDUCE(or_b64, "or.b64", uint64_t, old | v);
REDUCE(min_p32, "min.p32", uint32_t, SIGNED_OR_NOT(int32_t, <));
REDUCE(max_p32, "max.p32", uint32_t, SIGNED_OR_NOT(int32_t, >));
REDUCE(min_p64, "min.p64", uint64_t, SIGNED_OR_NOT(int64_t, <));
REDUCE(max_p64, "max.p64", uint64_t, SIGNED_OR_NOT(int64_t, >));

/* ---- questions ---- */

OP_FLOW(txq, "txq", "x")
{
	EACH(w->mask)
	{
		uint64_t number = REG(const uint64_t, a)[l];
		const struct ptx_texture *t = look_up(w, number);

		if (!t)
			ptx_fault(w, i, PTX_TRAP, "0x%llx is no texture or surface",
				(unsigned long long)number);
		REG(uint32_t, d)
		[l] = ptx_texture_ask(
			t, (enum ptx_texture_query)i->imm, REG(const uint32_t, b)[l]);
	}
	return i + 1;
}
