/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a module: its directives, and by function.c its functions.
 */
#include "softgpu/ptx/parse/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Of PTX 9.0, the newest whose targets are known. */
#define TARGET_NEWEST 121

/* The number that stands at `from` of the word, up to three digits. */
static unsigned digits(const struct ptx_word *word, uint32_t from)
{
	unsigned v = 0;

	for (uint32_t k = from; k < word->n && k < from + 3; k++) {
		if (word->p[k] < '0' || word->p[k] > '9')
			break;
		v = 10 * v + (unsigned)(word->p[k] - '0');
	}
	return v;
}

static bool read_version(struct ptx_build *b, struct ptx_word text)
{
	const char *dot = memchr(text.p, '.', text.n);

	if (!dot)
		return false;
	b->module->version =
		(int)(10 * digits(&text, 0) + digits(&text, (uint32_t)(dot - text.p) + 1));
	return b->module->version != 0;
}

/* Past TEXT, if that is next. */
static bool past_text(struct ptx_scan *s, const char *text, size_t n)
{
	if ((size_t)(s->end - s->p) <= n || memcmp(s->p, text, n))
		return false;
	s->p += n;
	return true;
}

/* Of the pragmas of a module only our own mean anything. */
static void read_pragma(struct ptx_build *b)
{
	static const char registers[] = PTX_PRAGMA_REGISTERS, symbols[] = PTX_PRAGMA_SYMBOL;
	const char *limit = strchr(registers, '"'), *bound = strchr(symbols, '"');
	struct ptx_scan *s = &b->scan, start;
	struct ptx_symbol *symbol;

	ptx_scan_skip(s);
	start = *s;
	if (past_text(s, limit, strlen(limit))) {
		b->module->max_registers = (unsigned)ptx_read_int(b);
		*s = start;
	} else if (past_text(s, bound, (size_t)(strchr(bound, '%') - bound))) {
		symbol = ptx_build_symbol(b, ptx_read_word(b), PTX_SYM_GLOBAL);
		symbol->bound = true;
		symbol->value = (uint64_t)ptx_read_int(b);
		*s = start;
	}
	ptx_scan_past(s, ';');
}

/* .alias name, function; */
static void read_alias(struct ptx_build *b)
{
	struct ptx_alias *alias = ptx_build_alloc(b, sizeof(*alias));

	alias->line = b->scan.line;
	alias->name = ptx_read_word(b);
	ptx_read_char(b, ',');
	alias->of = ptx_read_word(b);
	ptx_read_char(b, ';');
	alias->next = b->aliases;
	b->aliases = alias;
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
		if (!ptx_scan_directive(s, &word))
			ptx_build_fail(b, s->line, "a directive is expected");
		if (ptx_word_is(word, "version")) {
			struct ptx_word text;

			ptx_scan_skip(s);
			if (!ptx_scan_tail(s, &text) || !read_version(b, text))
				ptx_build_fail(b, s->line, ".version without a number");
			if (b->module->version > PTX_VERSION_NEWEST)
				ptx_build_newer(b, s->line);
		} else if (ptx_word_is(word, "target")) {
			struct ptx_word text;

			do {
				text = ptx_read_word(b);
				if (text.n <= 3 || memcmp(text.p, "sm_", 3))
					continue;
				b->module->target = (int)digits(&text, 3);
				if (b->module->target > TARGET_NEWEST)
					ptx_build_fail(b, s->line, "Unsupported .target %.*s",
						(int)text.n, text.p);
			} while (ptx_scan_accept(s, ','));
		} else if (ptx_word_is(word, "address_size")) {
			if (ptx_read_int(b) != 64)
				ptx_build_fail(b, s->line, "only .address_size 64 is served");
		} else if (ptx_word_is(word, "extern") || ptx_word_is(word, "visible") ||
			   ptx_word_is(word, "weak") || ptx_word_is(word, "common")) {
			is_extern = word.p[0] == 'e';
			continue;
		} else if (ptx_word_is(word, "entry") || ptx_word_is(word, "func")) {
			ptx_read_function(b, word.p[0] == 'e');
		} else if (ptx_word_is(word, "global") || ptx_word_is(word, "const")) {
			ptx_variable_global(b, word.p[0] == 'c', is_extern);
		} else if (ptx_word_is(word, "shared")) {
			ptx_variable_shared(b, is_extern);
		} else if (ptx_word_is(word, "section")) {
			(void)ptx_scan_accept(s, '.');
			ptx_scan_directive(s, &word);
			ptx_read_char(b, '{');
			ptx_scan_past_block(s);
		} else if (ptx_word_is(word, "file") || ptx_word_is(word, "loc")) {
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		} else if (ptx_word_is(word, "pragma")) {
			read_pragma(b);
		} else if (ptx_word_is(word, "alias")) {
			read_alias(b);
		} else {
			ptx_build_fail(
				b, s->line, "unknown directive .%.*s", (int)word.n, word.p);
		}
		is_extern = false;
	}
	if (!b->module->version)
		ptx_build_fail(b, 1, "Missing .version directive");
	if (!b->module->target)
		ptx_build_fail(b, 1, "Missing .target directive");
}

/* What is declared, not defined, and provided in PTX; its lines are no line of the module. */
static void read_provided(struct ptx_build *b)
{
	for (uint32_t k = 0; k < b->module->nfunctions; k++) {
		const char *name = b->module->functions[k].name;
		const char *text;

		text = ptx_provided_text((struct ptx_word){name, (uint32_t)strlen(name)});
		if (!text || b->module->functions[k].is_defined)
			continue;
		b->scan = (struct ptx_scan){text, text + strlen(text), 0};
		read_module(b);
	}
}

struct ptx_module *ptx_parse(const char *text, size_t n, ptx_allocate allocate, void *arg,
	size_t heap, struct ptx_error *error)
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
	module->heap_bytes = heap;
	if (!setjmp(b->failed)) {
		read_module(b);
		read_provided(b);
		ptx_build_awaited(b);
		ptx_link_aliases(b);
		ptx_link_module(b, allocate, arg);
		ptx_link_kernels(b);
		ok = true;
	}
	for (struct ptx_chunk *chunk = b->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(b->relocations);
	free(b->shared);
	free(b->uses);
	free(b->pairs);
	free(b->awaiting);
	free(b->fixups);
	free(b->loads);
	free(b->branches);
	free(b->pointers);
	if (b->data)
		munmap(b->data, b->data_room);
	free(b);
	if (!ok) {
		ptx_module_free(module);
		return NULL;
	}
	return module;
}

void ptx_module_free(struct ptx_module *module)
{
	if (!module)
		return;
	for (uint32_t k = 0; k < module->nfunctions; k++) {
		struct ptx_function *f = &module->functions[k];

		free(f->name);
		free(f->params);
		free(f->rets);
		free(f->callees);
		free(f->bad_text);
	}
	for (uint32_t k = 0; k < module->nglobals; k++)
		free(module->globals[k].name);
	for (uint32_t k = 0; k < module->ncalls; k++)
		free(module->calls[k].slots);
	ptx_heap_drop(module->heap);
	free(module->functions);
	free(module->globals);
	free(module->calls);
	free(module->kernels);
	free(module->code);
	free(module->lines);
	free(module->pool);
	free(module);
}
