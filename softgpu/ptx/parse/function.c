/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a function: parameters, what is said of its speed, its body.  Statements go to
 * ptx_decode.  An instruction that is not served makes its function unusable, not the module.
 */
#include "softgpu/ptx/parse/read.h"

#include <stdio.h>
#include <stdlib.h>

/* ( .param .b32 a, .reg .b32 b ): of a kernel in the parameter block, else in the frame. */
static void read_parameters(struct ptx_build *b, bool rets)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_function *f = ptx_build_function(b);
	uint32_t room = 0, nret = 0;

	if (ptx_scan_accept(s, ')'))
		return;
	do {
		struct ptx_declaration decl = {0};
		struct ptx_symbol *symbol;
		struct ptx_word word;
		bool in_reg = false;
		uint32_t at;

		ptx_read_char(b, '.');
		if (!ptx_scan_directive(s, &word))
			ptx_build_fail(b, s->line, "a parameter is expected");
		in_reg = ptx_word_is(word, "reg");
		ptx_variable_declaration(b, &decl);
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
		symbol->element = decl.element * decl.vector;
		if (rets) {
			f->rets = realloc(f->rets, (f->nrets + 1) * sizeof(*f->rets));
			f->rets[f->nrets++] = (struct ptx_slot){at, (uint32_t)decl.bytes};
		} else {
			f->params = ptx_build_grow(
				b, f->params, f->nparams, &room, sizeof(*f->params));
			f->params[f->nparams++] = (struct ptx_param){at, (uint32_t)decl.bytes};
		}
	} while (ptx_scan_accept(s, ','));
	ptx_read_char(b, ')');
}

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
	f->builtin = ptx_provided_builtin(word);
	symbol = ptx_build_symbol(b, word, PTX_SYM_FUNCTION);
	symbol->value = module->nfunctions++;
	return (uint32_t)symbol->value;
}

static void read_three(struct ptx_build *b, unsigned v[3])
{
	v[0] = (unsigned)ptx_read_int(b);
	v[1] = v[2] = 1;
	for (int k = 1; k < 3 && ptx_scan_accept(&b->scan, ','); k++)
		v[k] = (unsigned)ptx_read_int(b);
}

/* .maxntid and its like, between the parameters and the body. */
static void read_tuning(struct ptx_build *b, struct ptx_function *f)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word word;
	unsigned v[3];

	while (ptx_scan_accept(s, '.')) {
		if (!ptx_scan_directive(s, &word))
			ptx_build_fail(b, s->line, "a directive is expected");
		if (ptx_word_is(word, "maxntid") || ptx_word_is(word, "reqntid")) {
			uint64_t product;

			read_three(b, v);
			product = (uint64_t)v[0] * v[1] * v[2];
			f->max_threads =
				product < PTX_MAX_THREADS ? (unsigned)product : PTX_MAX_THREADS;
			if (word.p[0] == 'r')
				memcpy(f->required, v, sizeof(v));
		} else if (ptx_word_is(word, "maxnreg")) {
			f->max_registers = (unsigned)ptx_read_int(b);
		} else if (ptx_word_is(word, "reqnctapercluster")) {
			read_three(b, f->cluster);
		} else if (ptx_word_is(word, "minnctapersm") ||
			   ptx_word_is(word, "maxnctapersm") ||
			   ptx_word_is(word, "maxclusterrank") ||
			   ptx_word_is(word, "abi_preserve") ||
			   ptx_word_is(word, "abi_preserve_control")) {
			(void)ptx_read_int(b);
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

void ptx_read_function(struct ptx_build *b, bool is_kernel)
{
	struct ptx_scan *s = &b->scan, rets = {0}, params = {0}, here;
	struct ptx_function *f;
	struct ptx_word name;
	uint32_t index;

	if (ptx_scan_accept(s, '.')) {
		struct ptx_word word;

		ptx_scan_directive(s, &word); /* .noreturn, .attribute(...) */
		if (ptx_scan_accept(s, '('))
			ptx_scan_past_group(s);
	}
	/* These are read once to find the name, and once more inside its scope. */
	if (ptx_scan_accept(s, '(')) {
		rets = *s;
		ptx_scan_past_group(s);
	}
	name = ptx_read_word(b);
	if (ptx_scan_accept(s, '(')) {
		params = *s;
		ptx_scan_past_group(s);
	}
	index = find_or_add_function(b, name);
	f = &b->module->functions[index];
	f->is_kernel = is_kernel;
	read_tuning(b, f);
	if (ptx_scan_accept(s, ';'))
		return;
	ptx_read_char(b, '{');
	if (f->is_defined)
		ptx_build_fail(b, s->line, "%s is defined twice", f->name);

	b->function = index;
	b->nret_regs = 0;
	b->ret_regs = NULL;
	b->nloads = 0;
	memset(b->ntemps, 0, sizeof(b->ntemps));
	memset(b->matrix, 0, sizeof(b->matrix));
	memset(b->texture, 0, sizeof(b->texture));
	b->bulk = 0;
	memset(b->fragments, 0, sizeof(b->fragments));
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
	ptx_build_drop_loads(b);
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
		(void)ptx_read_word(b);
		n++;
	} while (ptx_scan_accept(&b->scan, ','));
	b->scan = start;
	symbol->targets = ptx_build_alloc(b, n * sizeof(*symbol->targets));
	symbol->count = 0;
	do {
		symbol->targets[symbol->count++] = ptx_read_word(b);
	} while (ptx_scan_accept(&b->scan, ','));
	ptx_read_char(b, ';');
}

/* NAME: may name a table, or the place in the code where another directive stands. */
static void read_label(struct ptx_build *b, struct ptx_word label)
{
	struct ptx_scan *s = &b->scan, start;
	struct ptx_word word = {NULL, 0};

	(void)ptx_scan_peek(s);
	start = *s;
	if (ptx_scan_accept(s, '.'))
		ptx_scan_directive(s, &word);
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

	if (!ptx_scan_directive(s, &word))
		ptx_build_fail(b, s->line, "a directive is expected");
	if (ptx_word_is(word, "reg")) {
		ptx_variable_registers(b);
	} else if (ptx_word_is(word, "local") || ptx_word_is(word, "param")) {
		ptx_variable_frame(b);
	} else if (ptx_word_is(word, "shared")) {
		ptx_variable_shared(b, false);
	} else if (ptx_word_is(word, "extern")) {
		ptx_read_char(b, '.');
		ptx_scan_directive(s, &word);
		if (!ptx_word_is(word, "shared"))
			ptx_build_fail(
				b, s->line, ".extern .%.*s in a function", (int)word.n, word.p);
		ptx_variable_shared(b, true);
	} else if (ptx_word_is(word, "global") || ptx_word_is(word, "const")) {
		ptx_variable_global(b, word.p[0] == 'c', false);
	} else if (ptx_word_is(word, "pragma")) {
		ptx_scan_past(s, ';');
	} else if (ptx_word_is(word, "loc") || ptx_word_is(word, "file")) {
		while (s->p < s->end && *s->p != '\n')
			s->p++;
	} else {
		ptx_build_fail(b, s->line, "unknown directive .%.*s", (int)word.n, word.p);
	}
}

/* To the semicolon, past lists; or to the end of the block. */
static void past_statement(struct ptx_scan *s)
{
	unsigned depth = 0;

	for (char c; (c = ptx_scan_peek(s)) && c != ';'; s->p++) {
		if (c == '}' && !depth)
			return;
		depth += c == '{';
		depth -= c == '}';
	}
}

/* Decodes one statement; what is not served ends in an instruction that says so. */
static void read_statement(struct ptx_build *b, struct ptx_word root)
{
	struct ptx_scan *s = &b->scan;

	b->st.root = root;
	b->statement++;
	b->first = b->module->ncode;
	b->flow = false;
	if (!setjmp(b->unsupported)) {
		b->in_statement = true;
		ptx_decode(b);
		b->in_statement = false;
	} else {
		b->in_statement = false;
		/* What the decoder did not read of it. */
		past_statement(s);
		memset(b->used_temps, 0, sizeof(b->used_temps));
		while (b->nfixups && b->fixups[b->nfixups - 1].ins >= b->first)
			b->nfixups--;
		while (b->nbranches && b->branches[b->nbranches - 1] >= b->first)
			b->nbranches--;
		b->module->ncode = b->first;
		ptx_build_emit(b, "missing");
	}
	ptx_read_char(b, ';');
	ptx_statement_end(b);
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
			b->guard = ptx_read_word(b);
			b->guarded = true;
			read_statement(b, ptx_read_word(b));
		} else {
			word = ptx_read_word(b);
			if (ptx_scan_peek(s) == ':') {
				s->p++;
				read_label(b, word);
			} else {
				read_statement(b, word);
			}
		}
	}
}
