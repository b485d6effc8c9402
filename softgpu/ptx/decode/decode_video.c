/* SPDX-License-Identifier: Apache-2.0
 *
 * Video instructions: vadd.u32.s32.u32.sat.add d, a.b1, b.h0, c; vabsdiff4.u32.u32.u32.add d,
 * a, b, c.
 */
#include "softgpu/ptx/parse/build.h"
#include "softgpu/ptx/video.h"

#include <stdio.h>

static unsigned index_in(struct ptx_word word, const char *const *names, unsigned count)
{
	unsigned k = 0;

	while (k < count && !ptx_word_is(word, names[k]))
		k++;
	return k;
}

static unsigned part_of(struct ptx_build *b, const struct ptx_operand *o)
{
	static const char *const names[] = {"", "b0", "b1", "b2", "b3", "h0", "h1"};
	unsigned k = index_in(o->part, names, 7);

	if (k == 7)
		ptx_build_lacks(
			b, "%.*s: the part of an operand", (int)b->st.text.n, b->st.text.p);
	return k;
}

/* vadd2 is `add` with two parts. */
static struct video read_name(struct ptx_build *b)
{
	static const char *const names[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl",
		"vshr", "vset", "vavrg", "vmad"};
	struct ptx_word name = b->st.root;
	struct video v = {.parts = 1};

	if (name.p[name.n - 1] == '2' || name.p[name.n - 1] == '4')
		v.parts = (unsigned)(name.p[--name.n] - '0') & 7;
	v.op = index_in(name, names, 10) & 15;
	return v;
}

static void read_mods(struct ptx_build *b, struct video *v)
{
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
	const struct ptx_statement *st = &b->st;
	unsigned types = v->op == VIDEO_SET, compare = 6;

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];
		unsigned found = index_in(st->mods[k], compares, 6);

		if (!strcmp(mod, "u32") || !strcmp(mod, "s32")) {
			const bool is_signed = mod[0] == 's';

			if (types == 0)
				v->d_signed = is_signed;
			else if (types == 1)
				v->a_signed = is_signed;
			else
				v->b_signed = is_signed;
			types++;
		} else if (v->op == VIDEO_MAD && !strcmp(mod, "po")) {
			v->plus_one = true;
		} else if (v->op == VIDEO_MAD &&
			   (!strcmp(mod, "shr7") || !strcmp(mod, "shr15"))) {
			v->scale = mod[3] == '7' ? 7 : 15;
		} else if (!strcmp(mod, "sat")) {
			v->saturate = true;
		} else if (!strcmp(mod, "wrap")) {
			v->wrap = true;
		} else if (!strcmp(mod, "add")) {
			v->second = VIDEO_PLUS;
		} else if (!strcmp(mod, "min")) {
			v->second = VIDEO_LEAST;
		} else if (!strcmp(mod, "max")) {
			v->second = VIDEO_MOST;
		} else if (found < 6) {
			compare = found;
		} else if (strcmp(mod, "clamp")) {
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		}
	}
	if (types != 3 || (v->op == VIDEO_SET) != (compare < 6))
		ptx_build_wrong(b, "%.*s: its types", (int)st->text.n, st->text.p);
	v->compare = compare & 7;
}

void ptx_decode_video(struct ptx_build *b)
{
	struct video v = read_name(b);
	struct ptx_out out;
	struct ptx_ins *ins;
	uint32_t in[3] = {0};

	read_mods(b, &v);
	v.d = part_of(b, ptx_arg(b, 0)) & 7;
	v.a = part_of(b, ptx_arg(b, 1)) & 7;
	v.b = part_of(b, ptx_arg(b, 2)) & 7;
	if (v.op == VIDEO_MAD) {
		v.second = VIDEO_PLUS;
		v.minus_product = ptx_arg(b, 1)->minus != ptx_arg(b, 2)->minus;
		v.minus_c = ptx_arg(b, 3)->minus;
	}
	if (v.d != VIDEO_ALL)
		v.second = VIDEO_MERGE;
	if (v.parts > 1 && (v.a || v.b || v.d))
		ptx_build_lacks(b, "%.*s: parts of operands", (int)b->st.text.n, b->st.text.p);
	out = ptx_out(b, ptx_arg(b, 0), 4, v.d_signed);
	for (uint32_t k = 0; k < 3; k++)
		in[k] = k < 2 || v.second != VIDEO_ALONE || b->st.noperands > 3
				? ptx_in(b, ptx_arg(b, k + 1), 4)
				: in[0];
	ins = ptx_build_emit(b, "video");
	ins->d = out.operand;
	ins->a = in[0];
	ins->b = in[1];
	ins->c = in[2];
	memcpy(&ins->imm, &v, sizeof(v));
	ptx_out_finish(b, &out);
}
