/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles that the shim minted and what they stand for here, and the memory that is the
 * session's.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_HANDLE_H
#define VCUDA_GPU_AGENT_WORKER_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/handle.h"

struct graph_module;
struct ipc_event;
struct request;
struct worker;
struct worker_stream;

struct name {
	uint32_t generation;
	uint8_t kind;
	bool launched; /* a function: once at least */
	uint16_t context;
	uint64_t owner; /* a function: its module's handle; 0: none */
	union {
		uint64_t bytes;		  /* a module: of its image */
		struct ipc_event *shared; /* an event: with other processes; NULL: not */
	};
	struct graph_module *kept; /* a module: graphs have kernels of it; NULL: none */
	void *object;
};

/* It stands for nothing any more; the generation stays: a stale handle is known as such. */
void handles_forget(struct worker *w, struct name *name);
struct name *handles_find(struct worker *w, uint64_t handle, enum handle_kind kind);
void handles_drop_context(struct worker *w, uint16_t context);
void handles_drop_owned(
	struct worker *w, uint64_t owner); /* what belongs to a module that goes */
void handles_own(struct worker *w, uint64_t handle, uint64_t owner);
struct worker_stream *worker_stream_object(
	struct worker *w, struct request *r, uint64_t handle);
bool worker_owns(const struct worker *w, uint64_t address, uint64_t bytes);
void worker_know_range(struct worker *w, uint64_t address, uint64_t bytes);

#endif
