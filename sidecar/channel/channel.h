/* SPDX-License-Identifier: Apache-2.0
 *
 * One app process, one thread: it answers the Unix socket, carries frames between ring and
 * link, and ends when the process does.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_CHANNEL_H
#define VCUDA_SIDECAR_CHANNEL_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/log.h"
#include "sidecar/channel/local.h"
#include "sidecar/channel/outbound.h"
#include "sidecar/channel/renew.h"
#include "sidecar/channel/replies.h"
#include "sidecar/channel/resume.h"
#include "transport/ring.h"
#include "sidecar/memory/segment.h"
#include "sidecar/server/server.h"

struct channel {
	struct channel *next; /* server->channels, under its lock */
	struct server *server;
	int socket;
	int doorbell;
	struct ucred peer;
	struct channel_request request; /* the first … */
	int segment;			/* … and what came with it; -1: nothing */
	unsigned part;			/* which of the server's agents it is for */
	char program[64];
	/* Below: the channel's thread only. */
	struct segments segments;
	struct channel_page *page;
	struct ring ring;
	struct link *link; /* NULL: not open yet, or lost */
	struct replies replies;
	struct outbound out;
	struct stripes stripes;
	struct local local;
	struct stripes_counts pieces; /* of all stripes that it had */
	struct resume resume;
	struct channel_counts {
		uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	} before;		    /* by other sidecars, as the program's page says */
	uint64_t told, told_landed; /* what the agent knows of replies' numbered and landed */
	bool adopting;		    /* the ring is as another sidecar left it */
	bool heirs;		    /* another sidecar could take over from us */
	bool gone;		    /* the app closed its socket */
	bool parted;		    /* the session ended in order */
	bool stopping;
	bool left;     /* stopped, and the session is left to the next sidecar */
	bool finished; /* nothing more to do */
	uint64_t gone_at;
	bool killed;	    /* the program said no BYE: it is said in its place */
	uint64_t broken_at; /* the sending half failed: a LOST may still come */
	uint64_t heard_at;  /* the agent sent something */
	uint64_t said_at;   /* something was sent to it */
	uint64_t pinged_at; /* 0: no PING is out */
	uint64_t control_at;
	uint64_t work_at;
	struct renewal renewal; /* once `state` is CHANNEL_OPEN under the server's lock */
	/* For `status`: written by the channel's thread. */
	struct timing timing;
	struct log_subject subject; /* set before `state` becomes CHANNEL_OPEN */
	uint64_t opened_at;
	const char *_Atomic transport; /* its name; stays */
	_Atomic uint32_t state;	       /* enum channel_state */
	/* Bytes: on the wire. `pieces` says what coding saved of them. */
	_Atomic uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	_Atomic uint64_t in_flight, waiting, pinned, pinned_bytes;
};

/* What stripes of this channel are made with. */
struct stripes_setting channel_stripes(struct channel *channel);

/* Starts the thread for a process that wants to attach, or to go on; owns SOCKET and SEGMENT
 * from then on. 0 or -errno. */
int channel_start(struct server *server, int socket, const struct ucred *peer,
	const struct channel_request *request, int segment);

/* Everything of the program's is there: other threads find the channel from now on. Before the
 * program is answered, since its other channels may name this one from then on (relay.c). */
void channel_open(struct channel *channel);

/* The session is over: tells the app, wakes everybody, closes the link. Once. */
void channel_lose(struct channel *channel, uint32_t status, const char *text);

/* The connection broke: it is resumed, or the session is lost. */
void channel_broke(struct channel *channel, uint64_t now, const char *text);

/* A sign of life for the agent, if it is time for one: also for who keeps the channel's thread
 * for long. */
void channel_say(struct channel *channel, uint64_t now);

/* attach.c: what comes over the Unix socket. attach_attach: 0 = attached; -errno. attach_serve:
 * takes what is there; sets `gone`. */
int attach_attach(struct channel *channel, const struct channel_request *request);
void attach_serve(struct channel *channel);

/* What the agent is told of the program: a HELLO without a role. With the token. */
struct session_hello attach_hello(const struct channel *channel);
/* The first segment is there, laid out as LAYOUT says: 0, or -errno with *error. */
int attach_parts(
	struct channel *channel, const struct channel_page *layout, struct error *error);

/* adopt.c: what another sidecar began. adopt_adopt: 0 = the session is looked for (the link
 * comes by resumption); -errno. adopt_resumed: the agent has taken over everything up to TAKEN.
 * 0, or -EPROTO with *error. */
int adopt_adopt(struct channel *channel, const struct channel_request *request);
int adopt_resumed(struct channel *channel, uint64_t taken, struct error *error);

#endif
