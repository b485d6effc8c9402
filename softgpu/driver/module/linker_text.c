/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of several PTX modules in one.  PTX at module level is a sequence of statements that
 * end in ';' or in a body in braces; each is read as words (names, directives, the rest), and
 * only its linkage and its name matter here.
 */
#include "softgpu/driver/module/linker_text.h"

#include "softgpu/ptx/ptx.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct statement {
	const char *begin, *end; /* the text */
	const char *name;	 /* what it defines or declares, or NULL */
	size_t name_size;
	bool header;   /* .version, .target, .address_size */
	bool external; /* .extern, or a prototype without a body */
	bool function;
	bool variable;
	bool shared; /* .visible, .weak, .common: known to other inputs */
	bool weak;
	bool strong; /* .visible: there may be no other */
};

/* Read once: an input may have thousands of names, each of which is looked for in all others.
 */
struct link_statements {
	struct statement *list;
	size_t count, room;
	const struct statement **by_name; /* those that have one, in the names' order */
	size_t named;
};

struct out {
	char *text;
	size_t used, room;
	bool failed;
};

static void put(struct out *out, const char *text, size_t n)
{
	if (out->used + n + 1 > out->room) {
		size_t room = 2 * (out->used + n + 1);
		char *more = realloc(out->text, room);

		if (!more) {
			out->failed = true;
			return;
		}
		out->text = more;
		out->room = room;
	}
	memcpy(out->text + out->used, text, n);
	out->used += n;
	out->text[out->used] = 0;
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Past blanks and comments. */
static const char *skip(const char *at)
{
	for (;;) {
		if (isspace((unsigned char)*at)) {
			at++;
		} else if (at[0] == '/' && at[1] == '/') {
			at += strcspn(at, "\n");
		} else if (at[0] == '/' && at[1] == '*') {
			const char *end = strstr(at + 2, "*/");

			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

/* Past one token: a directive or name, a string, or one character. */
static const char *token(const char *at)
{
	if (*at == '"') {
		at++;
		while (*at && *at != '"')
			at += at[0] == '\\' && at[1] ? 2 : 1;
		return *at ? at + 1 : at;
	}
	if (*at == '.' || *at == '%' || in_name(*at)) {
		at++;
		while (in_name(*at))
			at++;
		return at;
	}
	return *at ? at + 1 : at;
}

static bool is(const char *at, const char *end, const char *word)
{
	return (size_t)(end - at) == strlen(word) && !memcmp(at, word, (size_t)(end - at));
}

/* Directives that end with their line. */
static bool by_line(const char *at, const char *end)
{
	return is(at, end, ".version") || is(at, end, ".target") ||
	       is(at, end, ".address_size") || is(at, end, ".file") || is(at, end, ".loc");
}

/* The statement at AT; its end is where the next begins. */
static struct statement statement(const char *at)
{
	struct statement s = {.begin = at};
	const char *begin = skip(at), *end = token(begin);
	int braces = 0, brackets = 0;
	bool function = false, variable = false, body = false, first = true;

	if (by_line(begin, end)) {
		s.header = !is(begin, end, ".file") && !is(begin, end, ".loc");
		s.end = begin + strcspn(begin, "\n");
		return s;
	}
	for (at = begin; *at; at = skip(end)) {
		end = token(at);
		if (first && is(at, end, ".extern"))
			s.external = true;
		else if (is(at, end, ".visible"))
			s.shared = s.strong = true;
		else if (is(at, end, ".common"))
			s.shared = true;
		else if (is(at, end, ".weak"))
			s.shared = s.weak = true;
		else if (!braces && (is(at, end, ".func") || is(at, end, ".entry")))
			function = true;
		else if (!braces && !function &&
			 (is(at, end, ".global") || is(at, end, ".const") ||
				 is(at, end, ".shared")))
			variable = true;
		else if (*at == '(' || *at == '[')
			brackets++;
		else if (*at == ')' || *at == ']')
			brackets--;
		else if ((function || variable) && !s.name && !brackets && !braces &&
			 in_name(*at) && !isdigit((unsigned char)*at)) {
			s.name = at;
			s.name_size = (size_t)(end - at);
		} else if (*at == '{') {
			braces++;
			body = body || !variable;
		} else if (*at == '}' && --braces <= 0 && !variable) {
			break;
		} else if (*at == ';' && braces <= 0) {
			break;
		}
		first = false;
	}
	s.end = *at ? end : at;
	if (function && !body)
		s.external = true;
	s.function = function;
	s.variable = variable;
	return s;
}

static int order(const struct statement *a, const struct statement *b)
{
	if (a->name_size != b->name_size)
		return a->name_size < b->name_size ? -1 : 1;
	return memcmp(a->name, b->name, a->name_size);
}

static int order_of(const void *a, const void *b)
{
	return order(*(const struct statement *const *)a, *(const struct statement *const *)b);
}

static void free_statements(struct link_statements *statements)
{
	free(statements->list);
	free(statements->by_name);
	*statements = (struct link_statements){0};
}

/* False: no memory. */
static bool read_statements(const char *text, struct link_statements *statements)
{
	for (const char *at = text; *skip(at);) {
		if (statements->count == statements->room) {
			size_t room = statements->room ? 2 * statements->room : 64;
			struct statement *more =
				realloc(statements->list, room * sizeof(*more));

			if (!more)
				return false;
			statements->list = more;
			statements->room = room;
		}
		statements->list[statements->count] = statement(at);
		at = statements->list[statements->count++].end;
	}
	statements->by_name = calloc(statements->count + 1, sizeof(*statements->by_name));
	for (size_t k = 0; statements->by_name && k < statements->count; k++)
		if (statements->list[k].name)
			statements->by_name[statements->named++] = &statements->list[k];
	if (statements->named)
		qsort(statements->by_name, statements->named, sizeof(*statements->by_name),
			order_of);
	return statements->by_name;
}

/* Where those of that name begin. */
static size_t find_name(const struct link_statements *statements, const struct statement *s)
{
	size_t from = 0, to = statements->named;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (order(statements->by_name[middle], s) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

enum whose {
	SHARED = 1,  /* definitions that other inputs may use */
	STRONG = 2,  /* of those, not the .weak ones */
	PRIVATE = 4, /* what an input keeps to itself */
	VISIBLE = 8, /* of the strong ones, not the .common ones */
};

/* Whether one of the inputs [from, to), SELF apart, has a definition of that name. */
static bool defined(const struct link_text *text, size_t from, size_t to, size_t self,
	const struct statement *s, unsigned whose)
{
	for (size_t i = from; i < to && s->name; i++) {
		const struct link_statements *input = &text->statements[i];

		for (size_t k = find_name(input, s); i != self && k < input->named; k++) {
			const struct statement *other = input->by_name[k];
			unsigned kind = !other->shared ? PRIVATE
					: other->weak  ? SHARED
						       : SHARED | STRONG;

			if (order(other, s))
				break;
			if (other->strong)
				kind |= VISIBLE;
			if (!other->external && kind & whose)
				return true;
		}
	}
	return false;
}

static bool must_rename(const struct link_text *text, size_t self, const struct statement *s)
{
	return s->name && !s->external && !s->shared &&
	       (defined(text, 0, text->count, self, s, SHARED) ||
		       defined(text, 0, self, self, s, PRIVATE));
}

/* One header is enough; a variable is not declared where it is defined; of several definitions,
 * all but one of them weak, one stays. */
static bool left_out(const struct link_text *text, size_t self, const struct statement *s)
{
	if (s->header)
		return self > 0;
	if (!s->name)
		return false;
	if (s->external)
		return s->variable && defined(text, 0, text->count, self, s, SHARED);
	return s->weak && (defined(text, 0, self, self, s, SHARED) ||
				  defined(text, self, text->count, self, s, STRONG));
}

/* The order of what is linked: PTX wants a variable before what uses it, whichever input has
 * that, and functions in a variable's value declared. */
enum place { DECLARED, VARIABLES, REST, PLACES };

static enum place place_of(const struct statement *s)
{
	if (s->header || (s->function && s->external))
		return DECLARED;
	return s->variable ? VARIABLES : REST;
}

/* An input's names that must change: each once. */
struct renames {
	struct rename {
		const char *name;
		size_t size;
	} *names;
	size_t count;
};

static void put_renamed(struct out *out, const char *at, const char *end,
	const struct renames *renames, size_t self)
{
	while (at < end) {
		const char *word = skip(at), *next;

		if (word > end)
			word = end;
		put(out, at, (size_t)(word - at));
		if (word == end)
			return;
		next = token(word);
		put(out, word, (size_t)(next - word));
		for (size_t i = 0; i < renames->count; i++)
			if (renames->names[i].size == (size_t)(next - word) &&
				!memcmp(renames->names[i].name, word, renames->names[i].size)) {
				char suffix[32];

				put(out, suffix,
					(size_t)snprintf(
						suffix, sizeof(suffix), "__link%zu", self));
				break;
			}
		at = next;
	}
}

/* False: no memory. */
static bool find_renames(const struct link_text *text, size_t self, struct renames *renames)
{
	for (size_t k = 0; k < text->statements[self].count; k++) {
		const struct statement *s = &text->statements[self].list[k];

		if (must_rename(text, self, s)) {
			struct rename *more =
				realloc(renames->names, (renames->count + 1) * sizeof(*more));

			if (!more)
				return false;
			renames->names = more;
			more[renames->count++] = (struct rename){s->name, s->name_size};
		}
	}
	return true;
}

static void put_input(struct out *out, const struct link_text *text, size_t self,
	const struct renames *renames, enum place place)
{
	for (size_t k = 0; k < text->statements[self].count && !out->failed; k++) {
		const struct statement *s = &text->statements[self].list[k];

		if (place_of(s) == place && !left_out(text, self, s))
			put_renamed(out, s->begin, s->end, renames, self);
	}
	put(out, "\n", 1);
}

bool linker_text_add(struct link_text *text, const char *input, size_t n)
{
	size_t count = text->count + 1;
	char **inputs = realloc(text->inputs, count * sizeof(*inputs));
	struct link_statements *all, read = {0};
	char *copy;

	if (!inputs)
		return false;
	text->inputs = inputs;
	all = realloc(text->statements, count * sizeof(*all));
	if (!all)
		return false;
	text->statements = all;
	copy = malloc(n + 1);
	if (!copy)
		return false;
	memcpy(copy, input, n);
	copy[n] = 0;
	if (!read_statements(copy, &read)) {
		free_statements(&read);
		free(copy);
		return false;
	}
	text->statements[text->count] = read;
	text->inputs[text->count++] = copy;
	return true;
}

char *linker_text_finish(const struct link_text *text, unsigned max_registers)
{
	static const char nothing[] = ".version 6.0\n.target sm_50\n.address_size 64\n";
	struct out out = {0};
	struct renames *renames;
	char limit[64];

	/* Of nothing: an image without functions. */
	put(&out, nothing, text->count ? 0 : sizeof(nothing) - 1);
	if (max_registers)
		put(&out, limit,
			(size_t)snprintf(limit, sizeof(limit), PTX_PRAGMA_REGISTERS " %u\";\n",
				max_registers));
	renames = calloc(text->count ? text->count : 1, sizeof(*renames));
	out.failed |= !renames;
	for (size_t i = 0; i < text->count && !out.failed; i++)
		out.failed = !find_renames(text, i, &renames[i]);
	for (enum place place = DECLARED; place < PLACES; place++)
		for (size_t i = 0; i < text->count && !out.failed; i++)
			put_input(&out, text, i, &renames[i], place);
	for (size_t i = 0; renames && i < text->count; i++)
		free(renames[i].names);
	free(renames);
	if (out.failed) {
		free(out.text);
		return NULL;
	}
	return out.text;
}

const char *linker_text_missing(const struct link_text *text, size_t *n)
{
	for (size_t i = 0; i < text->count; i++)
		for (size_t k = 0; k < text->statements[i].count; k++) {
			const struct statement *s = &text->statements[i].list[k];

			/* An input's own definition may stand behind its prototype. */
			if (s->name && s->function && s->external &&
				!ptx_provides(s->name, s->name_size) &&
				!defined(text, 0, text->count, text->count, s,
					SHARED | STRONG | PRIVATE)) {
				*n = s->name_size;
				return s->name;
			}
		}
	return NULL;
}

const char *linker_text_twice(const struct link_text *text, size_t *n)
{
	for (size_t i = 1; i < text->count; i++)
		for (size_t k = 0; k < text->statements[i].count; k++) {
			const struct statement *s = &text->statements[i].list[k];

			if (s->name && s->strong && !s->external &&
				defined(text, 0, i, i, s, VISIBLE)) {
				*n = s->name_size;
				return s->name;
			}
		}
	return NULL;
}

bool linker_text_whole(const char *input)
{
	struct link_statements statements = {0};
	const struct link_text alone = {.statements = &statements, .count = 1};
	bool whole = true;

	/* Without memory for them nothing is missed. */
	if (!read_statements(input, &statements))
		statements.count = 0;
	for (size_t k = 0; k < statements.count && whole; k++) {
		const struct statement *s = &statements.list[k];

		whole = !s->name || !s->external ||
			defined(&alone, 0, 1, 1, s, SHARED | PRIVATE);
	}
	free_statements(&statements);
	return whole;
}

bool linker_text_defines(const char *input, const char *name, size_t n)
{
	while (*skip(input)) {
		struct statement s = statement(input);

		if (s.function && !s.external && s.shared && s.name_size == n &&
			!memcmp(s.name, name, n))
			return true;
		input = s.end;
	}
	return false;
}

void linker_text_fini(struct link_text *text)
{
	for (size_t i = 0; i < text->count; i++) {
		free(text->inputs[i]);
		free_statements(&text->statements[i]);
	}
	free(text->inputs);
	free(text->statements);
	*text = (struct link_text){0};
}
