/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of named tensors in Redis, and the commands that come by its lists.
 *
 * The store is the truth and Redis the index: what the store says is written, what another
 * agent has is read, and an empty, restarted or edited Redis is filled again from the store.
 * Each change is one script, so that two agents never own a name.
 *
 * One thread, the store's.  Nothing here waits: answers come from registry_turn().  The store
 * watches registry_fd() for EPOLLIN and calls registry_turn() when it is ready; deadlines and
 * renewals wake it too.  A call that Redis has not answered within REGISTRY_DEADLINE_MS ends
 * with REGISTRY_AWAY; what became of it in Redis is put right when Redis is back.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REGISTRY_H
#define VCUDA_GPU_AGENT_STORE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define REGISTRY_DEADLINE_MS 800 /* with the way to the program below a second */
#define REGISTRY_NAME 256	 /* bytes of NAMESPACE/NAME, without NUL */
#define REGISTRY_NAMESPACE 63	 /* as Kubernetes allows */
#define REGISTRY_HOLDER 128	 /* bytes of a holder's name, without NUL */
#define REGISTRY_DIMENSIONS 16
#define REGISTRY_TEXT 240
#define REGISTRY_HANDLE 64 /* cudaIpcMemHandle_t */
#define REGISTRY_SHARE 256 /* bytes of a list of namespaces, with its NUL */
#define REGISTRY_TICKET 33 /* of one in hexadecimal, with its NUL */
#define REGISTRY_NODE 63   /* bytes of an agent's ID: letters, digits, '.', '-', '_' */
#define REGISTRY_BYTES_MAX (1ull << 50)
#define REGISTRY_DEFAULT "default" /* the namespace of a plain name */

enum registry_state { REGISTRY_CREATED, REGISTRY_SEALED, REGISTRY_LOST };

/* What the hash `tensor:NAME` says. All zeros but for the first six is fine for a new one. */
struct registry_tensor {
	char name[REGISTRY_NAME + 1]; /* as registry_name() writes it */
	char dtype[16];
	uint32_t dimensions; /* 0: a single element */
	uint32_t device;     /* ordinal at its agent */
	uint64_t shape[REGISTRY_DIMENSIONS];
	uint64_t bytes;
	uint64_t offset; /* in the memory that is exported */
	char gpu_uuid[48];
	uint8_t ipc_handle[REGISTRY_HANDLE];
	int32_t owner_pid; /* on its node; 0: not a process of the node */
	enum registry_state state;
	uint64_t version;
	int64_t ctime, mtime;		  /* ns since 1970 */
	char replicas[REGISTRY_TEXT + 1]; /* node IDs, ' ' between */
	char error[REGISTRY_TEXT + 1];
	char share[REGISTRY_SHARE]; /* namespaces, each with a ',' behind it */
	bool replica;		    /* the store's: of what another agent has */
	/* Written by the registry; not looked at in what the store gives. */
	char node[REGISTRY_NODE + 1];
	uint64_t epoch;
	uint64_t refcount;
	/* Of registry_ticket: where NODE is. Of registry_redeem: for which namespace, at which
	 * agent. */
	char address[256];
	char for_space[REGISTRY_NAMESPACE + 1], by[REGISTRY_NODE + 1];
};

enum registry_status {
	REGISTRY_OK,	    /* done; tensor: as it is now, where there is one (its node: who is
			     * the first to have it) */
	REGISTRY_MADE,	    /* create: the name is this agent's */
	REGISTRY_HERE,	    /* create: this agent has it already, alike; the caller holds it */
	REGISTRY_ELSEWHERE, /* another agent has it: tensor->node, tensor->state */
	REGISTRY_UNLIKE,  /* create: it is there with another dtype or shape; tensor has them */
	REGISTRY_MISSING, /* nobody has it, or it is lost: tensor->error */
	REGISTRY_HELD,	  /* delete: others hold it */
	REGISTRY_BAD,	  /* the request cannot be: text names what */
	REGISTRY_AWAY,	  /* 802 CUDA_ERROR_SYSTEM_NOT_READY: Redis does not answer */
};

struct registry_result {
	enum registry_status status;
	const struct registry_tensor *tensor; /* NULL: none; until the callback returns */
	const char *text;		      /* "", or one sentence for people */
};

/* Called exactly once for each request, from registry_turn() or registry_close(), never from
 * the request itself. May make new requests, but not while the registry closes. */
typedef void (*registry_done)(void *argument, const struct registry_result *result);

enum registry_op { REGISTRY_CREATE, REGISTRY_GET, REGISTRY_DELETE };

/* A command of the lists, checked: the tensor's dtype, shape and bytes are those of a create;
 * of get and delete it has the name alone. */
struct registry_command {
	enum registry_op op;
	struct registry_tensor tensor;
	char holder[REGISTRY_HOLDER + 1]; /* who holds it then; "": nobody */
	uint64_t ticket;		  /* for registry_answer */
};

/* What the store does for the registry. OWNER is registry_open's. None may close it. */
struct registry_store {
	/* The first tensor with a name whose number is above *CURSOR (0: the first), in rising
	 * order of numbers that never change: fills in *tensor, *holders and *count, writes its
	 * number to *CURSOR. The holders' names stay the store's, until the next call. False
	 * where there is none. */
	bool (*next)(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
		const char *const **holders, size_t *count);
	/* A command to be done: what registry_create, _take and _delete say is part of it. The
	 * store answers once with registry_answer, now or later. */
	void (*command)(void *owner, const struct registry_command *command);
	/* A holder that a command made has ended (its process, its time). The store drops what
	 * it held, and deletes what it owned and nobody else holds. */
	void (*gone)(void *owner, const char *holder);
	/* NAME belongs to another agent now (this one's was thought lost, or Redis was empty),
	 * or what the replica here was of is gone (node ""): the store's tensor has no name any
	 * more. Its holders keep the memory. */
	void (*renamed)(void *owner, const char *name, const char *node);
	/* What was a replica is the first of its name now. HEIR: for those alone that hold it
	 * here, and goes with the last of them. */
	void (*first)(void *owner, const char *name, bool heir);
	/* COUNT tensors of an agent whose time has lapsed were marked as lost. */
	void (*lost)(void *owner, uint32_t count);
	/* Its GPU, for commands: how many devices there are. */
	uint32_t (*devices)(void *owner);
};

/* What the entry of an agent in a network's directory says beside these (docs/PEERS.md). */
struct registry_about {
	char network[64]; /* "": the entry is the store's, and says nothing of this */
	char driver[64], version[32];
	char free_bytes[22 * 16]; /* of each of its GPUs, ' ' between */
};

struct registry_config {
	char address[512];	  /* unix:///PATH or tcp://HOST:PORT */
	char user[128];		  /* of Redis' ACL; "": the default user */
	char password_file[1024]; /* its first line; "": none. Read at each connecting */
	char node[REGISTRY_NODE + 1];
	/* Where programs and other agents find this one; "": port `port` of the address that
	 * its connection to Redis has. */
	char at[256];
	unsigned port;
	uint64_t epoch;	 /* of this agent's memory: rises when all of it was lost */
	char gpus[1024]; /* UUIDs, ' ' between */
	uint64_t memory; /* bytes that the store may have */
	bool commands;	 /* takes commands from the lists */
	struct registry_about about;
};

struct registry;

/* Starts connecting; that Redis is not there is no error, a configuration that cannot be is.
 * CONFIG is copied. 0 or -errno with *error. */
int registry_open(struct registry **registry, const struct registry_config *config,
	const struct registry_store *store, void *owner, struct error *error);
/* Ends what is outstanding with REGISTRY_AWAY. NULL is fine. */
void registry_close(struct registry *registry);

int registry_fd(const struct registry *registry); /* the registry's; for EPOLLIN */
void registry_turn(struct registry *registry);
/* Whether a request would be sent now: Redis answers and has been filled. */
bool registry_ready(const struct registry *registry);

/* "", or why Redis does not serve now. */
const char *registry_why(const struct registry *registry);

/* The entry says ABOUT from now on: at once where Redis answers, else as soon as it does. */
void registry_say_about(struct registry *registry, const struct registry_about *about);

/* The entry goes at once, unless it is another's by now: an orderly end. Nothing else may be
 * asked after it but registry_left(), and registry_turn() to come to it. */
void registry_leave(struct registry *registry);
/* Whether there is nothing to wait for any more. */
bool registry_left(const struct registry *registry);

/* Create-or-get: gives TENSOR (copied) its name, held by HOLDER (""; nobody), unless somebody
 * has it: MADE, HERE, ELSEWHERE, UNLIKE, BAD, AWAY. The memory is there already; after all but
 * MADE it is the store's to free. */
void registry_create(struct registry *registry, const struct registry_tensor *tensor,
	const char *holder, registry_done done, void *argument);

/* HOLDER holds NAME, or the replica of it here: OK, ELSEWHERE (and it does not), MISSING, AWAY.
 * With HOLDER "" it is only looked up. */
void registry_take(struct registry *registry, const char *name, const char *holder,
	registry_done done, void *argument);

/* HOLDER holds NAME no longer; not to be said while a create or take of it is under way: the
 * answer would make it hold again what Redis has dropped (tests/models/registry.pml). Not
 * awaited: where it cannot be said, the next filling says it, from what the store knows. */
void registry_drop(struct registry *registry, const char *name, const char *holder);

/* What the store has changed of its tensor: state, version, mtime, replicas, error, handle.
 * Seal and touch are this, and to lose a tensor is this with state REGISTRY_LOST. The tensor's
 * name, dtype and shape do not change. OK, MISSING, AWAY. */
void registry_update(struct registry *registry, const struct registry_tensor *tensor,
	registry_done done, void *argument);

/* The name goes, with its holders: OK, MISSING, AWAY. With REFUSE it stays where others than
 * HOLDER hold it: HELD. */
void registry_delete(struct registry *registry, const char *name, const char *holder,
	bool refuse, registry_done done, void *argument);

/* There is a whole copy of TENSOR (copied) here, as it was when the ticket was got: OK, MISSING
 * (it is gone meanwhile, or another one), AWAY. */
void registry_replica(struct registry *registry, const struct registry_tensor *tensor,
	registry_done done, void *argument);

/* NAME is not here any more, a replica or the first: where it was the first another agent's
 * replica is from now on; without one it is lost, where WHY says so, or gone. WHY "": only
 * replicas that are held take its place. Not awaited, as registry_drop. */
void registry_yield(struct registry *registry, const char *name, const char *why);

/* TICKET, at random, is good for one copy of NAME for namespace SPACE: OK (tensor->address),
 * MISSING, AWAY. And what a ticket that was brought is for: OK (tensor->for_space, by),
 * MISSING, AWAY. */
void registry_ticket(struct registry *registry, const char *name,
	const char ticket[REGISTRY_TICKET], const char *space, registry_done done,
	void *argument);
void registry_redeem(struct registry *registry, const char ticket[REGISTRY_TICKET],
	registry_done done, void *argument);

/* The answer to a command; goes into its `reply` list. */
void registry_answer(
	struct registry *registry, uint64_t ticket, const struct registry_result *result);

/* NAME in NAMESPACE in the one way that it is written: a plain name where the namespace is
 * `default`, else NAMESPACE/NAME. A NAME with a '/' brings its own namespace: whether the
 * caller may use that is the caller's to check. 0, or -EINVAL with *error: empty, longer than
 * REGISTRY_NAME, control bytes, no UTF-8, a namespace that is none, or one of Redis' keys of
 * ours. */
int registry_name(char out[REGISTRY_NAME + 1], const char *namespace, const char *name,
	struct error *error);
/* The namespace of a name that registry_name wrote. */
void registry_namespace(char out[REGISTRY_NAMESPACE + 1], const char *name);

/* Bytes of an element: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool; 0: no dtype. */
unsigned registry_dtype(const char *dtype);
/* The bytes of a dtype and shape into *bytes; 0, or -EINVAL with *error naming what is wrong.
 */
int registry_bytes(const char *dtype, const uint64_t *shape, uint32_t dimensions,
	uint64_t *bytes, struct error *error);

#endif
