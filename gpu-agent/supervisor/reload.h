/* SPDX-License-Identifier: Apache-2.0
 *
 * Another binary and another configuration under the same process, with the sessions that run:
 * the supervisor execs itself, by the path that it was started by, with its own arguments.  Its
 * children stay its children and its descriptors stay open; which is which goes along in a
 * memfd.  Before that, a process of the new binary says whether it would take them.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_RELOAD_H
#define VCUDA_GPU_AGENT_SUPERVISOR_RELOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/control.h"

/* What this process is, and what it was told by the one before it. */
struct reload {
	char binary[AGENT_PATH];
	struct stat is;	  /* the binary when this process began */
	char **argv;	  /* a copy, without what follows */
	uint64_t layout;  /* of all that old and new processes say to each other */
	int check, taken; /* a memfd, or -1: to be asked of; to be taken over */
	bool terminal;	  /* it was started from one */
};

/* Exit status of a process that was asked: it would change nothing. */
#define RELOAD_SAME 3

/* Takes "--reload check FD" or "--reload take FD" from the front of ARGV. 0, or -errno with
 * *error. */
int reload_begin(
	struct reload *reload, int *argc, char **argv, uint64_t layout, struct error *error);

/* In the process that is asked: 0, RELOAD_SAME, or -errno with *error saying what only a
 * restart changes. */
int reload_ask(
	const struct reload *reload, const struct agent_config *config, struct error *error);

/* One of the supervisor's workers, or one of the descriptors that it keeps for the front. */
struct reload_entry {
	pid_t pid;
	int fd;
	uint64_t kill_at;
	uint32_t user, reserved; /* a worker's */
	char text[64];		 /* the tenant; the name of what is kept */
};
struct reload_state {
	struct agent_config config;
	int http;
	int compiled_lock;
	uint32_t children, kept; /* of the entries, in this order */
};

/* A memfd with that, for the two below. The descriptor, or -errno with *error. */
int reload_write(const struct reload *reload, const struct reload_state *state,
	const struct reload_entry *entries, struct error *error);

/* Starts a process that is asked. The pid, or -errno with *error. */
pid_t reload_check(const struct reload *reload, int state, struct error *error);

/* Becomes the new binary. Returns only where that fails: -errno with *error, and every
 * descriptor is as it was. */
int reload_exec(const struct reload *reload, int memory, const struct reload_state *state,
	const struct reload_entry *entries, struct error *error);

/* In the process that takes over: *entries is malloc'ed. Its configuration is CONFIG, but for
 * what stays of the old one. 0, or -errno with *error. */
int reload_take(const struct reload *reload, struct agent_config *config,
	struct reload_state *state, struct reload_entry **entries, struct error *error);

#endif
