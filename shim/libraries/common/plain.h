/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated stubs of a library stand on: handles with the state that
 * travels with each call, and calls that answer in the library's own numbers.
 */
#ifndef VCUDA_SHIM_LIBRARIES_COMMON_PLAIN_H
#define VCUDA_SHIM_LIBRARIES_COMMON_PLAIN_H

#include <string.h>

#include "protocol/libraries/plain.h"
#include "shim/libraries/common/driver_front.h"

#define library_count vcuda_count /* for the rows of stub.h */

#define LIBRARY_KEPT 8 /* numbers of a handle that only its getters ask for */

struct library_items;

/* A library, as its stanza says. */
struct library_front {
	const char *name;
	uint32_t kind;	  /* of its handles */
	uint32_t also;	  /* the kind of another library's that pass for one, or 0 */
	int *logged_once; /* that the agent has none */
	/* The agent's, once a handle was made; NULL: no handle tells. */
	_Atomic uint32_t *version;
	uint32_t pointer_mode; /* the word of the state that is one, or LIBRARY_NO_WORD */
	uint32_t on_host;      /* the word that says that the handle fills memory of the
				  program, or LIBRARY_NO_WORD */
	/* Makes what a handle is made, ended or set with the program's status; NULL: it is. */
	int (*says)(int status);
	uint32_t major; /* the first word of its state is this; 0: a handle's own */
	/* Of calls that travel as items (items.h); NULL: nothing of the kind. */
	void (*descriptor)(struct library_items *items, const void *descriptor, uint32_t kind);
	/* Keeps the text of what failed here; NULL: the status says it. */
	void (*explain)(int status, const char *text);
	void (*answered)(int status);	/* the same of what failed at the agent */
	int (*program)(int status);	/* a call's status as the program numbers it */
	void (*element)(void *element); /* the same of the status in a list's element */
	struct library_statuses statuses;
	uint64_t kept[LIBRARY_KEPT]; /* of a new handle */
};

/* Words of a handle: those of the state, then those that are kept. */
struct library_handle {
	CUstream stream;
	struct library_state state; /* the stream is filled in for each call */
	uint64_t kept[LIBRARY_KEPT];
	uint32_t version; /* of the agent's library, or 0 */
};

/* A call; the first fault is kept in it, so that a stub has no branches for errors. */
struct library_call {
	const struct library_front *front;
	struct library_handle *handle;
	unsigned number; /* CALL_… */
	int status;
	bool awaited; /* something comes back to memory of the program */
	bool keeps;   /* `kept` becomes word `word` of the handle */
	uint32_t word;
	uint64_t kept;
	void *to; /* memory of the program that a handle on the host fills, … */
	uint64_t bytes;
	CUdeviceptr between; /* … by way of this */
};

/* The name that stands in memory of the program's; NULL: there is no such memory. */
static inline void *library_named(const void *at)
{
	void *name = NULL;

	if (at)
		memcpy(&name, at, sizeof(name));
	return name;
}

/* The handle; NULL: none of the library's. */
struct library_handle *vcuda_library_find(
	const struct library_front *front, const void *handle);
/* Counts the call; HANDLE: none where it makes one. */
void vcuda_library_begin(struct library_call *call, const struct library_front *front,
	unsigned number, const void *handle, struct library_state *state);
/* Once it succeeded, VALUE is that word of the handle. */
void vcuda_library_keeps(struct library_call *call, uint32_t word, uint64_t value);
/* COUNT elements at TO are filled; *address is what travels for them. */
void vcuda_library_fills(
	struct library_call *call, uint64_t *address, void *to, uint64_t count, size_t each);
/* Pointers to the host: the value; else its address. BYTES <= 8 * LIBRARY_VALUE_WORDS; 0: a
 * type that has no size. */
void vcuda_library_scalar(
	struct library_call *call, uint64_t *words, const void *value, uint32_t bytes);
/* The same for what is read and written, and for what is only written. */
void vcuda_library_inout(
	struct library_call *call, uint64_t *words, void *value, uint32_t bytes);
void vcuda_library_result(struct library_call *call, uint64_t *words, void *result);
/* Learned by the body from LIBRARY_KEY_FROM to KEY_TO, 0: never; awaited where memory of the
 * program is filled. REPLY, NULL or one that begins with struct library_reply, is zeroed, and
 * filled in where the call was awaited. */
int vcuda_library_send(struct library_call *call, uint16_t op, void *body, size_t body_bytes,
	uint32_t key_to, void *reply, size_t reply_bytes);
/* Copies a result to the program's memory, where pointers are to it and after success. */
void vcuda_library_copy_result(
	const struct library_call *call, void *to, const uint64_t *words, uint32_t bytes);
/* The body begins with the state; ON_HOST: the handle fills memory of the program. */
int vcuda_library_create(struct library_call *call, uint16_t op, void *body, size_t body_bytes,
	const char *name, bool on_host, void **handle);
int vcuda_library_destroy(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes);

/* What is set and asked of a handle without a frame. */
int vcuda_library_stream_set(
	const struct library_front *front, unsigned number, void *handle, CUstream stream);
int vcuda_library_stream_get(
	const struct library_front *front, unsigned number, void *handle, CUstream *stream);
/* VALUE beyond LARGEST is refused. */
int vcuda_library_word_set(const struct library_front *front, unsigned number, void *handle,
	uint32_t word, int64_t value, int64_t largest);
/* TO: where the program wants it; NULL is refused. */
int vcuda_library_word_get(const struct library_front *front, unsigned number, void *handle,
	uint32_t word, const void *to, uint64_t *value);
bool vcuda_library_on_device(const struct library_front *front, const void *handle);

/* Of a library whose handles the agent does not know: asks, once, by OP whether there is a
 * library for a program that uses MAJOR. */
int vcuda_library_opened(const struct library_front *front, uint16_t op, uint32_t major,
	struct library_opened *opened);
int vcuda_library_name(struct library_call *call, uint16_t op, uint32_t major, const char *name,
	void **handle);
int vcuda_library_unname(struct library_call *call);

/* Sends a frame that is written by hand; its reply is NULL or begins with struct library_reply,
 * which is zero where the call was posted. What is cached is kept unless LIBRARY_PASSING. */
int vcuda_library_frame(const struct library_front *front, struct front_frame *frame);
/* The same for one that is awaited. */
int vcuda_library_ask(const struct library_front *front, uint16_t op, const void *body,
	size_t body_bytes, void *reply, size_t reply_bytes, const char *name);
/* A CUresult of the session's as the library's number. */
static inline int front_status(const struct library_front *front, CUresult status)
{
	return library_status(&front->statuses, status);
}
/* For a call that is not served. */
static inline int front_refused(
	const struct library_front *front, unsigned number, const char *name, const char *why)
{
	return front_status(front, vcuda_front_refused(number, name, why));
}

#endif
