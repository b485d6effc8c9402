/* SPDX-License-Identifier: Apache-2.0
 *
 * The growing module: symbols in scopes, registers, the pool of constants, instructions.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ptx_build_fail(struct ptx_build *b, int line, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	b->error->status = PTX_SYNTAX;
	b->error->line = line;
	vsnprintf(b->error->text, sizeof(b->error->text), format, ap);
	va_end(ap);
	longjmp(b->failed, 1);
}

void ptx_build_newer(struct ptx_build *b, int line)
{
	*b->error = (struct ptx_error){.status = PTX_VERSION, .line = line};
	snprintf(b->error->text, sizeof(b->error->text),
		"PTX %d.%d is newer than %d.%d, the newest that is known",
		b->module->version / 10, b->module->version % 10, PTX_VERSION_NEWEST / 10,
		PTX_VERSION_NEWEST % 10);
	longjmp(b->failed, 1);
}

void ptx_build_lacks(struct ptx_build *b, const char *format, ...)
{
	struct ptx_function *f;
	char text[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (!b->in_statement)
		ptx_build_fail(b, b->st.line, "%s", text);
	f = ptx_build_function(b);
	if (!f->bad_line) {
		f->bad_line = b->st.line;
		f->bad_text = strdup(text);
	}
	longjmp(b->unsupported, 1);
}

#define UNDEFINED "no definition of the variable %.*s"

void ptx_build_await(struct ptx_build *b, const struct ptx_symbol *symbol)
{
	const struct ptx_word *name = &symbol->name->word;

	if (symbol->value == UINT64_MAX)
		ptx_build_lacks(b, UNDEFINED, (int)name->n, name->p);
	b->awaiting = ptx_build_grow(
		b, b->awaiting, b->nawaiting, &b->awaiting_room, sizeof(*b->awaiting));
	b->awaiting[b->nawaiting++] = (struct ptx_awaiting){symbol, b->function, b->st.line};
}

void ptx_build_awaited(struct ptx_build *b)
{
	for (uint32_t k = 0; k < b->nawaiting; k++) {
		const struct ptx_awaiting *use = &b->awaiting[k];
		const struct ptx_word *name = &use->symbol->name->word;
		struct ptx_function *f = &b->module->functions[use->function];

		if (!use->symbol->awaited || f->bad_line)
			continue;
		f->bad_line = use->line;
		if (asprintf(&f->bad_text, UNDEFINED, (int)name->n, name->p) < 0)
			f->bad_text = NULL;
	}
}

void *ptx_build_alloc(struct ptx_build *b, size_t size)
{
	struct ptx_chunk *chunk = b->chunks;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > 65536 ? size : 65536;

		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			ptx_build_fail(b, b->scan.line, "out of memory");
		chunk->size = room;
		chunk->next = b->chunks;
		b->chunks = chunk;
	}
	p = chunk->bytes + chunk->used;
	chunk->used += size;
	return p;
}

void *ptx_build_grow(
	struct ptx_build *b, void *array, uint32_t used, uint32_t *room, size_t item)
{
	uint32_t n;
	void *p;

	if (used < *room)
		return array;
	n = *room ? *room * 2 : 64;
	if (n <= *room)
		ptx_build_fail(b, b->scan.line, "the module is too large");
	p = realloc(array, n * item);
	if (!p)
		ptx_build_fail(b, b->scan.line, "out of memory");
	memset((char *)p + *room * item, 0, (n - *room) * item);
	*room = n;
	return p;
}

static uint32_t hash_word(struct ptx_word word)
{
	uint32_t h = 2166136261u;

	for (uint32_t k = 0; k < word.n; k++)
		h = (h ^ (unsigned char)word.p[k]) * 16777619u;
	return h;
}

static struct ptx_name *ptx_build_name(struct ptx_build *b, struct ptx_word word)
{
	struct ptx_name **bucket = &b->names[hash_word(word) % PTX_NAME_BUCKETS], *name;

	for (name = *bucket; name; name = name->next)
		if (name->word.n == word.n &&
			(!word.n || !memcmp(name->word.p, word.p, word.n)))
			return name;
	name = ptx_build_alloc(b, sizeof(*name));
	name->word = word;
	name->next = *bucket;
	*bucket = name;
	return name;
}

struct ptx_symbol *ptx_build_symbol(
	struct ptx_build *b, struct ptx_word word, enum ptx_symbol_kind kind)
{
	struct ptx_name *name = ptx_build_name(b, word);
	struct ptx_symbol *symbol = name->symbol;

	/* The same name again in one scope: a declaration before the definition. */
	if (symbol && symbol->depth == b->depth && symbol->kind == kind)
		return symbol;
	symbol = ptx_build_alloc(b, sizeof(*symbol));
	symbol->kind = kind;
	symbol->name = name;
	symbol->outer = name->symbol;
	symbol->below = b->scope;
	symbol->depth = b->depth;
	name->symbol = symbol;
	b->scope = symbol;
	return symbol;
}

struct ptx_symbol *ptx_build_find(struct ptx_build *b, struct ptx_word word)
{
	return ptx_build_name(b, word)->symbol;
}

void ptx_build_open(struct ptx_build *b)
{
	b->depth++;
}

/* Leaves a scope: labels of it are resolved, other branches are left to the scope around. */
void ptx_build_close(struct ptx_build *b)
{
	uint32_t kept = 0;

	for (uint32_t k = 0; k < b->nfixups; k++) {
		struct ptx_fixup *fixup = &b->fixups[k];

		if (fixup->depth == b->depth) {
			struct ptx_symbol *symbol = ptx_build_find(b, fixup->label);

			if (symbol && symbol->kind == PTX_SYM_LABEL &&
				symbol->depth == b->depth) {
				b->module->code[fixup->ins].imm = symbol->value;
				continue;
			}
			fixup->depth--;
			if (fixup->depth == 0)
				ptx_build_fail(b, fixup->line, "no label %.*s in this function",
					(int)fixup->label.n, fixup->label.p);
		}
		b->fixups[kept++] = *fixup;
	}
	b->nfixups = kept;
	while (b->scope && b->scope->depth == b->depth) {
		b->scope->name->symbol = b->scope->outer;
		b->scope = b->scope->below;
	}
	b->depth--;
}

struct ptx_function *ptx_build_function(struct ptx_build *b)
{
	return &b->module->functions[b->function];
}

static uint32_t lanes_bytes(uint32_t size)
{
	return size == 1 ? 64 : size * PTX_LANES;
}

uint32_t ptx_build_reg(struct ptx_build *b, uint32_t size)
{
	struct ptx_function *f = ptx_build_function(b);
	uint32_t at = f->reg_bytes;

	f->reg_bytes += lanes_bytes(size);
	f->reg_count += size > 1;
	if (f->reg_bytes > (64u << 20))
		ptx_build_fail(b, b->scan.line, "%s has too many registers", f->name);
	return at;
}

static unsigned size_class(uint32_t size)
{
	return size == 1 ? 0 : (unsigned)__builtin_ctz(size);
}

uint32_t ptx_build_temp(struct ptx_build *b, uint32_t size)
{
	unsigned k = size_class(size);
	uint32_t n = b->used_temps[k]++;

	if (n >= PTX_MAX_TEMPS)
		ptx_build_lacks(b, "the statement needs too many temporaries");
	if (n == b->ntemps[k])
		b->temps[k][b->ntemps[k]++] = ptx_build_reg(b, size);
	return b->temps[k][n];
}

uint32_t ptx_build_constant(struct ptx_build *b, uint32_t size, uint64_t value, uint32_t base)
{
	uint64_t mixed = (value ^ value >> 29) * UINT64_C(0x9e3779b97f4a7c15) + size + base;
	struct ptx_constant **bucket = &b->constants[(mixed >> 40) % PTX_CONSTANT_BUCKETS], *c;
	struct ptx_module *module = b->module;
	uint32_t at, bytes = lanes_bytes(size);

	for (c = *bucket; c; c = c->next)
		if (c->value == value && c->size == size && c->base == base)
			return c->operand;

	at = (uint32_t)module->pool_bytes;
	if (module->pool_bytes + bytes > b->pool_room) {
		uint32_t room = b->pool_room ? b->pool_room * 2 : 65536;
		unsigned char *pool = room > b->pool_room ? aligned_alloc(64, room) : NULL;

		if (!pool)
			ptx_build_fail(b, b->scan.line, "out of memory for constants");
		if (at)
			memcpy(pool, module->pool, at);
		free(module->pool);
		module->pool = pool;
		b->pool_room = room;
	}
	module->pool_bytes += bytes;
	if (size == 1) {
		uint32_t mask = value ? UINT32_MAX : 0;

		memset(module->pool + at, 0, bytes);
		memcpy(module->pool + at, &mask, sizeof(mask));
	} else {
		uint64_t wide[2] = {value, 0};

		for (uint32_t l = 0; l < PTX_LANES; l++)
			memcpy(module->pool + at + l * size, wide, size);
	}
	if (base != PTX_FIXED) {
		b->relocations = ptx_build_grow(b, b->relocations, b->nrelocations,
			&b->relocation_room, sizeof(*b->relocations));
		b->relocations[b->nrelocations++] = (struct ptx_relocation){at, size, base};
	}
	c = ptx_build_alloc(b, sizeof(*c));
	*c = (struct ptx_constant){*bucket, value, size, at | 1, base};
	*bucket = c;
	return c->operand;
}

uint32_t ptx_build_frame(struct ptx_build *b, uint32_t size, uint32_t align)
{
	struct ptx_function *f = ptx_build_function(b);
	uint32_t at = (f->frame_bytes + align - 1) & ~(align - 1);

	if (size > (64u << 20) || at > (64u << 20))
		ptx_build_fail(b, b->scan.line, "%s has too much local memory", f->name);
	f->frame_bytes = at + size;
	return at;
}

const char *ptx_word_text(struct ptx_build *b, struct ptx_word word)
{
	char *text = ptx_build_alloc(b, word.n + 1);

	if (word.n) /* no word has no p */
		memcpy(text, word.p, word.n);
	return text;
}

struct ptx_ins *ptx_build_emit(struct ptx_build *b, const char *name)
{
	const struct ptx_op *op = ptx_op_find(name);
	struct ptx_module *module = b->module;
	struct ptx_ins *ins;
	uint32_t room = b->code_room;

	if (!op) {
		if (!strcmp(name, ptx_word_text(b, b->st.text)))
			ptx_build_lacks(b, "%s", name);
		ptx_build_lacks(b, "%.*s (as %s)", (int)b->st.text.n, b->st.text.p, name);
	}
	module->code = ptx_build_grow(
		b, module->code, module->ncode, &b->code_room, sizeof(*module->code));
	if (room != b->code_room) {
		int *lines = realloc(module->lines, b->code_room * sizeof(*lines));

		if (!lines)
			ptx_build_fail(b, b->scan.line, "out of memory");
		module->lines = lines;
	}
	module->lines[module->ncode] = b->st.line;
	ins = &module->code[module->ncode++];
	memset(ins, 0, sizeof(*ins));
	ins->run[0] = op->full;
	ins->run[1] = op->part;
	ins->guard = PTX_NO_GUARD;
	if (strchr(op->form, '!'))
		b->flow = true;
	return ins;
}

static void add_branch(struct ptx_build *b, uint32_t ins)
{
	b->branches = ptx_build_grow(
		b, b->branches, b->nbranches, &b->branch_room, sizeof(*b->branches));
	b->branches[b->nbranches++] = ins;
}

void ptx_build_target(struct ptx_build *b, struct ptx_word label)
{
	uint32_t ins = b->module->ncode - 1;

	add_branch(b, ins);
	b->fixups =
		ptx_build_grow(b, b->fixups, b->nfixups, &b->fixup_room, sizeof(*b->fixups));
	b->fixups[b->nfixups++] = (struct ptx_fixup){ins, label, b->depth, b->st.line};
}

/* Where its mentions are counted; NULL: no register of that name. */
static uint32_t *find_register(
	struct ptx_build *b, struct ptx_word word, uint32_t *operand, uint32_t *size)
{
	struct ptx_symbol *symbol = ptx_build_find(b, word);
	struct ptx_word stem = word;
	uint32_t number = 0, scale = 1;

	if (symbol) {
		if (symbol->kind != PTX_SYM_REG)
			return NULL;
		if (!symbol->mentions)
			symbol->mentions = ptx_build_alloc(b, sizeof(uint32_t));
		*operand = (uint32_t)symbol->value;
		*size = symbol->size;
		return symbol->mentions;
	}
	while (stem.n > 1 && stem.p[stem.n - 1] >= '0' && stem.p[stem.n - 1] <= '9' &&
		scale <= 100000000) {
		stem.n--;
		number += (uint32_t)(stem.p[stem.n] - '0') * scale;
		scale *= 10;
		symbol = ptx_build_find(b, stem);
		if (symbol && symbol->kind == PTX_SYM_RANGE && number < symbol->count) {
			if (symbol->slots[number] == UINT32_MAX)
				symbol->slots[number] = ptx_build_reg(b, symbol->size);
			*operand = symbol->slots[number];
			*size = symbol->size;
			return &symbol->mentions[number];
		}
	}
	return NULL;
}

bool ptx_build_register(
	struct ptx_build *b, struct ptx_word word, uint32_t *operand, uint32_t *size)
{
	uint32_t *mentions = find_register(b, word, operand, size);

	if (mentions)
		*mentions = !*mentions || *mentions == b->statement ? b->statement : UINT32_MAX;
	return mentions != NULL;
}

const uint32_t *ptx_build_mentions(struct ptx_build *b, struct ptx_word word)
{
	uint32_t operand, size;

	return find_register(b, word, &operand, &size);
}

/* ptxas leaves such a load out, and its address may be none: tiny-cuda-nn loads what its
 * activation does not look at from NULL. */
void ptx_build_drop_loads(struct ptx_build *b)
{
	const struct ptx_op *op = ptx_op_find("mov.b32");

	for (uint32_t k = 0; k < b->nloads; k++) {
		const struct ptx_fragment_load *load = &b->loads[k];
		struct ptx_ins *ins = &b->module->code[load->ins];
		bool used = false;

		for (uint32_t n = 0; n < load->count; n++)
			used |= *load->mentions[n] == UINT32_MAX;
		if (used)
			continue;
		ins->run[0] = op->full;
		ins->run[1] = op->part;
		ins->a = ins->d;
	}
	b->nloads = 0;
}

/* A guard wraps a lone instruction; anything more becomes a branch around it. */
void ptx_statement_end(struct ptx_build *b)
{
	struct ptx_module *module = b->module;
	uint32_t n = module->ncode - b->first, guard, size;
	struct ptx_ins *ins;

	memset(b->used_temps, 0, sizeof(b->used_temps));
	if (b->guarded && n) {
		if (!ptx_build_register(b, b->guard, &guard, &size) || size != 1)
			ptx_build_fail(b, b->st.line, "the guard %.*s is not a predicate",
				(int)b->guard.n, b->guard.p);
		ins = &module->code[b->first];
		if (n == 1 && !b->flow) {
			ins->guard = guard;
			ins->guard_not = b->guard_not;
		} else {
			ptx_build_emit(b, "bra.if");
			ins = &module->code[b->first];
			memmove(module->lines + b->first + 1, module->lines + b->first,
				n * sizeof(*module->lines));
			memmove(ins + 1, ins, n * sizeof(*ins));
			*ins = (struct ptx_ins){.guard = PTX_NO_GUARD,
				.a = guard,
				.guard_not = !b->guard_not,
				.imm = module->ncode};
			ins->run[0] = ptx_op_find("bra.if")->full;
			ins->run[1] = ptx_op_find("bra.if")->part;
			for (uint32_t k = 0; k < b->nfixups; k++)
				b->fixups[k].ins += b->fixups[k].ins >= b->first;
			for (uint32_t k = b->nbranches; k-- && b->branches[k] >= b->first;)
				b->branches[k]++;
			add_branch(b, b->first);
		}
	}
	for (uint32_t k = b->first; k < module->ncode; k++) {
		ins = &module->code[k];
		if ((ins->guard != PTX_NO_GUARD || ins->mode) && !ins->inner[0]) {
			const struct ptx_op *wrap =
				ptx_op_find(ins->mode ? "wrap.mode" : "wrap");

			memcpy(ins->inner, ins->run, sizeof(ins->run));
			ins->run[0] = wrap->full;
			ins->run[1] = wrap->part;
		}
	}
}
