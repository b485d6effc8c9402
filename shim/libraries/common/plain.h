/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated stubs of a library of form(plain) stand on: handles with the state that
 * travels with each call, and calls that answer in the library's own numbers.
 */
#ifndef VCUDA_SHIM_LIBRARIES_COMMON_PLAIN_H
#define VCUDA_SHIM_LIBRARIES_COMMON_PLAIN_H

#include "protocol/libraries/plain.h"
#include "shim/libraries/common/front.h"

#define library_count vcuda_count /* for the rows of stub.h */

/* A library: its name, the kind of its handles, and what it answers where … */
struct library_front {
	const char *name;
	uint32_t kind;
	int *logged_once; /* that the agent has none */
	int handle;	  /* … the handle is none of ours */
	int memory;	  /* … there is no memory */
	int lost;	  /* … the session or an earlier call failed */
	int missing;	  /* … there is no GPU, or the agent lacks the library */
};

struct library_handle {
	CUstream stream;
	struct library_state state; /* the stream is filled in for each call */
};

/* A call; the first fault is kept in it, so that a stub has no branches for errors. */
struct library_call {
	const struct library_front *front;
	struct library_handle *handle;
	unsigned number; /* CALL_… */
	int status;
	bool keeps; /* `kept` becomes word `word` of the state */
	unsigned word;
	uint32_t kept;
	void *to; /* memory of the program that a handle on the host fills, … */
	uint64_t bytes;
	CUdeviceptr between; /* … by way of this */
};

/* Counts the call; HANDLE: none where it makes one. */
void vcuda_library_begin(struct library_call *call, const struct library_front *front,
	unsigned number, void *handle, struct library_state *state);
/* Once it succeeded, VALUE is that word of the state. */
void vcuda_library_keeps(struct library_call *call, unsigned word, uint32_t value);
/* COUNT elements at TO are filled; *address is what travels for them. */
void vcuda_library_fills(
	struct library_call *call, uint64_t *address, void *to, uint64_t count, size_t each);
/* Learned by the body from LIBRARY_KEY_FROM to KEY_TO; awaited where memory of the program is
 * filled. */
int vcuda_library_send(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes, uint32_t key_to);
/* The body begins with the state; ON_HOST: the handle fills memory of the program. */
int vcuda_library_create(struct library_call *call, uint16_t op, void *body, size_t body_bytes,
	const char *name, bool on_host, void **handle);
int vcuda_library_destroy(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes);
int vcuda_library_stream(
	const struct library_front *front, unsigned number, void *handle, CUstream stream);
/* Sends a frame that is written by hand; its reply begins with struct library_reply. */
int vcuda_library_ask(const struct library_front *front, uint16_t op, const void *body,
	size_t body_bytes, void *reply, size_t reply_bytes, const char *name);
/* A CUresult of the session's as the library's number. */
int vcuda_library_status(const struct library_front *front, CUresult status);

#endif
