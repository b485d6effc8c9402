/* SPDX-License-Identifier: Apache-2.0
 *
 * What the supervisor knows, for the files of this room.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_SUPERVISOR_H
#define VCUDA_GPU_AGENT_SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/kept.h"
#include "gpu-agent/supervisor/network_table.h"
#include "gpu-agent/supervisor/reload.h"

struct child {
	pid_t pid;
	uint64_t kill_at; /* UINT64_MAX: not to be killed */
	int handoff;	  /* a copy of the front's end of its pair, for the next front */
	uint32_t user;	  /* of its own; 0: the agent's */
	char tenant[sizeof(((struct agent_tenant *)0)->name)]; /* of its session; "" = none */
};

struct supervisor {
	struct agent_config *config;
	int http; /* the control port */
	int signals;
	int control; /* -1: no front */
	int probe;   /* -1: none, or done */
	pid_t probe_pid;
	struct control libraries[CONTROL_LIBRARIES]; /* what it found, for each front anew */
	size_t library_count;
	pid_t front;
	uint64_t front_started;
	uint64_t front_delay;	/* before the next start */
	unsigned front_young;	/* those that died young, one after the other */
	uint64_t start_at;	/* when to start a front; UINT64_MAX: there is one */
	struct child *children; /* workers; pid 0 = free */
	size_t room;
	uint32_t users_next; /* counts on (users.h) */
	struct kept_table kept;
	struct stat tokens, http_tokens; /* the token files when they were read */
	uint64_t tokens_at;		 /* when to look at them; UINT64_MAX: there is none */
	bool draining;
	uint64_t end_at; /* when draining: kill everything */
	int status;	 /* exit status; -1: go on */
	int store;	 /* store_process.h; -1: none */
	pid_t store_pid; /* 0: none */
	uint64_t store_started, store_delay;
	uint64_t store_at; /* when to start it; UINT64_MAX: there is one, or shall be none */
	uint64_t store_join_at; /* it lost its front; UINT64_MAX: it did not */
	struct network_table networks;
	struct {
		int end;   /* the front's end of its pair; -1: none */
		pid_t pid; /* 0: none */
		uint64_t started, delay;
		uint64_t start_at; /* UINT64_MAX: there is one, or shall be none */
	} uploads;		   /* uploads_process.h */
	const struct reload *self;
	pid_t asked;	      /* who says whether a reload can be; 0: nobody */
	uint64_t asked_until; /* when it is killed */
	bool reloading;	      /* as soon as the front is gone */
};

/* Tells the front, where there is one.  A front that does not read is as good as dead: its end
 * comes as SIGCHLD. */
void supervisor_tell(struct supervisor *s, const struct control *c, int fd);
/* The front gets tokens and networks anew. */
void supervisor_tell_config(struct supervisor *s);
/* Whether a file is what it was. */
static inline bool supervisor_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}
/* Ends within drain_ms; called twice: at once. */
void supervisor_drain(struct supervisor *s);

#endif
