/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the store's questions share (calls.c, calls_take.c).
 */
#ifndef VCUDA_GPU_AGENT_STORE_CALLS_CORE_H
#define VCUDA_GPU_AGENT_STORE_CALLS_CORE_H

#include "gpu-agent/store/store.h"

struct calls_name {
	char space[TENSOR_SPACE];
	char name[TENSOR_NAME];
};

/* The question is answered with STATUS and the sentence; -1. */
__attribute__((format(printf, 3, 4))) int calls_refuse(
	struct tensor_message *m, uint32_t status, const char *format, ...);
/* NAME, of the asking session's namespace, or NAMESPACE/NAME; false: refused. */
bool calls_parse_name(struct tensor_message *m, struct calls_name *parsed);
/* The session's namespace may have it. */
bool calls_may_have(const struct tensor_record *r, const struct tensor_message *m);
/* The tensor of that name, if the session may have it; UINT32_MAX: refused. */
uint32_t calls_find(struct store *s, struct tensor_message *m, const struct calls_name *name);
/* Answers with what the record says. */
void calls_tell(const struct store *s, struct tensor_message *m, uint32_t index);
/* A record with memory of so many bytes, in the account of the message's namespace, on its GPU;
 * no state yet. UINT32_MAX: refused. */
uint32_t calls_memory(struct store *s, struct tensor_message *m, uint64_t bytes);
/* ns since 1970. */
uint64_t calls_now(void);

/* calls_take.c: TENSOR_TAKE; the descriptor that goes along, or -1. */
int calls_take(struct store *s, struct tensor_message *m);

#endif
