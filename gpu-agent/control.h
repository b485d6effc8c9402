/* SPDX-License-Identifier: Apache-2.0
 *
 * What front and supervisor say to each other, over one SOCK_SEQPACKET pair: one struct control
 * a datagram.  Both are ours; still, every number is looked up before it is used.
 */
#ifndef VCUDA_GPU_AGENT_CONTROL_H
#define VCUDA_GPU_AGENT_CONTROL_H

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"

enum control_what {
	/* front -> supervisor */
	CONTROL_START = 1, /* a worker, please; `number` comes back. `libraries`: which it makes
			      ready (library_search.h) */
	CONTROL_KILL = 2,  /* SIGKILL `pid` if it still lives after `ms` */
	CONTROL_TENANT = 4,  /* `pid` begins a session of the tenant `text` */
	CONTROL_STATE = 3,   /* ready (status 0) or not (text): for the ready file */
	CONTROL_KEEP = 5,    /* fd, under a name (in the text's place) and `pid`: for the next
				front,   should this one die. 0 as `pid`: it goes with no worker */
	CONTROL_DROP = 6,    /* what was kept under name and `pid` */
	CONTROL_NETWORK = 7, /* fd: struct network_report (network.h); and on, to the process
				that has the network's directory */
	/* supervisor -> front */
	CONTROL_STARTED = 16, /* `number`, `pid`; fd: the front's end of the handoff pair */
	CONTROL_REFUSED = 17, /* `number`, text: no worker could be started */
	CONTROL_EXITED = 18,  /* `pid`, `status` as waitpid gave it */
	CONTROL_DRAIN = 19,   /* end within `ms` */
	CONTROL_TOKENS = 21,  /* fd: the configuration anew, for its tokens and networks */
	/* What a front that died left, to the next one before anything else: */
	CONTROL_KEPT = 23,  /* `pid`, name, fd: as KEEP had it; those with 0 as `pid` first */
	CONTROL_ADOPT = 24, /* `pid`, fd as with STARTED: a worker that has a session */
	CONTROL_BEGIN = 25, /* that was all, or there was nothing */
	/* fd: to the store, or to the front (tensor.h). What the store keeps goes as KEEP and
	 * DROP, what another one left comes as KEPT, then BEGIN. Without an fd, from the store:
	 * it lost its front, which may live. */
	CONTROL_STORE = 26,
	/* a directory's process -> supervisor */
	CONTROL_DIRECTORY = 27, /* `status` 0: the entry is there; 1: it is not (text: why) */
	CONTROL_UPLOADS = 28,	/* to the front; fd: to agent-uploads (uploads.h) */
	/* probe -> supervisor -> front */
	CONTROL_LIBRARY = 20, /* enum agent_library `number`, major `pid`: status 0, it is there
				 (text: version and path), or -1 (text: why not) */
	CONTROL_GPU = 22,     /* in the text's place: struct control_gpu */
};

/* What the meter saw of a GPU; negative: not known. */
struct control_gpu {
	char uuid[48];	     /* as NVML writes it: GPU-… */
	int32_t busy;	     /* percent of the time in which a kernel ran */
	int32_t memory_busy; /* in which its memory was read or written */
	int64_t memory_used; /* bytes, by whomever */
	int32_t milliwatts;
	int32_t celsius;
	uint32_t xid; /* the last critical one since it was asked; 0: none */
};

struct control {
	uint32_t what;
	uint32_t number;
	int32_t pid;
	int32_t status;
	uint32_t ms;
	uint32_t libraries;
	char text[240];
};

/* What the peer says next: 1, and *fd is the caller's, or -1; 0: nothing now; -EPIPE: it is
 * gone; -EPROTO: that was no control; -errno. */
static inline int control_hear(int socket, struct control *c, int *fd)
{
	ssize_t n = descriptors_receive(socket, c, sizeof(*c), fd, 1, MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(*c))
		return 1;
	if (n == -EAGAIN)
		return 0;
	if (n < 0)
		return (int)n;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return n ? -EPROTO : -EPIPE;
}

#define CONTROL_NAME 16 /* bytes of a name, at the beginning of the text */

/* A worker that was told to stop is given this long. */
#define CONTROL_STOP_MS 2000

/* How many CONTROL_LIBRARY there can be. */
#define CONTROL_LIBRARIES 24

#endif
