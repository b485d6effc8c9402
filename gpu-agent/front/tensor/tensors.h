/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names: what sessions ask of the store, and what the store tells.  The front says
 * whose a question is (session, namespace, GPU), keeps it until it is answered, and asks the
 * next store anew where one dies.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_TENSORS_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_TENSORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/tensor_table.h"

struct front;
struct pool_worker;
struct session;
struct tenant;
struct viewer;

/* A worker's question. */
void tensors_ask(
	struct front *front, struct pool_worker *worker, const struct tensor_message *ask);
/* SESSION, of a worker or of a process of the node, writes the tensor no more. */
void tensors_followed(struct front *front, uint64_t session, const uint8_t id[16]);
/* A question of a process of the node: session, namespace and GPU (any, where it does not
 * matter) are told in it. False: it makes no sense, or AT_ONCE of them wait already. */
bool tensors_ask_for(struct front *front, const struct tensor_message *ask, uint32_t at_once);
/* A connection to another store; takes FD. */
void tensors_store(struct front *front, int fd);
/* The session is over, with all that it holds. */
void tensors_session_over(struct front *front, const struct session *session);
void tensors_over(struct front *front, uint64_t session);
/* Beside what sessions ask: COPIED, REDEEM. False: there is no store that hears it. */
bool tensors_tell_store(struct front *front, const struct tensor_message *message);
/* Sends what could not be sent, answers what nobody answers; the next time to look. */
uint64_t tensors_tick(struct front *front, uint64_t now);
/* What the store knows, as it is now: records change while they are read. NULL: there was no
 * store yet. */
const struct tensor_table *tensors_table(const struct front *front);
/* The namespace of a tenant's tensors: the part of its name that is one. */
void tensors_space(const struct tenant *tenant, char space[TENSOR_SPACE]);

/* http/tensor_state.c: /v1/tensors as VIEWER sees it, to be freed; and lines of
 * /metrics. */
char *tensors_status(const struct front *front, const struct viewer *viewer);
void tensors_metrics(FILE *out, const struct front *front);

#endif
