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
		n = ptx_read_int(b);
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
	word = ptx_read_word(b);
	if (ptx_word_is(word, "generic")) {
		ptx_read_char(b, '(');
		word = ptx_read_word(b);
		if (ptx_scan_accept(s, '+'))
			pointer.value = ptx_read_int(b);
		ptx_read_char(b, ')');
	}
	pointer.name = word;
	if (ptx_scan_accept(s, '+'))
		pointer.value += ptx_read_int(b);
	else if (ptx_scan_peek(s) == '-')
		pointer.value += ptx_read_int(b);
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

void ptx_variable_global(struct ptx_build *b, bool is_const, bool is_extern)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_declaration decl = {0};
	struct ptx_symbol *symbol;
	uint64_t at, end;

	do {
		ptx_variable_declaration(b, &decl);
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_GLOBAL);
		if (symbol->own) { /* declared again */
			if (ptx_scan_accept(s, '='))
				ptx_build_fail(b, s->line, "%.*s is defined twice",
					(int)decl.name.n, decl.name.p);
			continue;
		}
		if (is_extern && symbol->bound) {
			symbol->bytes = decl.bytes;
			continue;
		}
		/* Another module's of the library, where this is one more of its modules. */
		if (decl.is_managed && symbol->bound) {
			symbol->bytes = decl.bytes;
			past_value(b);
			add_global(b, &decl, symbol->value, is_const);
			b->module->globals[b->module->nglobals - 1].elsewhere = true;
			continue;
		}
		at = (b->data_bytes + decl.align - 1) & ~(uint64_t)(decl.align - 1);
		symbol->value = at;
		symbol->bound = false;
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
			/* What a texture or sampler is like; nothing that is served asks. */
			if (decl.opaque && ptx_scan_accept(s, '{'))
				ptx_scan_past_block(s);
			else if (ptx_scan_accept(s, '{'))
				at = read_list(b, at, decl.element, end, decl.is_unsized);
			else
				at = place_value(b, at, decl.element, end, decl.is_unsized);
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
			if (decl.align > b->module->dynamic_align)
				b->module->dynamic_align = decl.align;
			continue;
		}
		symbol = ptx_build_symbol(b, decl.name, PTX_SYM_SHARED);
		if (symbol->bytes)
			continue;
		symbol->value = ptx_shared_add(b, decl.bytes, decl.align);
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
		symbol->value = ptx_build_frame(
			b, (uint32_t)decl.bytes, decl.align > 4 ? decl.align : 4);
	} while (ptx_scan_accept(&b->scan, ','));
	ptx_read_char(b, ';');
}
