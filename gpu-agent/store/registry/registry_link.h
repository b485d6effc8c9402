/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to Redis on the registry's epoll set: connecting and logging in without waiting,
 * commands with a callback each, bounds on what is read.
 *
 * libhiredis' asynchronous interface does the protocol.  What it would take from a Redis that
 * is none (arrays of any length, answers that nobody asked for: it ends the process) is refused
 * by functions of ours that make its replies.  One thread.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REGISTRY_LINK_H
#define VCUDA_GPU_AGENT_STORE_REGISTRY_LINK_H

#include <hiredis/async.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/store/registry/registry.h"

#define LINK_ARGUMENTS 192
#define LINK_ELEMENTS 65536	     /* of an array in an answer */
#define LINK_ANSWER_BYTES (8u << 20) /* of an answer that is not whole yet */

/* What the registry's epoll set has: the first member of who is watched. */
struct registry_watch {
	void (*ready)(struct registry_watch *watch, uint32_t mask);
};

/* The arguments of a command. Texts stay the caller's; numbers are kept here. */
struct link_arguments {
	unsigned count;
	size_t used;
	const char *at[LINK_ARGUMENTS];
	size_t length[LINK_ARGUMENTS];
	char numbers[1024];
};
void link_argument_text(struct link_arguments *arguments, const char *text);
void link_argument_bytes(struct link_arguments *arguments, const void *bytes, size_t n);
void link_argument_number(struct link_arguments *arguments, int64_t number);
void link_argument_unsigned(struct link_arguments *arguments, uint64_t number);

/* REPLY: NULL where the connection ended before it came. */
typedef void (*link_reply)(void *argument, const redisReply *reply);

struct registry_link {
	struct registry_watch watch;
	int epoll;     /* the registry's */
	uint32_t mask; /* EPOLLIN, EPOLLOUT as libhiredis wants them */
	const struct registry_config *config;
	redisAsyncContext *redis; /* NULL: not connected */
	int fd;
	bool ready;	   /* logged in */
	bool turning;	   /* inside of libhiredis */
	bool ending;	   /* to be closed when it is out of there */
	uint64_t deadline; /* ns: while it is not ready */
	void *owner;
	void (*opened)(struct registry_link *link); /* ready from now on */
	/* It is gone, WHY as one sentence: after the callbacks of all that was outstanding. */
	void (*closed)(struct registry_link *link, const char *why);
	struct error why;
};

void registry_link_init(struct registry_link *link, int epoll,
	const struct registry_config *config, void *owner,
	void (*opened)(struct registry_link *link),
	void (*closed)(struct registry_link *link, const char *why));

/* Begins to connect to config->address, where NUMERIC (NULL: the address' own) is the host's
 * address; opened or closed is called later, and never from here. -errno with *error where it
 * failed at once. */
int registry_link_open(struct registry_link *link, const char *numeric, struct error *error);

/* Ends it, and closed is called: at once, or when libhiredis is left. Nothing where it is not
 * open. */
void registry_link_close(struct registry_link *link, const char *why);

/* Sends a command; -errno: it could not be kept, or the link is not open. */
int registry_link_send(struct registry_link *link, const struct link_arguments *arguments,
	link_reply reply, void *argument);

/* Whether ADDRESS is unix:///PATH or tcp://HOST:PORT; the parts go to PATH or HOST (256) and
 * *PORT (0: a path). 0 or -EINVAL with *error. */
int registry_link_address(const char *address, char host[256], int *port, struct error *error);

/* Functions that make replies: for a reader of its own, in tests. Its privdata is a struct
 * registry_link, or NULL: answers are asked for. */
extern redisReplyObjectFunctions registry_link_functions;

#endif
