/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated serve functions of a library of form(plain) stand on: its handles, opened,
 * used with the stream that came along, and closed; the memory that they fill; its status.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_PLAIN_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_PLAIN_H

#include "common/error.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/plain.h"

struct plain_library {
	enum agent_library library;
	enum handle_kind kind;
	size_t bytes; /* of its table of functions */
	int missing;  /* its status where the agent has none */
	int memory;   /* … and where there is no memory */
	int (*open)(void *functions, const char *path, struct error *error);
	int (*destroy)(const void *functions, void *handle);
	int (*set_stream)(const void *functions, void *handle, CUstream stream);
};

struct plain_served {
	const struct plain_library *of;
	const void *library; /* its functions */
	void *handle;
	CUstream stream;
	uint16_t context;
	bool stream_set;
	bool on_host; /* it fills memory of the worker's, which is copied to … */
	void *filled;
	CUdeviceptr to; /* … this, device memory of the program's */
	uint64_t bytes;
};

/* Opens it in a worker that waits for its session. */
void plain_warm(const struct worker *w, const struct plain_library *of, uint32_t major);
/* The library's functions; NULL where there is none: *answer and r->refused say so. */
const void *plain_open(
	struct worker *w, struct request *r, const struct plain_library *of, uint32_t major);
/* Binds what the library made with that status to the handle that the frame minted. */
CUresult plain_bind(struct worker *w, struct request *r, const struct plain_library *of,
	const void *library, int status, void *made, uint64_t handle, bool on_host);
/* The handle with the stream set; NULL and refused: not one of the session's in this context.
 */
struct plain_served *plain_use(struct worker *w, struct request *r,
	const struct plain_library *of, const struct library_state *state);
/* What the library is given for COUNT elements at a device address. */
void *plain_fills(struct worker *w, struct request *r, struct plain_served *s, uint64_t address,
	uint64_t count, size_t each);
/* The library's status becomes the answer, and what was filled goes where it belongs. */
CUresult plain_answer(struct worker *w, struct request *r, struct plain_served *s, int status);
CUresult plain_close(
	struct worker *w, struct request *r, const struct plain_library *of, uint64_t handle);

#endif
