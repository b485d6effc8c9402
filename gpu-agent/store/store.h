/* SPDX-License-Identifier: Apache-2.0
 *
 * The store's state.  One thread.  store.c has the loop and the other processes, tensor_table.c
 * the records, calls.c what is asked.
 */
#ifndef VCUDA_GPU_AGENT_STORE_STORE_H
#define VCUDA_GPU_AGENT_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/front/events.h"
#include "gpu-agent/store/memory.h"
#include "gpu-agent/store/registry/registry.h"
#include "gpu-agent/tensor_table.h"

struct store {
	const struct agent_config *config;
	struct events events;
	struct watch supervisor;
	struct watch front; /* -1: none */
	struct memory *memory;
	char memory_text[192]; /* why there is none */
	uint32_t sandbox;      /* the parts that hold (sandbox.h) */
	struct tensor_table *table;
	int table_fd;
	int fds[TENSORS_MAX];	   /* of each record's memory; -1: none */
	struct registry *registry; /* the index in Redis; NULL: none (index.h) */
	struct watch index;
	char node[REGISTRY_NODE + 1]; /* this agent's ID there */
	struct replica *replicas;     /* on their way here (replicas.h) */
	uint64_t replica_numbers;
	bool index_knows; /* what is done came from there */
	bool begun;	  /* what the store before left is here */
	bool done;
	/* Between SESSIONS and END: the sessions that run. */
	uint64_t *running;
	uint32_t running_count, running_room;
};

/* --- store.c --- */
/* The supervisor keeps FD under NAME, or lets it go; false: it is gone. */
bool store_keep(struct store *store, const uint8_t name[16], int fd);
void store_let_go(struct store *store, const uint8_t name[16]);
/* To the front, if there is one; FD stays the caller's, or is -1. */
void store_say(struct store *store, const struct tensor_message *message, int fd);
/* What the front asks; also what waited for something. */
void store_hear(struct store *store, const struct tensor_message *message);

/* --- tensor_table.c --- */
/* The place of NAMESPACE/NAME; UINT32_MAX: nobody has that name. */
uint32_t store_table_find(const struct store *store, const char *space, const char *name);
/* The same, or its replica on GPU; UINT32_MAX: there is none. */
uint32_t store_table_find_on(
	const struct store *store, const char *space, const char *name, const uint8_t gpu[16]);
uint32_t store_table_by_id(const struct store *store, const uint8_t id[16]);
/* What programs open it by (handle.c), and back; UINT32_MAX: no tensor has that handle now. */
void store_handle(const struct tensor_record *record, struct tensor_handle *handle);
uint32_t store_table_by_handle(const struct store *store, const char *digits);
/* A record for memory of ROOM bytes, state FREE, with FD (taken where it succeeds); the
 * supervisor keeps it. UINT32_MAX: none is free. */
uint32_t store_table_new(struct store *store, const uint8_t gpu[16], uint64_t room, int fd);
/* The record is a tensor of that name from here on. */
void store_table_name(struct store *store, uint32_t index, uint32_t state);
/* Its name goes; its memory too where nobody holds it. */
void store_table_unname(struct store *store, uint32_t index);
/* Without holders and name: into the pool, or back to the driver. */
void store_table_free(struct store *store, uint32_t index);
void store_table_release(struct store *store, uint32_t index);
/* SESSION is among its holders: false: no room. */
bool store_table_hold(struct store *store, uint32_t index, uint64_t session, bool writes);
/* No more; what that ends, ends. */
void store_table_drop(struct store *store, uint32_t index, uint64_t session);
bool store_table_holds(const struct store *store, uint32_t index, uint64_t session);
/* The session has ended. */
void store_table_session_over(struct store *store, uint64_t session);
/* After a restart: what does not fit together goes. */
void store_table_check(struct store *store);
/* Bytes of memory that the namespace has (NULL: all, with the pool) of that GPU (NULL: any). */
uint64_t store_table_bytes(const struct store *store, const char *space, const uint8_t *gpu);
/* Records that the namespace has, pooled memory among them. */
uint32_t store_table_tensors(const struct store *store, const char *space);
/* The namespace's pooled memory that was used least recently goes. False: it has none. */
bool store_table_unpool(struct store *store, const char *space);
/* Frees what may go, least recently used first, until BYTES of that GPU are free; false: there
 * is not so much, and nothing went. */
bool store_table_evict(struct store *store, const uint8_t gpu[16], uint64_t bytes);
/* Tells the front how much memory of the GPU there is now. */
void store_table_tell(struct store *store, const uint8_t gpu[16]);
/* Tells the workers that may write what is sealed (INDEX; UINT32_MAX: of all) to do so no more.
 * What is said may be lost with a front or a store, so it is said again to each front, until
 * it is followed. */
void store_table_tell_sealed(struct store *store, uint32_t index);
/* Session has done so. */
void store_table_followed(struct store *store, const uint8_t id[16], uint64_t session);

/* --- pieces.c: small tensors of one owner in one piece of memory --- */
/* What the message asks for goes into a piece. */
bool pieces_wanted(const struct tensor_message *m, uint64_t bytes);
/* A record in the session's newest piece, if that has room for BYTES; UINT32_MAX: it has not.
 */
uint32_t pieces_place(struct store *s, const struct tensor_message *m, uint64_t bytes);
/* The record, whose memory is new, begins a piece. */
void pieces_begin(struct store *s, uint32_t index);

/* --- calls.c --- */
/* Answers the question in *MESSAGE in its place. The descriptor that goes along, which stays
 * the store's, or -1. */
int store_ask(struct store *store, struct tensor_message *message);

#endif
