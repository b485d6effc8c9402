/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a module: directives, variables with their initialisers, functions.  Statements go to
 * ptx_decode.  An instruction that is not served makes its function unusable, not the module.
 */
#include "softgpu/ptx_build.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_ARRAY (UINT64_C(1) << 40)

/* A variable's declaration: .align 4 .b8 name[16][2] */
struct declaration {
	struct ptx_word name;
	uint32_t element, align, vector;
	uint64_t bytes;
	bool is_pred, is_opaque, is_unsized, has_align;
	uint32_t range; /* name<range> */
};

static uint64_t read_int(struct ptx_build *b)
{
	struct ptx_number number;

	if (!ptx_scan_number(&b->scan, &number) || number.kind != PTX_INT)
		ptx_build_fail(b, b->scan.line, "a number is expected");
	return number.bits;
}

static void expect(struct ptx_build *b, char c)
{
	if (!ptx_scan_accept(&b->scan, c))
		ptx_build_fail(b, b->scan.line, "'%c' is expected, found '%c'", c,
			ptx_scan_peek(&b->scan));
}

static struct ptx_word read_word(struct ptx_build *b)
{
	struct ptx_word word;

	if (!ptx_scan_word(&b->scan, &word))
		ptx_build_fail(b, b->scan.line, "a name is expected");
	return word;
}

/* The dotted attributes before a variable's name, then the name and its dimensions. */
static void read_declaration(struct ptx_build *b, struct declaration *decl)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;
	uint64_t count = 1, n;

	*decl = (struct declaration){.vector = 1};
	while (ptx_scan_accept(s, '.')) {
		if (!ptx_scan_tail(s, &word))
			ptx_build_fail(b, s->line, "a type is expected");
		if (ptx_word_is(word, "align")) {
			decl->align = (uint32_t)read_int(b);
			decl->has_align = true;
			if (!decl->align || decl->align > 65536 ||
				decl->align & (decl->align - 1))
				ptx_build_fail(b, s->line, ".align is not a power of two");
		} else if (ptx_word_is(word, "v2") || ptx_word_is(word, "v4")) {
			decl->vector = (uint32_t)(word.p[1] - '0');
		} else if (ptx_word_is(word, "pred")) {
			decl->element = 1;
			decl->is_pred = true;
		} else if (ptx_word_is(word, "texref") || ptx_word_is(word, "samplerref") ||
			   ptx_word_is(word, "surfref")) {
			decl->element = 8;
			decl->is_opaque = true;
		} else if (ptx_word_is(word, "attribute")) {
			expect(b, '(');
			ptx_scan_past(s, ')');
		} else if (ptx_word_is(word, "ptr") || ptx_word_is(word, "global") ||
			   ptx_word_is(word, "const") || ptx_word_is(word, "shared") ||
			   ptx_word_is(word, "local") || ptx_word_is(word, "noreturn")) {
			/* what a pointer parameter points to */
		} else {
			char text[16] = {0};

			if (word.n < sizeof(text))
				memcpy(text, word.p, word.n);
			decl->element = ptx_type_bytes(text);
			if (!decl->element)
				ptx_build_fail(
					b, s->line, "unknown type .%.*s", (int)word.n, word.p);
		}
	}
	if (!decl->element)
		ptx_build_fail(b, s->line, "a declaration without a type");
	decl->name = read_word(b);
	if (ptx_scan_accept(s, '<')) {
		n = read_int(b);
		if (n > 10000000)
			ptx_build_fail(b, s->line, "too many registers");
		decl->range = (uint32_t)n;
		expect(b, '>');
	}
	while (ptx_scan_accept(s, '[')) {
		if (ptx_scan_accept(s, ']')) {
			decl->is_unsized = true;
			continue;
		}
		n = read_int(b);
		expect(b, ']');
		if (n && count > MAX_ARRAY / n)
			ptx_build_fail(b, s->line, "the array is too large");
		count *= n;
	}
	decl->bytes = (uint64_t)decl->element * decl->vector * count;
	if (decl->bytes > MAX_ARRAY)
		ptx_build_fail(b, s->line, "the array is too large");
	if (!decl->has_align)
		decl->align = decl->element * decl->vector;
}

static void put_pointer(struct ptx_build *b, struct ptx_pointer pointer)
{
	b->pointers = ptx_build_grow(
		b, b->pointers, b->npointers, &b->pointer_room, sizeof(*b->pointers));
	b->pointers[b->npointers++] = pointer;
}

/* One value of an initialiser: number, name, name+8, generic(name), 0xFF00(name). */
static void read_value(struct ptx_build *b, uint64_t at, uint32_t element)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_pointer pointer = {.at = at, .bytes = (uint8_t)element, .line = s->line};
	struct ptx_number number;
	struct ptx_word word;
	bool inside = false;

	if (ptx_scan_number(s, &number)) {
		if (!ptx_scan_accept(s, '(')) {
			uint64_t bits = number.bits;

			if (number.kind == PTX_F64 && element == 4) {
				double value;
				float narrow;
				uint32_t low;

				memcpy(&value, &bits, sizeof(value));
				narrow = (float)value;
				memcpy(&low, &narrow, sizeof(low));
				bits = low;
			}
			memcpy(b->data + at, &bits, element < 8 ? element : 8);
			return;
		}
		pointer.shift = number.bits ? (uint8_t)__builtin_ctzll(number.bits) : 0;
		inside = true;
	}
	word = read_word(b);
	if (ptx_word_is(word, "generic")) {
		expect(b, '(');
		word = read_word(b);
		if (ptx_scan_accept(s, '+'))
			pointer.value = read_int(b);
		expect(b, ')');
	}
	pointer.name = word;
	if (ptx_scan_accept(s, '+'))
		pointer.value += read_int(b);
	else if (ptx_scan_peek(s) == '-')
		pointer.value += read_int(b);
	if (inside)
		expect(b, ')');
	put_pointer(b, pointer);
}

static void data_room(struct ptx_build *b, uint64_t bytes)
{
	size_t room = b->data_room ? b->data_room : 4096;
	unsigned char *data;

	if (bytes <= b->data_room)
		return;
	if (bytes > (UINT64_C(1) << 34))
		ptx_build_fail(b, b->scan.line, "the module's variables are too large");
	while (room < bytes)
		room *= 2;
	data = realloc(b->data, room);
	if (!data)
		ptx_build_fail(b, b->scan.line, "out of memory for the module's variables");
	memset(data + b->data_room, 0, room - b->data_room);
	b->data = data;
	b->data_room = room;
}

/* { 1, {2, 3}, ... }: fills from `at`, returns the end of what was given. */
static uint64_t read_list(
	struct ptx_build *b, uint64_t at, uint32_t element, uint64_t limit, bool grows)
{
	struct ptx_scan *s = &b->scan;

	if (ptx_scan_accept(s, '}'))
		return at;
	do {
		if (ptx_scan_accept(s, '{')) {
			at = read_list(b, at, element, limit, grows);
			continue;
		}
		if (grows)
			data_room(b, at + element);
		else if (at + element > limit)
			ptx_build_fail(b, s->line, "more initial values than the variable has");
		read_value(b, at, element);
		at += element;
	} while (ptx_scan_accept(s, ','));
	expect(b, '}');
	return at;
}

static void add_global(
	struct ptx_build *b, struct declaration *decl, uint64_t offset, bool is_const)
{
	struct ptx_module *module = b->module;

	module->globals = ptx_build_grow(b, module->globals, module->nglobals, &b->global_room,
		sizeof(*module->globals));
	module->globals[module->nglobals++] = (struct ptx_global){
		strndup(decl->name.p, decl->name.n), offset, decl->bytes, is_const};
}

static void read_global(struct ptx_build *b, bool is_const, bool is_extern)
{
	struct ptx_scan *s = &b->scan;
	struct declaration decl;
	struct ptx_symbol *symbol;
	uint64_t at, end;

	do {
		read_declaration(b, &decl);
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_GLOBAL);
		if (symbol->own) { /* declared again */
			if (ptx_scan_accept(s, '='))
				ptx_build_fail(b, s->line, "%.*s is defined twice",
					(int)decl.name.n, decl.name.p);
			continue;
		}
		at = (b->data_bytes + decl.align - 1) & ~(uint64_t)(decl.align - 1);
		symbol->value = at;
		symbol->bytes = decl.bytes;
		if (is_extern) {
			/* Defined elsewhere, or below; addressed only if it turns up. */
			symbol->value = UINT64_MAX;
			symbol->own = false;
			continue;
		}
		symbol->own = true;
		end = at + decl.bytes;
		data_room(b, end);
		if (ptx_scan_accept(s, '=')) {
			if (ptx_scan_accept(s, '{'))
				at = read_list(b, at, decl.element, end, decl.is_unsized);
			else
				read_value(b, at, decl.element);
		}
		if (decl.is_unsized) {
			end = at > end ? at : end;
			decl.bytes = end - symbol->value;
		}
		b->data_bytes = end;
		if (is_const)
			b->module->const_bytes += decl.bytes;
		add_global(b, &decl, symbol->value, is_const);
	} while (ptx_scan_accept(s, ','));
	expect(b, ';');
}

static void read_shared(struct ptx_build *b, bool is_extern)
{
	struct declaration decl;
	struct ptx_symbol *symbol;

	do {
		bool inside = b->function != UINT32_MAX;
		bool own = inside && ptx_build_function(b)->is_kernel;
		uint32_t *total =
			own ? &ptx_build_function(b)->shared_bytes : &b->module->shared_bytes;
		uint64_t at;

		read_declaration(b, &decl);
		if (is_extern && !decl.bytes)
			decl.is_unsized = true;
		if (is_extern || decl.is_unsized) {
			symbol = ptx_build_symbol(b, decl.name, PTX_SYM_DYNAMIC);
			if (decl.align > b->module->dynamic_align)
				b->module->dynamic_align = decl.align;
			continue;
		}
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_SHARED);
		if (symbol->bytes)
			continue;
		at = (*total + decl.align - 1) & ~(uint64_t)(decl.align - 1);
		if (at + decl.bytes > PTX_MAX_SHARED)
			ptx_build_fail(b, b->scan.line, "too much shared memory");
		symbol->value = at;
		symbol->own = own;
		symbol->bytes = decl.bytes;
		*total = (uint32_t)(at + decl.bytes);
	} while (ptx_scan_accept(&b->scan, ','));
	expect(b, ';');
}

/* .reg .b32 %r<10>, x, y; */
static void read_registers(struct ptx_build *b)
{
	struct declaration decl;

	do {
		struct ptx_symbol *symbol;

		if (ptx_scan_peek(&b->scan) == '.') {
			read_declaration(b, &decl);
		} else {
			uint32_t element = decl.element;
			bool is_pred = decl.is_pred;

			decl = (struct declaration){.element = element, .is_pred = is_pred};
			decl.name = read_word(b);
			if (ptx_scan_accept(&b->scan, '<')) {
				decl.range = (uint32_t)read_int(b);
				expect(b, '>');
			}
		}
		symbol = ptx_build_symbol(
			b, decl.name, decl.range ? PTX_SYM_RANGE : PTX_SYM_REG);
		symbol->size = decl.is_pred ? 1 : decl.element < 2 ? 2 : decl.element;
		if (decl.range) {
			symbol->count = decl.range;
			symbol->slots = ptx_build_alloc(b, decl.range * sizeof(uint32_t));
			memset(symbol->slots, 0xff, decl.range * sizeof(uint32_t));
		} else {
			symbol->value = ptx_build_reg(b, symbol->size);
		}
	} while (ptx_scan_accept(&b->scan, ','));
	expect(b, ';');
}

static void read_frame_variable(struct ptx_build *b)
{
	struct declaration decl;

	do {
		struct ptx_symbol *symbol;

		read_declaration(b, &decl);
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_FRAME);
		if (decl.bytes > (64u << 20))
			ptx_build_fail(b, b->scan.line, "too much local memory");
		if (decl.range) { /* .param .b32 p<4>: p0 .. p3 */
			for (uint32_t k = 0; k < decl.range && k < 1024; k++) {
				char *text = ptx_build_alloc(b, decl.name.n + 12);
				int n = snprintf(text, decl.name.n + 12, "%.*s%u",
					(int)decl.name.n, decl.name.p, k);

				symbol = ptx_build_symbol(
					b, (struct ptx_word){text, (uint32_t)n}, PTX_SYM_FRAME);
				symbol->bytes = decl.bytes;
				symbol->value =
					ptx_build_frame(b, (uint32_t)decl.bytes, decl.align);
			}
			continue;
		}
		symbol->bytes = decl.bytes;
		symbol->value = ptx_build_frame(
			b, (uint32_t)decl.bytes, decl.align > 4 ? decl.align : 4);
	} while (ptx_scan_accept(&b->scan, ','));
	expect(b, ';');
}

/* ( .param .b32 a, .reg .b32 b ): of a kernel in the parameter block, else in the frame. */
static void read_parameters(struct ptx_build *b, bool rets)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_function *f = ptx_build_function(b);
	uint32_t room = 0, nret = 0;

	if (ptx_scan_accept(s, ')'))
		return;
	do {
		struct declaration decl;
		struct ptx_symbol *symbol;
		struct ptx_word word;
		bool in_reg = false;
		uint32_t at;

		expect(b, '.');
		if (!ptx_scan_tail(s, &word))
			ptx_build_fail(b, s->line, "a parameter is expected");
		in_reg = ptx_word_is(word, "reg");
		read_declaration(b, &decl);
		if (decl.bytes > (64u << 20))
			ptx_build_fail(b, s->line, "the parameter is too large");
		if (f->is_kernel) {
			at = (f->param_bytes + decl.align - 1) & ~(decl.align - 1);
			f->param_bytes = at + (uint32_t)decl.bytes;
		} else {
			at = ptx_build_frame(
				b, (uint32_t)decl.bytes, decl.align > 4 ? decl.align : 4);
		}
		if (in_reg) {
			symbol = ptx_build_symbol(b, decl.name, PTX_SYM_REG);
			symbol->size = decl.is_pred ? 1 : decl.element < 2 ? 2 : decl.element;
			symbol->value = ptx_build_reg(b, symbol->size);
			if (rets) {
				if (!b->ret_regs)
					b->ret_regs =
						ptx_build_alloc(b, 64 * sizeof(*b->ret_regs));
				if (nret < 64)
					b->ret_regs[nret++] = decl.name;
				b->nret_regs = nret;
			} else {
				char key[32];
				struct ptx_ins *ins;

				snprintf(key, sizeof(key), "ld.F.u%u.u%u", symbol->size * 8,
					symbol->size * 8);
				b->st.line = s->line;
				ins = ptx_build_emit(b, key);
				ins->d = (uint32_t)symbol->value;
				ins->imm = at;
				ins->f = 1;
			}
		} else {
			symbol = ptx_build_symbol(
				b, decl.name, f->is_kernel ? PTX_SYM_PARAM : PTX_SYM_FRAME);
			symbol->value = at;
		}
		symbol->bytes = decl.bytes;
		if (rets) {
			f->rets = realloc(f->rets, (f->nrets + 1) * sizeof(*f->rets));
			f->rets[f->nrets++] = (struct ptx_slot){at, (uint32_t)decl.bytes};
		} else {
			f->params = ptx_build_grow(
				b, f->params, f->nparams, &room, sizeof(*f->params));
			f->params[f->nparams++] = (struct ptx_param){at, (uint32_t)decl.bytes};
		}
	} while (ptx_scan_accept(s, ','));
	expect(b, ')');
}

/* The parts of ( ... ) are read once to find the name, and once more inside its scope. */
static void past_group(struct ptx_build *b)
{
	ptx_scan_past(&b->scan, ')');
}

static const struct {
	const char *name;
	enum ptx_builtin builtin;
} builtins[] = {
	{"vprintf", PTX_VPRINTF},
	{"__assertfail", PTX_ASSERTFAIL},
	{"malloc", PTX_MALLOC},
	{"free", PTX_FREE},
};

static uint32_t find_or_add_function(struct ptx_build *b, struct ptx_word word)
{
	struct ptx_module *module = b->module;
	struct ptx_symbol *symbol = ptx_build_find(b, word);
	struct ptx_function *f;

	if (symbol && symbol->kind == PTX_SYM_FUNCTION)
		return (uint32_t)symbol->value;
	if (symbol)
		ptx_build_fail(b, b->scan.line, "%.*s is not a function", (int)word.n, word.p);
	module->functions = ptx_build_grow(b, module->functions, module->nfunctions,
		&b->function_room, sizeof(*module->functions));
	f = &module->functions[module->nfunctions];
	memset(f, 0, sizeof(*f));
	f->name = strndup(word.p, word.n);
	for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
		if (ptx_word_is(word, builtins[k].name))
			f->builtin = builtins[k].builtin;
	symbol = ptx_build_symbol(b, word, PTX_SYM_FUNCTION);
	symbol->value = module->nfunctions++;
	return (uint32_t)symbol->value;
}

static void read_three(struct ptx_build *b, unsigned v[3])
{
	v[0] = (unsigned)read_int(b);
	v[1] = v[2] = 1;
	for (int k = 1; k < 3 && ptx_scan_accept(&b->scan, ','); k++)
		v[k] = (unsigned)read_int(b);
}

/* .maxntid and its like, between the parameters and the body. */
static void read_tuning(struct ptx_build *b, struct ptx_function *f)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;
	unsigned v[3];

	while (ptx_scan_accept(s, '.')) {
		if (!ptx_scan_tail(s, &word))
			ptx_build_fail(b, s->line, "a directive is expected");
		if (ptx_word_is(word, "maxntid") || ptx_word_is(word, "reqntid")) {
			uint64_t product;

			read_three(b, v);
			product = (uint64_t)v[0] * v[1] * v[2];
			f->max_threads =
				product < PTX_MAX_THREADS ? (unsigned)product : PTX_MAX_THREADS;
			if (word.p[0] == 'r')
				memcpy(f->required, v, sizeof(v));
		} else if (ptx_word_is(word, "reqnctapercluster")) {
			read_three(b, f->cluster);
		} else if (ptx_word_is(word, "minnctapersm") || ptx_word_is(word, "maxnreg") ||
			   ptx_word_is(word, "maxnctapersm") ||
			   ptx_word_is(word, "maxclusterrank") ||
			   ptx_word_is(word, "abi_preserve") ||
			   ptx_word_is(word, "abi_preserve_control")) {
			(void)read_int(b);
		} else if (ptx_word_is(word, "pragma")) {
			ptx_scan_past(s, ';');
		} else if (!ptx_word_is(word, "noreturn") &&
			   !ptx_word_is(word, "explicitcluster") &&
			   !ptx_word_is(word, "blocksareclusters")) {
			ptx_build_fail(
				b, s->line, "unknown directive .%.*s", (int)word.n, word.p);
		}
	}
}

static void read_body(struct ptx_build *b);

static void read_function(struct ptx_build *b, bool is_kernel)
{
	struct ptx_scan *s = &b->scan, rets = {0}, params = {0}, here;
	struct ptx_function *f;
	struct ptx_word name;
	uint32_t index;

	if (ptx_scan_accept(s, '.')) {
		struct ptx_word word;

		ptx_scan_tail(s, &word); /* .noreturn, .attribute(...) */
		if (ptx_scan_accept(s, '('))
			past_group(b);
	}
	if (ptx_scan_accept(s, '(')) {
		rets = *s;
		past_group(b);
	}
	name = read_word(b);
	if (ptx_scan_accept(s, '(')) {
		params = *s;
		past_group(b);
	}
	index = find_or_add_function(b, name);
	f = &b->module->functions[index];
	f->is_kernel = is_kernel;
	read_tuning(b, f);
	if (ptx_scan_accept(s, ';'))
		return;
	expect(b, '{');
	if (f->is_defined)
		ptx_build_fail(b, s->line, "%s is defined twice", f->name);

	b->function = index;
	b->nret_regs = 0;
	b->ret_regs = NULL;
	memset(b->ntemps, 0, sizeof(b->ntemps));
	memset(b->matrix, 0, sizeof(b->matrix));
	f->is_defined = true;
	f->builtin = PTX_NOT_BUILTIN;
	f->entry = b->module->ncode;
	f->reg_bytes = 64; /* the carry */
	ptx_build_open(b);
	here = *s;
	if (rets.p) {
		*s = rets;
		read_parameters(b, true);
	}
	if (params.p) {
		*s = params;
		read_parameters(b, false);
	}
	*s = here;
	read_body(b);
	ptx_build_close(b);
	/* Falling off the end. */
	b->st.line = s->line;
	b->first = b->module->ncode;
	b->guarded = false;
	ptx_build_emit(b, ptx_build_function(b)->is_kernel ? "exit" : "ret");
	b->function = UINT32_MAX;
}

static void read_prototype(struct ptx_build *b, struct ptx_word name)
{
	ptx_build_symbol(b, name, PTX_SYM_PROTOTYPE);
	ptx_scan_past(&b->scan, ';');
}

static void read_targets(struct ptx_build *b, struct ptx_word name)
{
	struct ptx_symbol *symbol = ptx_build_symbol(b, name, PTX_SYM_TARGETS);
	struct ptx_scan start = b->scan;
	uint32_t n = 0;

	do {
		(void)read_word(b);
		n++;
	} while (ptx_scan_accept(&b->scan, ','));
	b->scan = start;
	symbol->targets = ptx_build_alloc(b, n * sizeof(*symbol->targets));
	symbol->count = 0;
	do {
		symbol->targets[symbol->count++] = read_word(b);
	} while (ptx_scan_accept(&b->scan, ','));
	expect(b, ';');
}

/* NAME: may name a table, or the place in the code where another directive stands. */
static void read_label(struct ptx_build *b, struct ptx_word label)
{
	struct ptx_scan *s = &b->scan, start;
	struct ptx_word word = {NULL, 0};

	(void)ptx_scan_peek(s);
	start = *s;
	if (ptx_scan_accept(s, '.'))
		ptx_scan_tail(s, &word);
	if (ptx_word_is(word, "callprototype") || ptx_word_is(word, "calltargets")) {
		read_prototype(b, label);
	} else if (ptx_word_is(word, "branchtargets")) {
		read_targets(b, label);
	} else {
		*s = start;
		ptx_build_symbol(b, label, PTX_SYM_LABEL)->value = b->module->ncode;
	}
}

static void read_local_directive(struct ptx_build *b)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;

	if (!ptx_scan_tail(s, &word))
		ptx_build_fail(b, s->line, "a directive is expected");
	if (ptx_word_is(word, "reg")) {
		read_registers(b);
	} else if (ptx_word_is(word, "local") || ptx_word_is(word, "param")) {
		read_frame_variable(b);
	} else if (ptx_word_is(word, "shared")) {
		read_shared(b, false);
	} else if (ptx_word_is(word, "extern")) {
		expect(b, '.');
		ptx_scan_tail(s, &word);
		if (!ptx_word_is(word, "shared"))
			ptx_build_fail(
				b, s->line, ".extern .%.*s in a function", (int)word.n, word.p);
		read_shared(b, true);
	} else if (ptx_word_is(word, "global") || ptx_word_is(word, "const")) {
		read_global(b, word.p[0] == 'c', false);
	} else if (ptx_word_is(word, "pragma")) {
		ptx_scan_past(s, ';');
	} else if (ptx_word_is(word, "loc") || ptx_word_is(word, "file")) {
		while (s->p < s->end && *s->p != '\n')
			s->p++;
	} else {
		ptx_build_fail(b, s->line, "unknown directive .%.*s", (int)word.n, word.p);
	}
}

/* Decodes one statement; what is not served ends in an instruction that says so. */
static void read_statement(struct ptx_build *b, struct ptx_word root)
{
	struct ptx_scan *s = &b->scan;

	b->st.root = root;
	b->first = b->module->ncode;
	b->flow = false;
	if (!setjmp(b->unsupported)) {
		ptx_decode(b);
	} else {
		memset(b->used_temps, 0, sizeof(b->used_temps));
		while (b->nfixups && b->fixups[b->nfixups - 1].ins >= b->first)
			b->nfixups--;
		while (b->nbranches && b->branches[b->nbranches - 1] >= b->first)
			b->nbranches--;
		b->module->ncode = b->first;
		ptx_build_emit(b, "missing");
	}
	expect(b, ';');
	ptx_statement_end(b);
	(void)s;
}

static void read_body(struct ptx_build *b)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;
	unsigned depth = 1;

	while (depth) {
		char c = ptx_scan_peek(s);

		b->guarded = false;
		b->st.line = s->line;
		if (!c) {
			ptx_build_fail(b, s->line, "the text ends inside a function");
		} else if (c == '{') {
			s->p++;
			ptx_build_open(b);
			depth++;
		} else if (c == '}') {
			s->p++;
			if (--depth)
				ptx_build_close(b);
		} else if (c == ';') {
			s->p++;
		} else if (c == '.') {
			s->p++;
			read_local_directive(b);
		} else if (c == '@') {
			s->p++;
			b->guard_not = ptx_scan_accept(s, '!');
			b->guard = read_word(b);
			b->guarded = true;
			read_statement(b, read_word(b));
		} else {
			word = read_word(b);
			if (ptx_scan_peek(s) == ':') {
				s->p++;
				read_label(b, word);
			} else {
				read_statement(b, word);
			}
		}
	}
}

static void read_module(struct ptx_build *b)
{
	struct ptx_scan *s = &b->scan;
	bool is_extern = false;
	struct ptx_word word;

	while (ptx_scan_peek(s)) {
		if (ptx_scan_accept(s, ';'))
			continue;
		if (!ptx_scan_accept(s, '.')) {
			if (*s->p == '@') { /* @@DWARF of old debug sections */
				while (s->p < s->end && *s->p != '\n')
					s->p++;
				continue;
			}
			ptx_build_fail(b, s->line, "a directive is expected, found '%.12s'",
				s->end - s->p > 12 ? s->p : "?");
		}
		if (!ptx_scan_tail(s, &word))
			ptx_build_fail(b, s->line, "a directive is expected");
		if (ptx_word_is(word, "version")) {
			struct ptx_word text;

			ptx_scan_skip(s);
			if (!ptx_scan_tail(s, &text) || text.n < 3)
				ptx_build_fail(b, s->line, ".version without a number");
			b->module->version =
				10 * atoi(text.p) +
				atoi((const char *)memchr(text.p, '.', text.n) + 1);
		} else if (ptx_word_is(word, "target")) {
			struct ptx_word text;

			do {
				text = read_word(b);
				if (text.n > 3 && !memcmp(text.p, "sm_", 3))
					b->module->target = atoi(text.p + 3);
			} while (ptx_scan_accept(s, ','));
		} else if (ptx_word_is(word, "address_size")) {
			if (read_int(b) != 64)
				ptx_build_fail(b, s->line, "only .address_size 64 is served");
		} else if (ptx_word_is(word, "extern") || ptx_word_is(word, "visible") ||
			   ptx_word_is(word, "weak") || ptx_word_is(word, "common")) {
			is_extern = word.p[0] == 'e';
			continue;
		} else if (ptx_word_is(word, "entry") || ptx_word_is(word, "func")) {
			read_function(b, word.p[0] == 'e');
		} else if (ptx_word_is(word, "global") || ptx_word_is(word, "const")) {
			read_global(b, word.p[0] == 'c', is_extern);
		} else if (ptx_word_is(word, "shared")) {
			read_shared(b, is_extern);
		} else if (ptx_word_is(word, "section")) {
			(void)ptx_scan_accept(s, '.');
			ptx_scan_tail(s, &word);
			expect(b, '{');
			ptx_scan_past_block(s);
		} else if (ptx_word_is(word, "file") || ptx_word_is(word, "loc")) {
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		} else if (ptx_word_is(word, "pragma") || ptx_word_is(word, "alias")) {
			ptx_scan_past(s, ';');
		} else {
			ptx_build_fail(
				b, s->line, "unknown directive .%.*s", (int)word.n, word.p);
		}
		is_extern = false;
	}
	if (!b->module->version)
		ptx_build_fail(b, 1, "not PTX: no .version");
}

/* Branches and addresses get their final values. */
static void link_module(struct ptx_build *b, ptx_allocate allocate, void *arg)
{
	struct ptx_module *module = b->module;
	size_t heap = 0, work = 0, heap_at = 0;

	for (uint32_t k = 0; k < b->nbranches; k++) {
		struct ptx_ins *ins = &module->code[b->branches[k]];

		ins->imm = (uint64_t)(uintptr_t)(module->code + ins->imm);
	}
	module->block_bytes = b->data_bytes;
	for (uint32_t k = 0; k < module->nfunctions; k++)
		if (module->functions[k].builtin == PTX_MALLOC)
			heap = PTX_HEAP_BYTES;
	if (heap) {
		heap_at = (b->data_bytes + 255) & ~(size_t)255;
		module->block_bytes = heap_at + heap;
	}
	if (module->wants_workspace) {
		work = (module->block_bytes + 255) & ~(size_t)255;
		module->block_bytes = work + (size_t)PTX_WORKSPACES * PTX_WORKSPACE;
	}
	if (module->block_bytes) {
		module->block = allocate(arg, module->block_bytes, 256);
		if (!module->block) {
			b->error->status = PTX_NO_MEMORY;
			snprintf(b->error->text, sizeof(b->error->text),
				"no device memory for %zu bytes of variables",
				module->block_bytes);
			longjmp(b->failed, 1);
		}
	}
	if (module->wants_workspace)
		module->workspace = module->block + work;
	if (heap) {
		module->heap = ptx_heap_new(module->block + heap_at, heap);
		if (!module->heap)
			ptx_build_fail(b, 0, "out of memory");
	}
	for (uint32_t k = 0; k < b->npointers; k++) {
		struct ptx_pointer *p = &b->pointers[k];
		struct ptx_symbol *symbol = ptx_build_find(b, p->name);
		uint64_t value = p->value;

		if (symbol && symbol->kind == PTX_SYM_FUNCTION) {
			value += PTX_CODE_BASE + 16 * symbol->value;
		} else if (symbol && symbol->kind == PTX_SYM_GLOBAL &&
			   symbol->value != UINT64_MAX) {
			value += module->block + symbol->value;
		} else if (symbol && symbol->kind == PTX_SYM_SHARED) {
			value += symbol->value;
		} else {
			b->error->status = PTX_NOT_FOUND;
			b->error->line = p->line;
			snprintf(b->error->text, sizeof(b->error->text),
				"no variable or function %.*s", (int)p->name.n, p->name.p);
			longjmp(b->failed, 1);
		}
		value >>= p->shift;
		memcpy(b->data + p->at, &value, p->bytes);
	}
	if (b->data_bytes)
		memcpy((void *)(uintptr_t)module->block, b->data, b->data_bytes); /* NOLINT */
	for (uint32_t k = 0; k < b->nrelocations; k++) {
		struct ptx_relocation *r = &b->relocations[k];
		uint64_t add = r->kind == PTX_IN_BLOCK ? module->block
						       : (module->shared_bytes + 127) & ~127u;

		for (uint32_t l = 0; l < PTX_LANES; l++) {
			unsigned char *p = module->pool + r->offset + l * r->size;
			uint64_t value = 0;

			memcpy(&value, p, r->size);
			value += add;
			memcpy(p, &value, r->size);
		}
	}
}

/* Local memory that a function and all it calls need; recursion is found on the way. */
static uint32_t stack_need(struct ptx_module *module, struct ptx_function *f)
{
	uint32_t most = 0;

	if (f->visit == 2)
		return f->stack_bytes;
	if (f->visit == 1) {
		f->is_recursive = true;
		return 0;
	}
	f->visit = 1;
	for (uint32_t k = 0; k < f->ncallees; k++) {
		struct ptx_function *callee = &module->functions[f->callees[k]];
		uint32_t need = stack_need(module, callee);

		most = need > most ? need : most;
		f->is_recursive |= callee->is_recursive;
		f->has_indirect |= callee->has_indirect;
	}
	f->stack_bytes = ((f->frame_bytes + 15) & ~15u) + most;
	if (f->is_recursive || f->has_indirect)
		f->stack_bytes = f->frame_bytes + PTX_RECURSIVE_STACK;
	f->visit = 2;
	return f->stack_bytes;
}

static void find_kernels(struct ptx_build *b)
{
	struct ptx_module *module = b->module;

	for (uint32_t k = 0; k < module->nfunctions; k++) {
		(void)stack_need(module, &module->functions[k]);
		module->nkernels +=
			module->functions[k].is_kernel && module->functions[k].is_defined;
	}
	module->kernels = calloc(module->nkernels + 1, sizeof(*module->kernels));
	if (!module->kernels)
		ptx_build_fail(b, 0, "out of memory");
	module->nkernels = 0;
	for (uint32_t k = 0; k < module->nfunctions; k++)
		if (module->functions[k].is_kernel && module->functions[k].is_defined)
			module->kernels[module->nkernels++] =
				(struct ptx_kernel){module, &module->functions[k]};
}

struct ptx_module *ptx_parse(
	const char *text, size_t n, ptx_allocate allocate, void *arg, struct ptx_error *error)
{
	struct ptx_build *b = calloc(1, sizeof(*b));
	struct ptx_module *volatile module = calloc(1, sizeof(*module));
	volatile bool ok = false;

	memset(error, 0, sizeof(*error));
	if (!b || !module) {
		free(b);
		free(module);
		error->status = PTX_NO_MEMORY;
		return NULL;
	}
	b->scan = (struct ptx_scan){text, text + n, 1};
	b->module = module;
	b->error = error;
	b->function = UINT32_MAX;
	module->dynamic_align = 16;
	if (!setjmp(b->failed)) {
		read_module(b);
		link_module(b, allocate, arg);
		find_kernels(b);
		ok = true;
	}
	for (struct ptx_chunk *chunk = b->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(b->relocations);
	free(b->fixups);
	free(b->branches);
	free(b->pointers);
	free(b->data);
	free(b);
	if (!ok) {
		ptx_module_free(module);
		return NULL;
	}
	return module;
}
