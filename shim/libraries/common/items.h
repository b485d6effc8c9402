/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated stubs of a library put a call together with: items
 * (protocol/libraries/items.h), in the order of the function's parameters. The first fault is
 * kept in the call, so that a stub has no branches for errors. A call lives on the stack of
 * the thread that makes it. These functions are a part of each front (libvcuda-12.so …).
 */
#ifndef VCUDA_SHIM_LIBRARIES_COMMON_ITEMS_H
#define VCUDA_SHIM_LIBRARIES_COMMON_ITEMS_H

#include <string.h>

#include "protocol/libraries/items.h"
#include "shim/libraries/common/plain.h"

enum library_verb { LIBRARY_CACHED, LIBRARY_LEARNED, LIBRARY_CALL };

struct library_items {
	const struct library_front *front;
	struct library_handle *handle;
	CUstream stream;
	unsigned number; /* CALL_… */
	uint16_t op;
	enum library_verb verb;
	int status;   /* the first fault, as statuses(…) numbers it */
	int32_t mode; /* the pointer mode of the descriptor that has one */
	uint32_t pointers, outs, varying_bytes; /* so far */
	uint32_t extras; /* the last outs, which an older agent does not send */
	uint32_t key_words;
	void *list; /* where a list goes; NULL: there is none */
	uint32_t listed;
	uint32_t list_each; /* bytes of an element */
	bool left; /* something stays in a descriptor: what was asked before is posted again */
	struct {
		void *to;
		size_t bytes;
	} out[LIBRARY_OUTS];
	/* The frame's body; the varying part is moved to the key's end when it is sent. */
	struct library_body body;
	uint32_t key[LIBRARY_KEY_WORDS];
	_Alignas(8) unsigned char varying[LIBRARY_VARYING_MAX];
};

void library_begin(struct library_items *items, const struct library_front *front,
	unsigned number, uint16_t op, enum library_verb verb, const void *handle);
/* Ends the call, unless it is ended already; `text` says why, for a library that tells it. */
void library_fault(struct library_items *items, int status, const char *text);
/* NULL, and a fault, unless the call has one. */
void *library_full(struct library_items *items, const char *text);

/* Room for `n` more words of the key; NULL, and a fault, where it is full. */
static inline uint32_t *library_key(struct library_items *items, uint32_t n)
{
	uint32_t *at = items->key + items->key_words;

	if (items->status || n > LIBRARY_KEY_WORDS - items->key_words)
		return library_full(items, "the call has too many descriptors");
	items->key_words += n;
	return at;
}

/* The same in the varying part; bytes are a multiple of 8. */
static inline void *library_varying(struct library_items *items, uint32_t bytes)
{
	unsigned char *at = items->varying + items->varying_bytes;

	if (items->status || bytes > LIBRARY_VARYING_MAX - items->varying_bytes)
		return library_full(items, "the call has too many host values");
	items->varying_bytes += bytes;
	return at;
}

/* Notes whether the next pointer that may be NULL is. */
static inline bool library_present(struct library_items *items, const void *pointer)
{
	uint32_t bit = items->pointers++;

	if (bit >= LIBRARY_POINTERS)
		library_full(items, "the call has too many pointers");
	else if (pointer)
		items->body.present |= 1u << bit;
	return pointer && !items->status;
}

/* `bytes` <= 8 from the host, or NULL; 0: a type that has no size. */
void library_put_scalar(struct library_items *items, const void *value, uint32_t bytes);
/* A scalar that lies at that place: `bytes` <= 16 from the host, or its address. NULL, where it
 * is looked at, is a fault unless it may be missing. */
void library_put_placed(struct library_items *items, const void *value, uint32_t bytes,
	enum library_place place, bool maybe);
/* `bytes` <= 16 that come back, or the device address where the library puts them, as the
 * handle's pointer mode says. To the host they are waited for. */
void library_put_result(struct library_items *items, void *to, uint32_t bytes);
/* `bytes` <= 8 on the host that are read and written; where `value` is NULL, a fault, or 0 for
 * the library and nowhere for what it makes of it. */
void library_put_inout(struct library_items *items, void *value, uint32_t bytes);
void library_put_inout_maybe(struct library_items *items, void *value, uint32_t bytes);
/* The fault of arguments that do not go together. */
void library_mismatch(struct library_items *items);
/* `bytes` > 0 from the host, padded to 8, that are not part of what is learned. */
void library_put_bytes(struct library_items *items, const void *from, uint32_t bytes);
/* Host ints, or NULL: part of what a cached call is asked by, and of no other's key. */
void library_put_ints(struct library_items *items, const int *values, uint32_t count);
/* The same, never NULL and never part of the key. */
void library_put_varying_ints(struct library_items *items, const int *values, uint32_t count);
/* `count` descriptors, or NULL. */
void library_put_each(
	struct library_items *items, const void *descriptors, int64_t count, uint32_t kind);
/* `bytes` <= 8 of a number that comes back go to `to`, in order. */
void library_out(struct library_items *items, void *to, size_t bytes);
/* The same, after all others: 0 where an older agent answers. */
void library_out_extra(struct library_items *items, void *to, size_t bytes);
/* The same; nowhere, where `to` is NULL. */
void library_out_maybe(struct library_items *items, void *to, size_t bytes);
/* At most `count` elements come back, as many as the call's first number says. */
void library_list(struct library_items *items, void *to, int64_t count, uint32_t each);
/* Sends it: the program's status, and what came back where it belongs. */
int library_send(struct library_items *items);
/* For what is written by hand: the status as statuses(…) numbers it, and the answer, zeroed
 * where there was none. */
int library_exchange(struct library_items *items, void *answer, size_t bytes);

static inline void library_put_int(struct library_items *items, uint32_t value)
{
	uint32_t *at = library_key(items, 1);

	if (at)
		*at = value;
}

static inline void library_put_long(struct library_items *items, uint64_t value)
{
	uint32_t *at = library_key(items, 2);

	if (at)
		memcpy(at, &value, sizeof(value));
}

static inline void library_put_float(struct library_items *items, float value)
{
	uint32_t *at = library_key(items, 1);

	if (at)
		memcpy(at, &value, sizeof(value));
}

static inline void library_put_double(struct library_items *items, double value)
{
	uint32_t *at = library_key(items, 2);

	if (at)
		memcpy(at, &value, sizeof(value));
}

/* A device address without noting whether it is NULL: in arrays. */
static inline void library_put_address(struct library_items *items, uint64_t address)
{
	uint64_t *at = library_varying(items, sizeof(*at));

	if (at)
		*at = address;
	items->body.alignment |= address & 15;
}

/* A device address, or NULL. */
static inline void library_put_device(struct library_items *items, const void *address)
{
	library_present(items, address);
	library_put_address(items, (uint64_t)(uintptr_t)address);
}

/* A device address whose alignment is part of the key, and whether it is `same`, or NULL. */
static inline void library_put_aligned(
	struct library_items *items, const void *address, const void *same)
{
	uint64_t number = (uint64_t)(uintptr_t)address;
	uint64_t *at = library_varying(items, sizeof(*at));
	uint32_t *key = library_key(items, 1);

	if (!key)
		return;
	*at = number;
	*key = library_alignment(number) | (uint32_t)(same && same == address) << 8;
}

/* An object in host memory, or NULL, part of the key; `bytes` are a multiple of 4. */
static inline void library_put_value(
	struct library_items *items, const void *object, uint32_t bytes)
{
	uint32_t *at = library_key(items, object ? 1 + bytes / 4 : 1);

	if (!at)
		return;
	at[0] = object ? bytes / 4 : 0;
	if (object)
		memcpy(at + 1, object, bytes);
}

/* Room for the content of a descriptor of that kind; NULL where there is none. */
static inline void *library_put_content(
	struct library_items *items, uint32_t kind, uint32_t words)
{
	uint32_t *at = library_key(items, 1 + words);

	if (!at)
		return NULL;
	at[0] = kind << 16 | words;
	return at + 1;
}

/* INVALID_VALUE where it does not hold. */
static inline void library_require(struct library_items *items, bool holds)
{
	if (!holds)
		library_mismatch(items);
}

/* The stream of a call that names one. */
static inline void library_put_stream(struct library_items *items, CUstream stream)
{
	items->stream = stream;
}

/* A descriptor of that kind, or NULL, as the library's front puts its content. */
static inline void library_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind)
{
	items->front->descriptor(items, descriptor, kind);
}

/* A generated stub's body: the items of its call, for the front of SIDE, each put into `items`
 * by one of the expressions behind HANDLE. */
#define SEND_ITEMS(side, name, verb, handle, ...)                                              \
	{                                                                                      \
		struct library_items items;                                                    \
		library_begin(&items, &side##_front, CALL_##name, OP_##name, LIBRARY_##verb,   \
			handle);                                                               \
		__VA_ARGS__;                                                                   \
		return library_send(&items);                                                   \
	}
/* Those expressions. */
#define PUT(what, ...) library_put_##what(&items, __VA_ARGS__)
#define PUT_INT(value) PUT(int, (uint32_t)(value))
#define PUT_LONG(value) PUT(long, (uint64_t)(value))
#define PUT_OUT(to) library_out(&items, to, sizeof(*(to)))
#define PUT_OUT_MAYBE(to) library_out_maybe(&items, to, sizeof(*(to)))
#define PUT_LIST(to, count) library_list(&items, to, count, sizeof(*(to)))

#endif
