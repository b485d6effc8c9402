/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session begins on the wire.  `native`: two TCP connections.  The sidecar dials the
 * agent's receive port and says HELLO for the commands; WELCOME names the session, its secret
 * and the port for the replies, where a second HELLO with both joins the second connection
 * (version and token again) and is answered with a second WELCOME.  Then both carry frames
 * (frame.h): commands one way, replies the other.
 *
 * Stripes.  One TCP connection is one core's worth of copying at each end. Where both know
 * SESSION_FEATURE_STRIPES, the sidecar may join up to SESSION_STRIPES more connections to a
 * running session, on the receive port, with session and secret; WELCOME says which number each
 * one is. A stripe carries payloads only, each behind a struct session_piece, in the order of
 * the frames that name it (FRAME_STRIPE_MASK in frame.h).
 *
 * Where both know SESSION_FEATURE_STRIPES_BACK too, a stripe also carries payloads of the
 * worker's frames.  It begins with an empty piece of the sidecar's, which the worker answers
 * with one; only then either sends payloads.  Without it there are SESSION_STRIPES_ONE_WAY
 * stripes at most, and nothing but WELCOME comes back.
 *
 * Where both know SESSION_FEATURE_ZSTD, too, a payload on a stripe may be coded: the piece says
 * how many bytes it has, and how many stand for them (transport/codec/codec.h).  Each is coded
 * for itself, so what is sent again may be coded otherwise.
 *
 * Where both know SESSION_FEATURE_NAMES, the worker's empty piece on a stripe may bring a
 * struct session_names: payloads of that stripe can be told by their content then.  The sidecar
 * asks (SESSION_PIECE_ASK), as far ahead as it likes, which of some names the agent has bytes
 * for, and is answered by as many bits.  For what the agent has it sends the name (_NAMED), and
 * for the rest the bytes, which the agent is to keep where it can (_KEEP).  Who was told that
 * bytes are there may name them on that stripe until it ends.
 *
 * A token that is longer than HELLO's field, a signed one, comes behind it: the HELLO has
 * SESSION_VERSION_CREDENTIAL for a version then, which an older agent refuses in words, and a
 * struct session_credential follows it on each connection.
 *
 * What proves who the client is may end while the session runs: a signed token, a certificate.
 * The client brings the next one on a connection of its own, as SESSION_RENEW with session and
 * secret; a session whose client does not is ended some time after.
 *
 * Resume.  Where both know SESSION_FEATURE_RESUME, a session outlives its connections by the
 * grace that WELCOME names.  SESSION_RESUME takes the place of COMMANDS then: HELLO has
 * session, secret and how many of the worker's frames were counted, WELCOME a new secret and
 * the number of the last frame that the worker took over; the reply connection joins as ever,
 * and is what ends the old secret.  SESSION_END says that nobody will come back.  A session
 * that ended meanwhile is refused with `ended`: what its program is to be told; without a grace
 * END is how that is asked.
 *
 * Between agents.  SESSION_PEER joins a running session to one of another agent's: the dialing
 * end is that agent's front. It has no token; the secret is a ticket that the session's client
 * got for this pair of sessions, good once and for SESSION_TICKET_MS (direct.h).
 *
 * SESSION_COPY fetches a named tensor for another agent: the secret is a ticket of the index
 * that both have (docs/TENSORS.md), good once, and what follows the WELCOME is
 * protocol/wire/tensor_copy.h.
 *
 * A HELLO that is refused gets a WELCOME with status and text, then the connection is closed.
 * The agent decides within SESSION_HELLO_MS, spends one fixed slot on it and starts nothing.
 */
#ifndef VCUDA_PROTOCOL_WIRE_SESSION_H
#define VCUDA_PROTOCOL_WIRE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#define SESSION_MAGIC 0x4144554356ull /* "VCUDA" */
#define SESSION_VERSION 4u
#define SESSION_VERSION_CREDENTIAL 5u /* of a HELLO only: as 4, with a credential behind it */
#define SESSION_CREDENTIAL_MAX 4096   /* bytes of one */
#define SESSION_HELLO_MS 5000

/* The ports, which the legacy command line had, too: the server's send port is the client's
 * receive port. */
#define SESSION_PORT_SEND 9997	  /* agent -> client: replies */
#define SESSION_PORT_RECV 9998	  /* client -> agent: commands; the HOST:PORT people name */
#define SESSION_PORT_CONTROL 9999 /* HTTP */

#define SESSION_FEATURE_ZSTD (1ull << 0)    /* payloads on stripes may be coded */
#define SESSION_FEATURE_RESUME (1ull << 1)  /* resume after a cut */
#define SESSION_FEATURE_STRIPES (1ull << 2) /* payloads over connections of their own */

#define SESSION_FEATURE_STRIPES_BACK (1ull << 3) /* and both ways */

/* COMMANDS, of the client only: a class of work below the one that its tenant has; an agent
 * that does not know them takes no notice. */
#define SESSION_FEATURE_LOW (1ull << 8)
#define SESSION_FEATURE_NORMAL (1ull << 9)

/* Program and worker share memory (docs/TRANSPORTS.md, "local"): no frame goes over the
 * connection, but the messages of transport/local.h. Without it there are frames as ever. */
#define SESSION_FEATURE_LOCAL (1ull << 10)

/* COMMANDS: the client may join the session to those of other agents (SESSION_PEER). */
#define SESSION_FEATURE_PEER (1ull << 11)

/* COMMANDS: what the link carries goes by UDP, where that gets through (docs/TRANSPORTS.md,
 * "light"): one more HELLO, of the role SESSION_LIGHT, completes the session. */
#define SESSION_FEATURE_LIGHT (1ull << 12)

/* Payloads on stripes may be told by their content: bytes that the agent has do not travel. */
#define SESSION_FEATURE_NAMES (1ull << 13)

/* COMMANDS: only where no more sessions run than an answer to PROBE said, in `seen`; else
 * STATUS_PENDING, and the client asks all agents again: of two that ask at once each would
 * get the same agent, though another one is freer by then. */
#define SESSION_FEATURE_SEEN (1ull << 14)

#define SESSION_TICKET_MS 10000 /* that a ticket is good for */

#define SESSION_STRIPES 4	  /* at most; FRAME_STRIPE_MASK has room for 7 */
#define SESSION_STRIPES_ONE_WAY 3 /* as releases before STRIPES_BACK have it */
/* A payload of fewer bytes is faster over the link: a thread less at each end is to wake.
 * Either end may hold it otherwise. */
#define SESSION_STRIPE_LEAST (384u * 1024)
/* How long, ns, the threads of a stripe stay awake behind a piece where there are cores to spin
 * on: one copy of 1 MiB after the other, each awaited, comes that soon. */
#define SESSION_STRIPE_SPIN 250000u
/* A payload of so many bytes takes a stripe, too, if another one came so soon before it: as the
 * shares do that a copy is cut into for several stripes. Less has no other stripe's time in it:
 * 1 MiB in four was 1.3 times as fast as in two, and in eight no faster (H200, loopback). */
#define SESSION_STRIPE_SHARE (128u * 1024)

/* Whether a payload of N bytes is for a stripe; *last: when the last one came that could be, ns
 * of NOW's clock. */
static inline bool session_stripe_suits(uint32_t n, uint64_t now, uint64_t *last)
{
	bool soon = now - *last < SESSION_STRIPE_SPIN;

	if (n < SESSION_STRIPE_SHARE)
		return false;
	*last = now;
	return soon || n >= SESSION_STRIPE_LEAST;
}

enum session_role {
	SESSION_COMMANDS = 1,
	SESSION_REPLIES = 2,
	SESSION_PROBE = 3,  /* asks whether a session would be granted; nothing is started */
	SESSION_STRIPE = 4, /* one more connection of a running session */
	SESSION_RESUME = 5, /* instead of COMMANDS, of a session whose connections are cut */
	SESSION_END = 6,    /* the session is over, its connections may be cut or not */
	SESSION_RENEW = 7,  /* who a running session's client is, proven anew */
	SESSION_PEER = 8,   /* another agent's session of the same process */
	SESSION_LIGHT = 9,  /* by UDP; or by TCP, since UDP does not get through */
	SESSION_COPY = 10,  /* another agent's front, which fetches a tensor */
};

struct session_piece {
	uint32_t length; /* of the payload behind it, <= FRAME_PAYLOAD_MAX; see 0 at the top */
	uint32_t coded; /* how many bytes come behind it, < length, where they are coded; else 0
			 */
};

/* With SESSION_FEATURE_NAMES, in a piece's `length`, one at the most: */
#define SESSION_PIECE_ASK (1u << 31)   /* `length` names behind it; the answer: 64 bits */
#define SESSION_PIECE_NAMED (1u << 30) /* a name behind it, and no payload */
#define SESSION_PIECE_KEEP (1u << 29)  /* what was asked for, and is not there */
#define SESSION_PIECE_MARKS (SESSION_PIECE_ASK | SESSION_PIECE_NAMED | SESSION_PIECE_KEEP)

#define SESSION_NAMES_ASK 64u	 /* names in one question; bit 0 of the answer is the first */
#define SESSION_NAMES_AHEAD 128u /* names that may be asked for and are not sent yet */
/* The rest of a copy goes over a stripe from so many bytes on: a name has 24, and is asked for
 * first. */
#define SESSION_NAMES_LEAST (32u * 1024)

/* XXH3-128 of a payload, with the seed that the worker said. */
struct session_name {
	uint64_t low, high;
	uint32_t length; /* of the payload, <= FRAME_CHUNK */
	uint32_t reserved;
};

/* Behind the worker's empty piece, whose `coded` is this struct's size. */
struct session_names {
	uint64_t seed;
	uint64_t reserved;
};

/* Roles of a later day stand in fields that have no meaning for them: releases under one
 * number of the protocol have one layout. */
struct session_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t role;
	uint64_t features;
	union {
		uint8_t session[16]; /* not COMMANDS, PROBE: as the last WELCOME gave it */
		uint8_t seen[4];     /* COMMANDS with SESSION_FEATURE_SEEN: sessions, a uint32_t
				      */
	};
	uint8_t secret[16]; /* as `session` */
	uint32_t pid;	    /* for the ledger and logs */
	uint32_t uid;
	char program[64];
	char pod[128]; /* namespace/name, or the host's name */
	union {
		char pod_uid[40];   /* sessions with the same one share limits; "": those of the
				     * same pod */
		uint8_t source[16]; /* PEER: the session that dials */
	};
	char token[256]; /* NUL-terminated; compared in constant time */
	union {
		uint64_t vram_limit; /* bytes they may have of each GPU together; 0: any */
		uint64_t counted;    /* RESUME: how many of the worker's frames */
	};
	uint32_t gpu_count; /* GPUs that they see; 0 = all */
	union {
		uint32_t reserved;
		uint32_t grace_ms; /* COMMANDS: how long it is to outlive its connections */
	};
};

struct session_credential {
	uint32_t length; /* of what follows: 1 … SESSION_CREDENTIAL_MAX */
	uint32_t reserved;
};

struct session_welcome {
	uint64_t magic;
	uint32_t version;
	uint32_t status;     /* enum wire_status */
	uint64_t features;   /* what both know */
	uint8_t session[16]; /* to PROBE: of the agent, at random: two addresses, one agent? */
	uint8_t secret[16];
	uint16_t reply_port; /* where the second connection goes */
	uint8_t stripe;	     /* to STRIPE: its number, 1 … SESSION_STRIPES */
	uint8_t gpus;	     /* PROBE: how many there are, … */
	union {
		uint32_t sessions;   /* … how many sessions run, … */
		uint32_t granted_ms; /* to COMMANDS: the grace, at most as asked */
		uint32_t ended; /* to RESUME, what joins it, and END, refused: the status that
				   the session ended with, why is the text; 0: not known */
	};
	union {
		uint64_t free_memory; /* … and what the freest GPU has to give */
		uint64_t taken;	      /* to RESUME: the last frame taken over */
	};
	char text[192]; /* one line, NUL-terminated */
};

#endif
