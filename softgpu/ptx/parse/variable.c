/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of variables in every space, and their initial values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/ptx/parse/read.h"

#define MAX_ARRAY (UINT64_C(1) << 40)

/* The dotted attributes before a variable's name. */
static void read_type(struct ptx_build *b, struct ptx_declaration *decl)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;

	*decl = (struct ptx_declaration){.vector = 1};
	while (ptx_scan_accept(s, '.')) {
		if (!ptx_scan_directive(s, &word))
			ptx_build_fail(b, s->line, "a type is expected");
		if (ptx_word_is(word, "align")) {
			decl->align = (uint32_t)ptx_read_int(b);
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
			decl->opaque = word.p[0] == 't'	  ? PTX_TEXREF
				       : word.p[1] == 'u' ? PTX_SURFREF
							  : PTX_SAMPLERREF;
		} else if (ptx_word_is(word, "attribute")) {
			const char *from = s->p;

			ptx_read_char(b, '(');
			ptx_scan_past_group(s);
			decl->is_managed |=
				memmem(from, (size_t)(s->p - from), ".managed", 8) != NULL;
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
	if (!decl->has_align)
		decl->align = decl->element * decl->vector;
}

void ptx_variable_declaration(struct ptx_build *b, struct ptx_declaration *decl)
{
	struct ptx_scan *s = &b->scan;
	uint64_t count = 1, n;

	if (ptx_scan_peek(s) == '.' || !decl->element)
		read_type(b, decl);
	decl->range = 0;
	decl->is_unsized = false;
	decl->name = ptx_read_word(b);
	if (ptx_scan_accept(s, '<')) {
		struct ptx_number range;

		/* Not an expression: its end is no comparison. */
		n = ptx_scan_number(s, &range) ? range.bits : 0;
		if (n > 10000000)
			ptx_build_fail(b, s->line, "too many registers");
		decl->range = (uint32_t)n;
		ptx_read_char(b, '>');
	}
	while (ptx_scan_accept(s, '[')) {
		if (ptx_scan_accept(s, ']')) {
			decl->is_unsized = true;
			continue;
		}
		n = ptx_read_int(b);
		ptx_read_char(b, ']');
		if (n && count > MAX_ARRAY / n)
			ptx_build_fail(b, s->line, "the array is too large");
		count *= n;
	}
	decl->bytes = (uint64_t)decl->element * decl->vector * count;
	if (decl->bytes > MAX_ARRAY)
		ptx_build_fail(b, s->line, "the array is too large");
}

static void put_pointer(struct ptx_build *b, struct ptx_pointer pointer)
{
	b->pointers = ptx_build_grow(
		b, b->pointers, b->npointers, &b->pointer_room, sizeof(*b->pointers));
	b->pointers[b->npointers++] = pointer;
}

/* A variable or function, or generic(); WARP_SZ is a number. */
static bool is_name(struct ptx_scan *s)
{
	struct ptx_scan start = *s;
	struct ptx_word word;
	bool found = ptx_scan_word(s, &word) && !ptx_word_is(word, "WARP_SZ");

	*s = start;
	return found;
}

/* One value of an initialiser: number, name, name+8, generic(name), 0xFF00(name). */
static void read_value(struct ptx_build *b, uint64_t at, uint32_t element)
{
	struct ptx_scan *s = &b->scan;
	/* Of a wider element it is the lower half, as a number is. */
	struct ptx_pointer pointer = {
		.at = at, .bytes = element < 8 ? (uint8_t)element : 8, .line = s->line};
	struct ptx_number number;
	struct ptx_word word;
	bool inside = false;

	if (!is_name(s) && ptx_scan_expression(s, &number, 0)) {
		if (!ptx_scan_accept(s, '(')) {
			uint64_t bits = number.bits;

			if (number.kind == PTX_F64 && element == 4) {
				float narrow = (float)ptx_number_double(&number);
				uint32_t low;

				memcpy(&low, &narrow, sizeof(low));
				bits = low;
			}
			memcpy(b->data + at, &bits, element < 8 ? element : 8);
			return;
		}
		pointer.shift = number.bits ? (uint8_t)__builtin_ctzll(number.bits) : 0;
		inside = true;
	}
	word = ptx_read_word(b);
	if (ptx_word_is(word, "generic")) {
		ptx_read_char(b, '(');
		word = ptx_read_word(b);
		if (ptx_scan_peek(s) == '+')
			pointer.value = ptx_read_offset(b);
		ptx_read_char(b, ')');
	}
	pointer.name = word;
	if (ptx_scan_peek(s) == '+' || ptx_scan_peek(s) == '-')
		pointer.value += ptx_read_offset(b);
	if (inside)
		ptx_read_char(b, ')');
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
	/* Pages that no value is written to take no memory. */
	data = b->data ? mremap(b->data, b->data_room, room, MREMAP_MAYMOVE)
		       : mmap(NULL, room, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED)
		ptx_build_fail(b, b->scan.line, "out of memory for the module's variables");
	b->data = data;
	b->data_room = room;
}

/* One value at `at`, where there must be room for it; the place behind it. */
static uint64_t place_value(
	struct ptx_build *b, uint64_t at, uint32_t element, uint64_t limit, bool grows)
{
	if (grows)
		data_room(b, at + element);
	else if (at + element > limit)
		ptx_build_fail(b, b->scan.line, "more initial values than the variable has");
	read_value(b, at, element);
	return at + element;
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
		at = place_value(b, at, element, limit, grows);
	} while (ptx_scan_accept(s, ','));
	ptx_read_char(b, '}');
	return at;
}

static void add_global(
	struct ptx_build *b, struct ptx_declaration *decl, uint64_t offset, bool is_const)
{
	struct ptx_module *module = b->module;

	module->globals = ptx_build_grow(b, module->globals, module->nglobals, &b->global_room,
		sizeof(*module->globals));
	module->globals[module->nglobals++] =
		(struct ptx_global){strndup(decl->name.p, decl->name.n), offset, decl->bytes,
			is_const, decl->opaque, decl->is_managed, false};
}

/* What may be said of a variable's first value. */
static void past_value(struct ptx_build *b)
{
	struct ptx_scan *s = &b->scan;
	unsigned depth = 0;
	char at;

	if (!ptx_scan_accept(s, '='))
		return;
	while ((at = ptx_scan_peek(s)) && (depth || (at != ',' && at != ';'))) {
		depth += at == '{' || at == '(';
		depth -= depth && (at == '}' || at == ')');
		s->p++;
	}
}

/* Room behind all others of the block. */
static uint64_t variable_room(struct ptx_build *b, uint64_t bytes, uint32_t align)
{
	uint64_t at = (b->data_bytes + align - 1) & ~(uint64_t)(align - 1);

	data_room(b, at + bytes);
	b->data_bytes = at + bytes;
	return at;
}

/* What it says, where that is no definition: again, elsewhere, or below, for which its place is
 * kept, as functions before it may name it. */
static bool only_declared(struct ptx_build *b, struct ptx_symbol *symbol,
	struct ptx_declaration *decl, bool is_const, bool is_extern)
{
	if (symbol->own) {
		if (ptx_scan_accept(&b->scan, '='))
			ptx_build_fail(b, b->scan.line, "%.*s is defined twice",
				(int)decl->name.n, decl->name.p);
		return true;
	}
	if (symbol->bound && (is_extern || decl->is_managed)) {
		symbol->bytes = decl->bytes;
		symbol->element = decl->element * decl->vector;
		/* Another module's of the library, where this is one more of its modules. */
		if (!is_extern) {
			past_value(b);
			add_global(b, decl, symbol->value, is_const);
			b->module->globals[b->module->nglobals - 1].elsewhere = true;
		}
		return true;
	}
	if (is_extern && !symbol->awaited) {
		symbol->awaited = true;
		symbol->bytes = decl->bytes;
		symbol->element = decl->element * decl->vector;
		symbol->value = decl->is_unsized ? UINT64_MAX
						 : variable_room(b, decl->bytes,
							   decl->align < 16 ? 16 : decl->align);
	}
	return is_extern;
}

/* Its place in the block: that which a declaration has kept, or a new one. */
static uint64_t variable_place(struct ptx_build *b, const struct ptx_symbol *symbol,
	const struct ptx_declaration *decl)
{
	if (symbol->awaited && symbol->value != UINT64_MAX &&
		!(symbol->value & (decl->align - 1)) && decl->bytes == symbol->bytes)
		return symbol->value;
	for (uint32_t k = 0; symbol->awaited && k < b->nawaiting; k++)
		if (b->awaiting[k].symbol == symbol)
			ptx_build_fail(b, b->scan.line, "%.*s is declared otherwise",
				(int)decl->name.n, decl->name.p);
	return variable_room(b, decl->bytes, decl->align);
}

void ptx_variable_global(struct ptx_build *b, bool is_const, bool is_extern)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_declaration decl = {0};
	struct ptx_symbol *symbol;
	uint64_t at, end;

	do {
		ptx_variable_declaration(b, &decl);
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_GLOBAL);
		if (only_declared(b, symbol, &decl, is_const, is_extern))
			continue;
		at = variable_place(b, symbol, &decl);
		end = at + decl.bytes;
		symbol->value = at;
		symbol->bound = symbol->awaited = false;
		symbol->own = true;
		symbol->bytes = decl.bytes;
		symbol->element = decl.element * decl.vector;
		if (ptx_scan_accept(s, '=')) {
			/* What a texture or sampler is like; nothing that is served asks. */
			if (decl.opaque && ptx_scan_accept(s, '{'))
				ptx_scan_past_block(s);
			else if (ptx_scan_accept(s, '{'))
				at = read_list(b, at, decl.element, end, decl.is_unsized);
			else
				at = place_value(b, at, decl.element, end, decl.is_unsized);
		}
		if (decl.is_unsized && at > end) {
			end = at;
			decl.bytes = end - symbol->value;
			b->data_bytes = end;
		}
		if (is_const)
			b->module->const_bytes += decl.bytes;
		add_global(b, &decl, symbol->value, is_const);
	} while (ptx_scan_accept(s, ','));
	ptx_read_char(b, ';');
}

void ptx_variable_shared(struct ptx_build *b, bool is_extern)
{
	struct ptx_declaration decl = {0};
	struct ptx_symbol *symbol;

	do {
		ptx_variable_declaration(b, &decl);
		if (is_extern && !decl.bytes)
			decl.is_unsized = true;
		if (is_extern || decl.is_unsized) {
			symbol = ptx_build_symbol(b, decl.name, PTX_SYM_DYNAMIC);
			symbol->element = decl.element * decl.vector;
			if (decl.align > b->module->dynamic_align)
				b->module->dynamic_align = decl.align;
			continue;
		}
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_SHARED);
		if (symbol->bytes)
			continue;
		symbol->value = ptx_shared_add(b, decl.bytes, decl.align);
		symbol->element = decl.element * decl.vector;
		symbol->bytes = decl.bytes;
		ptx_shared_use(b, (uint32_t)symbol->value);
	} while (ptx_scan_accept(&b->scan, ','));
	ptx_read_char(b, ';');
}

/* .reg .b32 %r<10>, x, y; */
void ptx_variable_registers(struct ptx_build *b)
{
	struct ptx_declaration decl = {0};

	do {
		struct ptx_symbol *symbol;

		ptx_variable_declaration(b, &decl);
		symbol = ptx_build_symbol(
			b, decl.name, decl.range ? PTX_SYM_RANGE : PTX_SYM_REG);
		symbol->size = decl.is_pred ? 1 : decl.element < 2 ? 2 : decl.element;
		if (decl.range) {
			symbol->count = decl.range;
			symbol->slots = ptx_build_alloc(b, decl.range * sizeof(uint32_t));
			memset(symbol->slots, 0xff, decl.range * sizeof(uint32_t));
			symbol->mentions = ptx_build_alloc(b, decl.range * sizeof(uint32_t));
		} else {
			symbol->value = ptx_build_reg(b, symbol->size);
		}
	} while (ptx_scan_accept(&b->scan, ','));
	ptx_read_char(b, ';');
}

void ptx_variable_frame(struct ptx_build *b)
{
	struct ptx_declaration decl = {0};

	do {
		struct ptx_symbol *symbol;

		ptx_variable_declaration(b, &decl);
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
		symbol->element = decl.element * decl.vector;
		symbol->value = ptx_build_frame(
			b, (uint32_t)decl.bytes, decl.align > 4 ? decl.align : 4);
	} while (ptx_scan_accept(&b->scan, ','));
	ptx_read_char(b, ';');
}
