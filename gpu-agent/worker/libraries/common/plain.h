/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated serve functions of a library stand on: its handles, opened,
 * used with the stream that came along, and closed; the memory that they fill; its status.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_PLAIN_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_PLAIN_H

#include "common/error.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/plain.h"

struct library_frame;

/* A library, as its stanza says. Its functions are a generated struct FAMILY_library. */
struct plain_library {
	enum agent_library library;
	enum handle_kind kind;
	size_t bytes; /* of its table of functions */
	struct library_statuses statuses;
	uint32_t pointer_mode; /* the word of the state that is one, or LIBRARY_NO_WORD */
	int (*open)(void *functions, const char *path, struct error *error);
	/* Handles that the client names, … */
	int (*destroy)(const void *functions, void *handle);
	/* NULL: they have none. */
	int (*set_stream)(const void *functions, void *handle, CUstream stream);
	/* … or one for each major and context. */
	struct plain_shared *shared; /* [LIBRARY_MAJORS * CONTEXT_MAX] */
	int (*create)(const void *functions, void **handle);
	/* Words of the state that the library's handle has too; NULL: none. One that the
	 * library does not know is as it always was. */
	int (*set_word)(const void *functions, void *handle, uint32_t word, uint32_t value);
	uint32_t (*get_word)(const void *functions, void *handle, uint32_t word);
	uint32_t (*version)(const void *functions, void *handle); /* NULL: not told */
	/* The library's status as statuses(…) numbers it; NULL: it is. */
	int (*numbered)(const void *functions, int status);
	/* The one of a status' kind that statuses(…) names; NULL: there are no kinds. */
	int (*kind_of)(int status);
	/* Of calls that travel as items (items.h); NULL: there is nothing of the kind. */
	void *(*descriptor)(struct library_frame *f, uint32_t kind);
	void (*element)(const void *functions, void *element); /* its status is numbered */
	/* The call was made, with that status, or stopped; NULL: nobody asks. */
	void (*ended)(struct library_frame *f, int status);
	bool beside; /* what is awaited is served beside the loop (beside_call.h) */
};

/* Of a context that is gone, it went with it. */
struct plain_shared {
	CUcontext context;
	void *handle;
};

struct plain_served {
	const struct plain_library *of;
	const void *library; /* its functions */
	void *handle;
	CUstream stream;
	uint32_t word[LIBRARY_STATE_WORDS]; /* as they are set */
	uint16_t context;
	bool stream_set;
	bool busy;    /* a call beside the loop has it */
	bool on_host; /* it fills memory of the worker's, which is copied to … */
	void *filled;
	CUdeviceptr to; /* … this, device memory of the program's */
	uint64_t bytes;
};

/* Opens it in a worker that waits for its session. */
void plain_warm(const struct worker *w, const struct plain_library *of, uint32_t major);
/* A context is going: what was kept for it goes. It is current. */
void plain_forget(const struct plain_library *of, uint16_t context);
/* The library's functions; NULL where there is none: r->refused or the answer says so. */
const void *plain_open(
	struct worker *w, struct request *r, const struct plain_library *of, uint32_t major);
/* The same, and the library's handle in the frame's context. */
const void *plain_shared(struct worker *w, struct request *r, const struct plain_library *of,
	uint32_t major, void **handle);
/* A status of the library's becomes the answer; of a post the CUresult. */
CUresult plain_status(struct request *r, const struct plain_library *of, int status);
/* The library has no function NAME. */
CUresult plain_without(
	struct worker *w, struct request *r, const struct plain_library *of, const char *name);
/* Binds what the library made with that status to the handle that the frame minted; the answer
 * is a struct library_opened. */
CUresult plain_bind(struct worker *w, struct request *r, const struct plain_library *of,
	const void *library, int status, void *made, uint64_t handle, bool on_host);
/* Whether a call in that context may use the handle: it was made there, or one of the two is of
 * a green context, whose code and memory are the primary one's. */
bool plain_reaches(const struct worker *w, const struct plain_served *s, uint16_t context);
/* The handle with stream and state set. NULL: not one of the session's in this context, or the
 * library did not take them; r->refused or the answer says so. */
struct plain_served *plain_use(struct worker *w, struct request *r,
	const struct plain_library *of, const struct library_state *state);
/* What the library is given for COUNT elements at a device address. */
void *plain_fills(struct worker *w, struct request *r, struct plain_served *s, uint64_t address,
	uint64_t count, size_t each);
/* What was to be filled is forgotten: the call was refused. */
void plain_unfill(struct plain_served *s);
/* The library's status becomes the answer, and what was filled goes where it belongs. */
CUresult plain_answer(struct worker *w, struct request *r, struct plain_served *s, int status);
/* The same for a library that has no function NAME; where the request is refused already, that.
 * S may be NULL. */
CUresult plain_lacks(
	struct worker *w, struct request *r, struct plain_served *s, const char *name);
CUresult plain_close(
	struct worker *w, struct request *r, const struct plain_library *of, uint64_t handle);

#endif
