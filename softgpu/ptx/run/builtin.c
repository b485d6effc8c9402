/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that every device program may call without bringing them: vprintf, assert,
 * malloc and free (those of the device runtime: device_runtime.c).  Arguments lie in the lanes'
 * local memory, as the call left them.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

#define MAX_TEXT 4096

static void to_stdout(void *arg, const char *text, size_t n)
{
	(void)arg;
	fwrite(text, 1, n, stdout);
	fflush(stdout);
}

static void (*print)(void *arg, const char *text, size_t n) = to_stdout;
static void *print_arg;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

void ptx_set_print(void (*function)(void *arg, const char *text, size_t n), void *arg)
{
	pthread_mutex_lock(&print_lock);
	print = function ? function : to_stdout;
	print_arg = arg;
	pthread_mutex_unlock(&print_lock);
}

uint64_t ptx_argument(
	struct ptx_warp *w, const struct ptx_call *call, unsigned lane, uint32_t index)
{
	const struct ptx_slot *slot;
	uint64_t v = 0;

	if (index >= call->nargs)
		return 0;
	slot = &call->slots[index];
	memcpy(&v, ptx_local(w, lane) + w->frame->fp + slot->offset,
		slot->size < 8 ? slot->size : 8);
	return v;
}

const void *ptx_argument_at(struct ptx_warp *w, const struct ptx_call *call, unsigned lane,
	uint32_t index, size_t size)
{
	if (index >= call->nargs || call->slots[index].size < size)
		return NULL;
	return ptx_local(w, lane) + w->frame->fp + call->slots[index].offset;
}

void ptx_result(struct ptx_warp *w, const struct ptx_call *call, unsigned lane, uint64_t value)
{
	const struct ptx_slot *slot = &call->slots[call->nargs];

	if (call->nrets)
		memcpy(ptx_local(w, lane) + w->frame->fp + slot->offset, &value,
			slot->size < 8 ? slot->size : 8);
}

/* A string of the device; cut at `room`. */
static void read_text(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	uint64_t address, char *text, size_t room)
{
	size_t n = 0;

	if (!address) {
		snprintf(text, room, "(null)");
		return;
	}
	while (n + 1 < room) {
		char c = *(const char *)ptx_generic(w, i, lane, address + n, 1);

		if (!c)
			break;
		text[n++] = c;
	}
	text[n] = 0;
}

struct out {
	char text[MAX_TEXT];
	size_t n;
};

static void put(struct out *out, const char *text, size_t n)
{
	size_t room = sizeof(out->text) - out->n;

	n = n < room ? n : room;
	memcpy(out->text + out->n, text, n);
	out->n += n;
}

struct arguments {
	uint64_t at;
	uint64_t base;
};

/* The next of the packed arguments: 4 bytes, or 8 on a multiple of 8. */
static uint64_t next(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	struct arguments *args, size_t size)
{
	uint64_t v = 0;

	args->at = (args->at + size - 1) & ~(uint64_t)(size - 1);
	memcpy(&v, ptx_generic(w, i, lane, args->base + args->at, size), size);
	args->at += size;
	return v;
}

/* One conversion, `spec` from % to the letter; the C library formats it. */
static void convert(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	struct arguments *args, struct out *out, const char *flags, const char *length,
	char kind)
{
	bool wide = strchr(length, 'l') || strchr(length, 'j') || strchr(length, 'z') ||
		    strchr(length, 't');
	char spec[80], text[1024], from[768];
	uint64_t v;
	double f;
	int n = 0;

	switch (kind) {
	case 'd':
	case 'i':
		v = next(w, i, lane, args, wide ? 8 : 4);
		snprintf(spec, sizeof(spec), "%%%s%s", flags, PRId64);
		if (!wide)
			v = (uint64_t)(int64_t)(int32_t)v;
		if (strstr(length, "hh"))
			v = (uint64_t)(int64_t)(int8_t)v;
		else if (strchr(length, 'h'))
			v = (uint64_t)(int64_t)(int16_t)v;
		break;
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		v = next(w, i, lane, args, wide ? 8 : 4);
		if (strstr(length, "hh"))
			v &= 0xff;
		else if (strchr(length, 'h'))
			v &= 0xffff;
		snprintf(spec, sizeof(spec), "%%%sl%c", flags, kind);
		break;
	case 'p':
		v = next(w, i, lane, args, 8);
		snprintf(spec, sizeof(spec), "%%#%slx", flags);
		break;
	case 'c': v = next(w, i, lane, args, 4); snprintf(spec, sizeof(spec), "%%%sc", flags);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		n = snprintf(text, sizeof(text), spec, (int)v);
		put(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
		return;
	case 's':
		v = next(w, i, lane, args, 8);
		read_text(w, i, lane, v, from, sizeof(from));
		snprintf(spec, sizeof(spec), "%%%ss", flags);
		n = snprintf(text, sizeof(text), spec, from);
		put(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
		return;
	default:
		v = next(w, i, lane, args, 8);
		memcpy(&f, &v, sizeof(f));
		snprintf(spec, sizeof(spec), "%%%s%c", flags, kind);
		n = snprintf(text, sizeof(text), spec, f);
		put(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
		return;
	}
	n = snprintf(text, sizeof(text), spec, v);
#pragma GCC diagnostic pop
	put(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static uint64_t device_printf(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, const struct ptx_call *call)
{
	uint64_t address = ptx_argument(w, call, lane, 0);
	struct arguments args = {0, ptx_argument(w, call, lane, 1)};
	char format[MAX_TEXT];
	struct out out = {.n = 0};
	uint64_t count = 0;

	read_text(w, i, lane, address, format, sizeof(format));
	for (const char *p = format; *p;) {
		char flags[64] = "", length[8] = "";
		size_t nflags = 0, nlength = 0;

		if (*p != '%') {
			put(&out, p++, 1);
			continue;
		}
		p++;
		if (*p == '%') {
			put(&out, p++, 1);
			continue;
		}
		while (*p && strchr("-+ #0123456789.*", *p) && nflags < sizeof(flags) - 13) {
			if (*p == '*') {
				int32_t v = (int32_t)next(w, i, lane, &args, 4);

				nflags += (size_t)snprintf(
					flags + nflags, sizeof(flags) - nflags, "%d", v);
				count++;
				p++;
			} else {
				flags[nflags++] = *p++;
			}
			flags[nflags] = 0;
		}
		while (*p && strchr("hljztLq", *p) && nlength < sizeof(length) - 1) {
			length[nlength++] = *p++;
			length[nlength] = 0;
		}
		if (!*p || !strchr("diuxXocspeEfFgGaA", *p)) {
			put(&out, "%", 1);
			continue;
		}
		convert(w, i, lane, &args, &out, flags, length, *p++);
		count++;
	}
	pthread_mutex_lock(&print_lock);
	print(print_arg, out.text, out.n);
	pthread_mutex_unlock(&print_lock);
	return count;
}

_Noreturn static void device_assert(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, const struct ptx_call *call)
{
	char what[256], file[256], function[256];
	uint32_t line = (uint32_t)ptx_argument(w, call, lane, 2);
	const uint32_t *ctaid = w->block->ctaid;

	read_text(w, i, lane, ptx_argument(w, call, lane, 0), what, sizeof(what));
	read_text(w, i, lane, ptx_argument(w, call, lane, 1), file, sizeof(file));
	read_text(w, i, lane, ptx_argument(w, call, lane, 3), function, sizeof(function));
	fprintf(stderr,
		"%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
		file, line, function, ctaid[0], ctaid[1], ctaid[2], w->tid[0][lane],
		w->tid[1][lane], w->tid[2][lane], what);
	ptx_fault(w, i, PTX_ASSERT, "%s:%u: assertion `%.120s` failed", file, line, what);
}

void ptx_builtin_call(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_function *callee, const struct ptx_call *call)
{
	struct ptx_heap *heap = w->block->run->module->heap;

	for (uint32_t m = w->mask; m; m &= m - 1) {
		unsigned lane = ptx_first(m);

		switch (callee->builtin) {
		case PTX_VPRINTF:
			ptx_result(w, call, lane, device_printf(w, i, lane, call));
			break;
		case PTX_ASSERTFAIL: device_assert(w, i, lane, call);
		case PTX_MALLOC:
			ptx_result(w, call, lane,
				ptx_heap_alloc(heap, ptx_argument(w, call, lane, 0)));
			break;
		case PTX_FREE: ptx_heap_free(heap, ptx_argument(w, call, lane, 0)); break;
		default: ptx_runtime_call(w, i, lane, callee->builtin, call); break;
		}
	}
}
