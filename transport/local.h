/* SPDX-License-Identifier: Apache-2.0
 *
 * local://PATH: program and worker on one machine share memory, and no frame goes over a
 * socket. What is left for the connection between sidecar and worker are these messages: memory
 * by its descriptors, signs of life, and the end (docs/TRANSPORTS.md).
 *
 * Each message has one size, and goes into a Unix stream socket whole or not at all.
 */
#ifndef VCUDA_TRANSPORT_LOCAL_H
#define VCUDA_TRANSPORT_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "transport/segments.h"
#include "transport/transport.h"

#define LOCAL_MAGIC 0x6c61636fu /* "ocal" */
#define LOCAL_FDS 2

enum local_what {
	/* sidecar -> worker */
	LOCAL_ATTACH = 1, /* first, also where a session is resumed; fds: segment 0 of `size`
			   * bytes, and the doorbell; ring, arena and bounce: their sizes.
			   * Answered with ATTACHED, or END */
	LOCAL_PIN = 2,	  /* fd: segment number `segment`, `size` bytes. No answer: frames that
			   * name it come behind it */
	LOCAL_UNPIN = 3,  /* `segment` is no number any more; UNPINNED once nothing uses it */
	LOCAL_GONE = 4,	  /* the program is: what it published is served, then all is over */
	LOCAL_PING = 5,	  /* answered with PONG */
	LOCAL_HELD = 6, /* behind an ATTACH that resumes, and a PIN for each segment that there
			 * is: any other is no more. No answer */
	/* worker -> sidecar */
	LOCAL_ATTACHED = 16, /* size: the most bytes of a payload in memory with a number, 0
			      * from a worker that takes FRAME_PAYLOAD_MAX there too */
	LOCAL_UNPINNED = 17,
	LOCAL_PONG = 18, /* `counts` so far; also unasked, in a long call */
	LOCAL_END = 19,	 /* the session is over: status (0: as the program wanted it), text */
};

/* Of frames and bytes, as the program's side sees them. */
enum local_count {
	LOCAL_SENT,
	LOCAL_SENT_BYTES,
	LOCAL_RECEIVED,
	LOCAL_RECEIVED_BYTES,
	LOCAL_COUNTS
};

struct local_message {
	uint32_t magic;
	uint32_t what; /* enum local_what */
	uint32_t segment;
	uint32_t status;
	uint32_t sealed;   /* ATTACH, PIN: the file has the seals that a `pod` file has */
	uint32_t captured; /* ATTACH: 1: CHANNEL_FEATURE_CAPTURED */
	uint64_t size;
	uint64_t ring, arena, bounce;
	/* PIN, UNPIN and HELD: the first is which of them this is, from 1 on. Once it is said
	 * the page's `named` says so, and then the program hears the number; 0: a sidecar that
	 * does not count them. */
	uint64_t counts[LOCAL_COUNTS];
	char text[168]; /* one line, NUL-terminated */
};
_Static_assert(sizeof(struct local_message) == 256, "the same for all releases");

/* What has come of the next message. */
struct local_hearing {
	size_t got;
	int fds[LOCAL_FDS];
	struct local_message message;
};

void local_hearing_init(struct local_hearing *hearing);
/* Closes descriptors that nobody took. */
void local_hearing_fini(struct local_hearing *hearing);

/* 0; -EAGAIN where there is no room now; -errno. Any thread: a message is never torn. */
int local_say(
	struct link *link, const struct local_message *message, const int *fds, unsigned count);
/* The same, waiting for room until DEADLINE, CLOCK_MONOTONIC ns. -ETIMEDOUT. */
int local_say_until(struct link *link, const struct local_message *message, const int *fds,
	unsigned count, uint64_t deadline);

/* 1: *message is whole, its text is one printable line, and fds[i] are the caller's or -1; 0:
 * nothing now; -ECONNRESET: the peer closed; -EPROTO: it says something else; -errno. */
int local_hear(struct link *link, struct local_hearing *hearing, struct local_message *message,
	int fds[LOCAL_FDS]);

/* local:// without a path: the agent's socket has a name of its own, of 128 random bits, in the
 * folder of POSIX shared memory, which containers with hostIPC have in common. */
#define LOCAL_SHARED "/dev/shm/vcuda-agent-"
#define LOCAL_SHARED_HEX 32
#define LOCAL_SHARED_SIZE (sizeof(LOCAL_SHARED) + LOCAL_SHARED_HEX)
#define LOCAL_SHARED_MOST 16 /* that are looked at */

/* The sockets of that kind that are root's or this user's: their paths, and how many. */
unsigned local_shared(char paths[LOCAL_SHARED_MOST][LOCAL_SHARED_SIZE]);
/* Whether PATH is one by its name. */
bool local_is_shared(const char *path);

/* Whether FD is a file of memory that has SIZE bytes, whole pages, and, where SEALED, can get
 * no shorter. 0, or -EPERM with *error. */
int local_memory(int fd, uint64_t size, bool sealed, struct error *error);

#endif
