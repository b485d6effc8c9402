/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches, calls, barriers and what the lanes of a warp do together.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>
#include <stdlib.h>

static struct ptx_word label_of(struct ptx_build *b, const struct ptx_operand *o)
{
	if (o->kind != PTX_OPERAND_WORD)
		ptx_build_lacks(
			b, "%.*s: a label is expected", (int)b->st.text.n, b->st.text.p);
	return o->word;
}

/* A guarded branch carries its predicate itself. */
void ptx_decode_bra(struct ptx_build *b)
{
	struct ptx_word label = label_of(b, ptx_arg(b, 0));
	struct ptx_ins *ins;
	uint32_t guard, size;

	if (!b->guarded) {
		ptx_build_emit(b, "bra");
	} else {
		if (!ptx_build_register(b, b->guard, &guard, &size) || size != 1)
			ptx_build_lacks(b, "the guard %.*s is no predicate", (int)b->guard.n,
				b->guard.p);
		ins = ptx_build_emit(b, "bra.if");
		ins->a = guard;
		ins->guard_not = b->guard_not;
		b->guarded = false;
	}
	ptx_build_target(b, label);
}

/* brx.idx a, targets: a chain of comparisons. */
void ptx_decode_brx(struct ptx_build *b)
{
	const struct ptx_symbol *list = ptx_build_find(b, label_of(b, ptx_arg(b, 1)));
	uint32_t a = ptx_in(b, ptx_arg(b, 0), 4), p = ptx_build_temp(b, 1);
	struct ptx_ins *ins;

	if (!list || list->kind != PTX_SYM_TARGETS)
		ptx_build_lacks(b, "%.*s: no .branchtargets", (int)b->st.text.n, b->st.text.p);
	for (uint32_t k = 0; k < list->count; k++) {
		uint32_t value = ptx_build_constant(b, 4, k, PTX_FIXED);

		if (k + 1 < list->count) {
			ins = ptx_build_emit(b, "setp.eq.u32");
			ins->d = p;
			ins->a = a;
			ins->b = value;
			ins = ptx_build_emit(b, "bra.if");
			ins->a = p;
		} else {
			ptx_build_emit(b, "bra");
		}
		ptx_build_target(b, list->targets[k]);
	}
}

/* An argument is a .param variable, or a register or number that is stored in one first. */
static struct ptx_slot argument(
	struct ptx_build *b, const struct ptx_operand *o, uint32_t bytes)
{
	const struct ptx_symbol *symbol;
	struct ptx_slot slot = {0, bytes};
	struct ptx_ins *ins;
	uint32_t operand, size, in;
	char key[32];

	if (o->kind == PTX_OPERAND_WORD) {
		symbol = ptx_build_find(b, o->word);
		if (symbol && symbol->kind == PTX_SYM_FRAME)
			return (struct ptx_slot){
				(uint32_t)symbol->value, (uint32_t)symbol->bytes};
		if (ptx_build_register(b, o->word, &operand, &size) && size > 1)
			slot.size = size;
	}
	if (slot.size != 2 && slot.size != 4 && slot.size != 8)
		slot.size = 4;
	slot.offset = ptx_build_frame(b, slot.size, 8);
	in = ptx_in(b, o, slot.size);
	snprintf(key, sizeof(key), "st.F.u%u.u%u", slot.size * 8, slot.size * 8);
	ins = ptx_build_emit(b, key);
	ins->d = in;
	ins->imm = slot.offset;
	ins->f = 1;
	return slot;
}

static void add_callee(struct ptx_build *b, uint32_t callee)
{
	struct ptx_function *f = ptx_build_function(b);
	uint32_t *callees;

	for (uint32_t k = 0; k < f->ncallees; k++)
		if (f->callees[k] == callee)
			return;
	callees = realloc(f->callees, (f->ncallees + 1) * sizeof(*callees));
	if (!callees)
		ptx_build_fail(b, b->st.line, "out of memory");
	f->callees = callees;
	f->callees[f->ncallees++] = callee;
}

/* call{.uni} {(ret, ...),} target {, (arg, ...)} {, prototype or targets} */
void ptx_decode_call(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const struct ptx_operand *rets = NULL, *args = NULL, *target;
	const struct ptx_symbol *symbol;
	const struct ptx_function *callee = NULL;
	struct ptx_module *module = b->module;
	struct ptx_call *call;
	struct ptx_ins *ins;
	struct ptx_out outs[8];
	uint32_t k = 0, in = 0, operand, size, nouts = 0, index;

	if (ptx_arg(b, 0)->kind == PTX_OPERAND_GROUP)
		rets = ptx_arg(b, k++);
	target = ptx_arg(b, k++);
	if (k < st->noperands && st->operands[k].kind == PTX_OPERAND_GROUP)
		args = &st->operands[k++];
	symbol = ptx_build_find(b, target->word);
	if (symbol && symbol->kind == PTX_SYM_FUNCTION) {
		callee = &module->functions[symbol->value];
		add_callee(b, (uint32_t)symbol->value);
	} else if (ptx_build_register(b, target->word, &operand, &size) && size == 8) {
		in = operand;
		ptx_build_function(b)->has_indirect = true;
	} else {
		ptx_build_wrong(b, "no function %.*s", (int)target->word.n, target->word.p);
	}

	module->calls = ptx_build_grow(
		b, module->calls, module->ncalls, &b->call_room, sizeof(*module->calls));
	index = module->ncalls++;
	call = &module->calls[index];
	call->nargs = args ? args->nitems : 0;
	call->nrets = rets ? rets->nitems : 0;
	if (call->nrets > 8)
		ptx_build_lacks(b, "a call with more than 8 results");
	call->slots = calloc(call->nargs + call->nrets + 1, sizeof(*call->slots));
	if (!call->slots)
		ptx_build_fail(b, st->line, "out of memory");
	for (k = 0; k < call->nargs; k++)
		call->slots[k] = argument(b, &args->items[k],
			callee && k < callee->nparams ? callee->params[k].size : 4);
	for (k = 0; k < call->nrets; k++) {
		const struct ptx_operand *o = &rets->items[k];
		struct ptx_slot *slot = &call->slots[call->nargs + k];

		symbol = ptx_build_find(b, o->word);
		if (symbol && symbol->kind == PTX_SYM_FRAME) {
			*slot = (struct ptx_slot){
				(uint32_t)symbol->value, (uint32_t)symbol->bytes};
			continue;
		}
		size = 4;
		if (!ptx_is_sink(o) && !ptx_build_register(b, o->word, &operand, &size))
			ptx_build_lacks(b, "the call's result is no register");
		if (size < 2)
			ptx_build_lacks(b, "a predicate as result");
		outs[nouts] = ptx_out(b, o, size, false);
		outs[nouts++].size = size;
		*slot = (struct ptx_slot){ptx_build_frame(b, size, 8), size};
	}
	ins = ptx_build_emit(b, in ? "call.indirect" : "call");
	ins->a = in;
	ins->imm = in ? 0 : (uint64_t)(callee - module->functions);
	ins->e = index;
	nouts = 0;
	for (k = 0; k < call->nrets; k++) {
		struct ptx_slot *slot = &call->slots[call->nargs + k];
		char key[32];

		symbol = ptx_build_find(b, rets->items[k].word);
		if (symbol && symbol->kind == PTX_SYM_FRAME)
			continue;
		snprintf(key, sizeof(key), "ld.F.u%u.u%u", slot->size * 8, slot->size * 8);
		ins = ptx_build_emit(b, key);
		ins->d = outs[nouts++].operand;
		ins->imm = slot->offset;
		ins->f = 1;
	}
}

void ptx_decode_ret(struct ptx_build *b)
{
	const struct ptx_function *f = ptx_build_function(b);

	if (f->is_kernel) {
		ptx_build_emit(b, "exit");
		return;
	}
	for (uint32_t k = 0; k < b->nret_regs; k++) {
		struct ptx_operand o = ptx_word_operand(b->ret_regs[k]);
		struct ptx_ins *ins;
		uint32_t operand, size;
		char key[32];

		if (!ptx_build_register(b, o.word, &operand, &size) || size < 2)
			ptx_build_lacks(b, "a predicate as result");
		snprintf(key, sizeof(key), "st.F.u%u.u%u", size * 8, size * 8);
		ins = ptx_build_emit(b, key);
		ins->d = operand;
		ins->imm = f->rets[k].offset;
		ins->f = 1;
	}
	ptx_build_emit(b, "ret");
}

/* bar{.cta}.sync/arrive/red, barrier{.cta}..., bar.warp.sync, barrier.cluster.arrive/wait */
void ptx_decode_bar(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	struct ptx_ins *ins;
	uint32_t zero = ptx_build_constant(b, 4, 0, PTX_FIXED), id, count = zero;

	if (ptx_has_mod(st, "warp")) {
		id = ptx_in(b, ptx_arg(b, 0), 4);
		ins = ptx_build_emit(b, "bar.warp");
		ins->c = id;
		return;
	}
	if (ptx_has_mod(st, "cluster")) {
		ptx_build_emit(
			b, ptx_has_mod(st, "arrive") ? "cluster.arrive" : "cluster.wait");
		return;
	}
	if (ptx_has_mod(st, "red")) {
		const char *type = st->mod[st->nmods - 1];
		bool popc = ptx_has_mod(st, "popc");
		struct ptx_out out = ptx_out(b, ptx_arg(b, 0), popc ? 4 : 1, false);
		uint32_t p;

		(void)type;
		id = ptx_in(b, ptx_arg(b, 1), 4);
		if (st->noperands > 3)
			count = ptx_in(b, ptx_arg(b, 2), 4);
		p = ptx_in(b, ptx_arg(b, st->noperands > 3 ? 3 : 2), 1);
		ins = ptx_build_emit(b, popc			 ? "bar.red.popc"
					: ptx_has_mod(st, "and") ? "bar.red.and"
								 : "bar.red.or");
		ins->d = out.operand;
		ins->a = id;
		ins->b = count;
		ins->c = p;
		ins->f = popc			  ? PTX_RED_POPC
			 : ptx_has_mod(st, "and") ? PTX_RED_AND
						  : PTX_RED_OR;
		return;
	}
	id = ptx_in(b, ptx_arg(b, 0), 4);
	if (st->noperands > 1)
		count = ptx_in(b, ptx_arg(b, 1), 4);
	ins = ptx_build_emit(b, ptx_has_mod(st, "arrive") ? "bar.arrive" : "bar.sync");
	ins->a = id;
	ins->b = count;
}

/* shfl.sync.mode.b32 d|p, a, b, c, mask; vote.sync.x d, p, mask; match.x.sync; redux.sync;
 * elect.sync d|p, mask.  The handlers find the member mask in e. */
void ptx_decode_sync(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	char root = st->root.p[0], key[64];
	const struct ptx_operand *d = ptx_arg(b, 0);
	struct ptx_operand second = ptx_word_operand(d->second);
	struct ptx_out out, p = {0};
	struct ptx_ins *ins;
	const char *type = st->nmods ? st->mod[st->nmods - 1] : "";
	bool sync = ptx_has_mod(st, "sync");
	uint32_t full = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED), members = full;
	uint32_t v[3] = {0}, size = 4;

	if (root == 'e') { /* elect */
		out = ptx_out(b, d, 4, false);
		p = d->second.n ? ptx_out(b, &second, 1, false) : out;
		if (!d->second.n)
			p.operand = ptx_build_temp(b, 1);
		members = ptx_in(b, ptx_arg(b, 1), 4);
		ins = ptx_build_emit(b, "elect");
		ins->d = out.operand;
		ins->f = p.operand;
		ins->e = members;
		return;
	}
	if (root == 's') {
		out = ptx_out(b, d, 4, false);
		p.operand = ptx_build_temp(b, 1);
		if (d->second.n)
			p = ptx_out(b, &second, 1, false);
		for (uint32_t k = 0; k < 3; k++)
			v[k] = ptx_in(b, ptx_arg(b, k + 1), 4);
		if (sync)
			members = ptx_in(b, ptx_arg(b, 4), 4);
		snprintf(key, sizeof(key), "shfl.%s",
			ptx_has_mod(st, "up")	  ? "up"
			: ptx_has_mod(st, "down") ? "down"
			: ptx_has_mod(st, "bfly") ? "bfly"
						  : "idx");
	} else if (root == 'v') {
		bool ballot = ptx_has_mod(st, "ballot");

		out = ptx_out(b, d, ballot ? 4 : 1, false);
		v[0] = ptx_in(b, ptx_arg(b, 1), 1);
		if (sync)
			members = ptx_in(b, ptx_arg(b, 2), 4);
		snprintf(key, sizeof(key), "vote.%s",
			ballot			 ? "ballot"
			: ptx_has_mod(st, "all") ? "all"
			: ptx_has_mod(st, "any") ? "any"
						 : "uni");
	} else if (root == 'm') {
		size = ptx_type_bytes(type);
		out = ptx_out(b, d, 4, false);
		p.operand = ptx_build_temp(b, 1);
		if (d->second.n)
			p = ptx_out(b, &second, 1, false);
		v[0] = ptx_in(b, ptx_arg(b, 1), size);
		members = ptx_in(b, ptx_arg(b, 2), 4);
		snprintf(key, sizeof(key), "match.%s.b%u",
			ptx_has_mod(st, "all") ? "all" : "any", size * 8);
	} else {
		bool minmax = ptx_has_mod(st, "min") || ptx_has_mod(st, "max");

		out = ptx_out(b, d, 4, false);
		v[0] = ptx_in(b, ptx_arg(b, 1), 4);
		members = ptx_in(b, ptx_arg(b, 2), 4);
		for (uint32_t k = 0; k < st->nmods; k++)
			if (!strcmp(st->mod[k], "abs") || !strcmp(st->mod[k], "NaN") ||
				!strcmp(type, "f32"))
				ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		snprintf(key, sizeof(key), "redux.%s.%s", st->nmods > 1 ? st->mod[1] : "",
			minmax ? type : "b32");
	}
	ins = ptx_build_emit(b, key);
	ins->d = out.operand;
	ins->f = p.operand;
	ins->a = v[0];
	ins->b = v[1];
	ins->c = v[2];
	ins->e = members;
	ptx_out_finish(b, &out);
}
