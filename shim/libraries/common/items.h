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
	int status;				/* the first fault, as statuses(…) numbers it */
	uint32_t pointers, outs, varying_bytes; /* so far */
	uint32_t key_words;
	void *list; /* where a list goes; NULL: there is none */
	uint32_t listed;
	uint32_t list_each; /* bytes of an element */
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
/* Room for `n` more words of the key; NULL, and a fault, where it is full. */
uint32_t *library_key(struct library_items *items, uint32_t n);
/* The same in the varying part; bytes are a multiple of 8. */
void *library_varying(struct library_items *items, uint32_t bytes);
/* Notes whether the next pointer that may be NULL is. */
bool library_present(struct library_items *items, const void *pointer);

/* `bytes` <= 16 from the host, or NULL; 0: a type that has no size. */
void library_put_scalar(struct library_items *items, const void *value, uint32_t bytes);
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

/* A descriptor of that kind, or NULL, as the library's front puts its content. */
static inline void library_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind)
{
	items->front->descriptor(items, descriptor, kind);
}

#endif
