/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of tensors from agent to agent (docs/TENSORS.md): what this agent's store fetches, and
 * what others' fetch here.  Each takes a warm worker for as long as it lasts; few run at once,
 * the others wait.  The one that fetches dials (direct.h) what the index says, if `peers:`
 * names it; the one that has it asks its store what the ticket is for.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_COPY_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/tensor.h"

struct tensor_copies;
struct front;
struct pool_worker;

/* Of numbers of dials: a copy's, and no session's. */
#define COPY_NUMBER (1ull << 63)

int tensor_copy_open(struct front *front, struct error *error);
/* The store wants one (takes MEMORY), has told what a ticket is for, or is gone. */
void tensor_copy_fetch(struct front *front, const struct tensor_message *m, int memory);
/* The memory that a copy without an address is of; takes MEMORY. */
void tensor_copy_source(struct front *front, const struct tensor_message *m, int memory);
void tensor_copy_redeemed(struct front *front, const struct tensor_message *m, int memory);
void tensor_copy_store_gone(struct front *front);
/* A connection in the role COPY. As direct_join: takes FD where it returns 0. */
uint32_t tensor_copy_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* The dial of NUMBER has ended: FD, which is taken, or -errno and TEXT. */
void tensor_copy_dialed(struct front *front, uint64_t number, int fd,
	const struct transport *transport, const char *text);
/* How many wait for a worker; and one that is TAKEN for the first of them. */
uint32_t tensor_copy_waiting(const struct front *front);
void tensor_copy_assign(struct front *front, struct pool_worker *worker);
/* What its worker says; and that it is gone. */
void tensor_copy_heard(
	struct front *front, struct pool_worker *worker, const struct tensor_message *m);
void tensor_copy_worker_gone(struct front *front, struct pool_worker *worker);
uint64_t tensor_copy_tick(struct front *front, uint64_t now);
void tensor_copy_metrics(FILE *out, const struct front *front);

#endif
