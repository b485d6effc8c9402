/* SPDX-License-Identifier: Apache-2.0
 *
 * What front and worker say to each other, over one SOCK_SEQPACKET pair made by the supervisor:
 * descriptor HANDOFF_FD in the worker.  One struct handoff a datagram.  The front treats a
 * worker's datagrams as hostile (the worker runs a tenant's code); the worker trusts the front.
 * The supervisor keeps a copy of the front's end, so that the next front has the same pair.
 */
#ifndef VCUDA_GPU_AGENT_HANDOFF_H
#define VCUDA_GPU_AGENT_HANDOFF_H

#include <stdint.h>

#include "common/latency.h"
#include "gpu-agent/quotas.h"

#define HANDOFF_FD 3
#define HANDOFF_VERSION 9u
#define HANDOFF_DEVICES 16

enum handoff_what {
	/* worker -> front */
	HANDOFF_READY =
		1, /* driver open, contexts made: fit for a session. devices[], text = driver */
	HANDOFF_FAILED =
		2, /* could not get ready: text says why (missing driver, no device …), status,
		      device = which one's fault it was, from 1; 0 = not one's */
	HANDOFF_LEASE = 3, /* asks: device, bytes = memory wanted beyond the lease */
	HANDOFF_STATS = 4, /* once a second while it has a session: counters */
	HANDOFF_ENDED = 5, /* the session is over; status and text say why, with the last STATS.
			      The worker exits next */
	HANDOFF_SHARE = 6, /* fd: memory of `bytes` bytes of GPU `device`, or a board of events
			      for it (ipc_board.h), to be had by others */
	HANDOFF_UNSHARE = 7, /* no longer: session = its name */
	HANDOFF_WANT = 8,    /* what has the name in `session`, for GPU `device` */
	HANDOFF_ALIVE = 9,   /* each second, instead of STATS, while the loop is in a call */
	HANDOFF_AGAIN = 10,  /* the answer to ADOPTED, with its number; what it asked and was
				not answered follows anew */
	/* Of a session whose GPU time is limited: devices[].gpu_ns = used so far; status: 1 =
	 * the GPU works for it now; bytes: 1 = it waits for more */
	HANDOFF_TIME = 11,
	HANDOFF_PARKED = 12, /* no connection is used any more; bytes = the last frame that was
				taken over; device = PARK's, 0: unasked */
	/* The image (module) of `bytes` bytes with that `digest`, if the cache has it. */
	HANDOFF_IMAGE_WANT = 13,
	HANDOFF_IMAGE_PUT = 14, /* fd: an image for the cache, in sealed memory; not answered */
	HANDOFF_REFUSALS = 15,	/* before READY; fd: where the kernel says which of its system
				   calls are to be refused (sandbox.h) */
	HANDOFF_TICKET = 40, /* a ticket for session `session`'s end of connection `device` */
	HANDOFF_DIAL = 41,   /* to session `session` of the agent at `text`, with `ticket` */
	/* Tell me when those sessions of my pod that are over by now hold no memory any more;
	 * device = bits, one a question that is open */
	HANDOFF_DRAIN = 44,
	HANDOFF_DOUBT = 46, /* a call ended with an error of the GPU itself: status */
	HANDOFF_SHORT = 47, /* memory of my lease is not on the GPU: who can, let go of some */
	/* front -> worker */
	/* fds: the link's connections; session, text = transport; device_count GPUs: gpus[]
	 * says which of READY's each is, devices[] has lease and others; bytes = limit of each,
	 * 0 = none. From here on both number them as the session does. */
	HANDOFF_SESSION = 16,
	HANDOFF_GRANT = 17,   /* answer to LEASE: device, bytes = the lease's new size */
	HANDOFF_STOP = 18,    /* end the session (status, text) and exit; the last word */
	HANDOFF_OTHERS = 19,  /* devices[].others changed */
	HANDOFF_STRIPE = 20,  /* fd: one more connection of the session
			       (protocol/wire/session.h), `device` its number */
	HANDOFF_PATH = 29,    /* fds: the client comes from another address as well */
	HANDOFF_SHARED = 21,  /* answer to SHARE: session = its name; status */
	HANDOFF_GIVEN = 22,   /* answer to WANT: fd, bytes; status */
	HANDOFF_ADOPTED = 23, /* another front: the one before it died; bytes = how many did */
	HANDOFF_MORE = 24,    /* devices[].gpu_ns: as far as the time it may use goes now */
	HANDOFF_PARK = 25,    /* the client has come back, and has other connections: PARKED is
				 awaited; device = which attempt */
	HANDOFF_RESUME = 26,  /* fds: the link's new connections; bytes = how many of the
				 worker's frames the client has counted */
	HANDOFF_TALLY = 27,   /* before a SESSION with quotas; fd: struct tally, device = the
				 session's slot in it */
	HANDOFF_IMAGE = 28,   /* answer to IMAGE_WANT: bytes, digest; fd: sealed memory, or
				 none: the cache does not have it */
	HANDOFF_COMING = 31,  /* a client has been told that it gets this worker, and connects
				 further: SESSION follows, most likely. device_count GPUs:
				 gpus[],  as in SESSION */
	/* fds: of the lane to agent-uploads (uploads.h) that stripe `device`, which comes next,
	 * has */
	HANDOFF_UPLOADS = 30,
	HANDOFF_TICKETED = 42, /* answer to TICKET: device, ticket; status and text */
	/* fd: another agent's session, connection `device`; text = transport, bytes 1: this end
	 * dialed it. Or none: status and text say why a DIAL came to nothing */
	HANDOFF_PEER = 43,
	HANDOFF_DRAINED = 45, /* answer to DRAIN: its device */
};

struct handoff_device {
	char name[64];
	uint8_t uuid[16];
	uint64_t total_memory;
	uint64_t free_memory;	 /* when the worker got ready, its own context not counted */
	uint64_t context_memory; /* what the worker's context took */
	uint64_t lease;		 /* SESSION: bytes this session may use from the start */
	uint64_t used;		 /* STATS */
	uint64_t others; /* SESSION, OTHERS: what the pod's other sessions have of its limit */
	uint64_t fell;	 /* READY: the CUresult with which it did not open; 0: it is of use */
	uint64_t gpu_ns; /* TIME, STATS, MORE; SESSION: what it may use at first, 0 = its time
			    is counted only */
};

struct handoff {
	uint32_t version;
	uint32_t what;
	uint32_t status; /* CUresult */
	uint32_t device_count;
	uint32_t device; /* LEASE, GRANT; STRIPE: which stripe */
	uint32_t driver_version;
	uint64_t bytes;
	uint8_t session[16];
	uint8_t digest[32];	       /* IMAGE…: SHA-256 */
	uint8_t gpus[HANDOFF_DEVICES]; /* SESSION, COMING */
	uint64_t frames_received;      /* STATS from here on */
	uint64_t frames_sent;
	uint64_t bytes_received;
	uint64_t bytes_sent;
	uint64_t launches;
	uint64_t copies_in_bytes;
	uint64_t copies_out_bytes;
	uint64_t saved_received; /* bytes that did not travel since payloads were coded */
	uint64_t saved_sent;
	uint64_t errors; /* refused frames and sticky errors */
	struct latency latency[LATENCY_CLASSES];
	char last_error[64]; /* of the driver's, and in which call; "": none yet */
	char text[192];
	char pod[128];	    /* SESSION: for the worker's log */
	char release[32];   /* READY: the driver's own version, "580.95.05"; "" = not known */
	uint32_t libraries; /* STATS: which were used (library_search.h) */
	uint32_t sandbox;   /* READY: what keeps the worker in (sandbox.h) */
	uint32_t grace_ms;  /* SESSION: how long it outlives its connections; 0: not at all */
	uint32_t shares;    /* SESSION: 1: it brings memory, no frames (transport/local.h) */
	uint32_t coded;	    /* SESSION: 1: payloads on stripes may be */
	/* STATS: connections to other agents' sessions that are open, bytes of copies by them
	 */
	uint32_t peers;
	uint64_t peer_sent;
	uint64_t peer_received;
	/* SESSION: of its tenant's together, but for bytes in flight, which are its own part;
	 * STATS: in use */
	uint64_t quotas[QUOTAS];
	uint64_t quotas_refused[QUOTAS]; /* STATS: how often there was no more of it */
	uint8_t ticket[16];		 /* TICKETED, DIAL */
	struct handoff_device devices[HANDOFF_DEVICES];
};

#endif
