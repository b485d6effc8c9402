/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker may not do.  A tenant's calls and kernels run in it, so it is treated as if the
 * tenant's code ran in it: it has no capabilities, no other process's memory, descriptors or
 * signals, no files but those that a driver and its libraries read, no programs to start and no
 * connections to make.
 *
 * Workers share a user, unless each has its own (`worker_users`).  One that is between its exec
 * and sandbox_enter() needs no protection of its own: every process that runs a tenant's code
 * went through both functions before.
 *
 * docs/SECURITY.md says what holds what, and what a kernel that lacks a part leaves open.
 */
#ifndef VCUDA_GPU_AGENT_SANDBOX_SANDBOX_H
#define VCUDA_GPU_AGENT_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/agent.h"

/* A sanitizer's runtime reads its own process, starts a symbolizer, and at the end a process
 * that traces this one: builds with one leave out what forbids that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_SANITIZER 1
#endif
#endif
#ifndef SANDBOX_SANITIZER
#define SANDBOX_SANITIZER 0
#endif

/* The parts that hold, as bits of struct handoff's `sandbox`. */
enum sandbox_part {
	SANDBOX_HIDDEN = 1,	  /* not dumpable: not to be read or traced by its user */
	SANDBOX_CAPABILITIES = 2, /* none, and none to be had */
	SANDBOX_FILES = 4,	  /* Landlock */
	SANDBOX_CALLS = 8,	  /* seccomp */
	SANDBOX_ALL = 15,
	/* No parts: */
	SANDBOX_CONNECTS = 16, /* connections, and memory in common, are allowed */
	SANDBOX_COUNTED = 32,  /* the front refuses calls, and counts them */
	SANDBOX_USER = 64,     /* a user of its own */
};

static inline bool sandbox_whole(uint32_t parts)
{
	return (parts & SANDBOX_ALL) == SANDBOX_ALL;
}

/* For logs, pages and metrics: "landlock" of SANDBOX_FILES; "landlock, seccomp", and what this
 * kernel or build lacks. The latter returns out. */
#define SANDBOX_TEXT 128
const char *sandbox_part_name(uint32_t part);
const char *sandbox_text(char out[SANDBOX_TEXT], uint32_t parts);

/* Of files and calls, which of them hold: "landlock+seccomp", "landlock", "seccomp", "none";
 * with ", connections allowed" where NCCL is (`nccl.allowed`). */
const char *sandbox_mode(uint32_t parts);

/* Any process of the agent: others of its user cannot read or trace it. */
void sandbox_hide(void);

/* The worker, before it has a second thread and before it reads anything foreign. A part that
 * the kernel lacks is left out, and sandbox_seal says so. 0; -errno with *error: a rule could
 * not be made that should be there, and the worker must end. *listener: what the front is to
 * have (front/session/refusals.h) before this process does anything else, and is to be closed
 * here; or -1. */
int sandbox_enter(const struct agent_config *config, int *listener, struct error *error);

/* Whether agent-store may see which processes of the node there are: it takes commands that
 * name them. */
bool sandbox_store_watches(const struct agent_config *config);
/* agent-store, before it opens the driver: the same for a process in which no tenant's code
 * runs, but which reads what workers and a registry say. It may also reach its registry
 * (`store.registry`), whose commands name processes that it watches, and becomes `store.user`
 * where there is one. 0; -errno with *error. */
int sandbox_enter_store(const struct agent_config *config, struct error *error);

/* agent-uploads: the same, and it opens no file at all. */
int sandbox_enter_uploads(const struct agent_config *config, struct error *error);

/* The worker, when the driver is open and before it has a session; the store likewise. The
 * parts that hold. */
uint32_t sandbox_seal(void);

/* The supervisor: makes the device files that NVIDIA's driver would have made in a worker that
 * may. */
void sandbox_device_files(const struct agent_config *config);

/* sandbox_files.c: 0, or -errno where this kernel cannot; with *error set, for sandbox_enter.
 */
int sandbox_files(const struct agent_config *config, struct error *error);
int sandbox_files_store(const struct agent_config *config, struct error *error);
int sandbox_files_none(struct error *error);

/* sandbox_user.c: 0, or -errno with *error. KEY of the configuration wants it. */
int sandbox_user(const char *key, uint32_t user, struct error *error);

/* sandbox_calls.c: likewise. The first before there are other threads; the second for all, and
 * only where the first gave no listener: where LISTENER is NULL, nobody is asked. WATCHES:
 * other processes' ends, by pidfd_open. */
int sandbox_calls_start(bool connects, bool watches, int *listener);
int sandbox_calls_warm(bool connects);

/* The front: whether a call is refused only once the worker is ready; its place among those
 * that are refused (0: none of them), and the name at a place, NULL behind the last. */
#define SANDBOX_CALLS_MOST 128
bool sandbox_call_warms(uint32_t arch, int call);
unsigned sandbox_call(uint32_t arch, int call);
const char *sandbox_call_name(unsigned index);

#endif
