/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads by content, of one stripe: which of those that are queued the agent has.  The sender
 * looks at the queue ahead of what it sends, asks, and learns of each piece how it is to go;
 * the receiver only puts the answers down (protocol/wire/session.h).
 */
#ifndef VCUDA_SIDECAR_STRIPES_NAMES_H
#define VCUDA_SIDECAR_STRIPES_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"

#define NAMES_QUESTIONS 64u /* that are not answered; a power of two */
/* Names in one question: few, so that the first comes soon and bytes go out between. */
#define NAMES_BATCH 4u

enum names_way {
	NAMES_UNKNOWN, /* the agent is asked */
	NAMES_AS_IT_IS,
	NAMES_NAMED,
	NAMES_LACKING, /* and is to keep it */
};

struct names {
	bool on; /* the agent keeps payloads of this stripe */
	uint64_t seed;
	/* The sender's. Counts of the queue's pieces go on for ever. */
	uint32_t looked; /* at pieces up to here */
	uint32_t known;	 /* of no piece behind it an answer came */
	uint32_t heeded; /* answers */
	struct names_piece {
		enum names_way way;
		struct session_name name;
	} pieces[SESSION_NAMES_AHEAD]; /* those that were looked at, by their number */
	struct session_name question[NAMES_BATCH];
	uint32_t count;			  /* of names in it */
	uint32_t counts[NAMES_QUESTIONS]; /* of those that were asked */
	/* Between both. */
	_Atomic uint32_t asked, answers; /* questions, and what came */
	struct names_answer {
		uint64_t have;
		uint32_t count;
	} ring[NAMES_QUESTIONS];
};

/* The agent's greeting brought SAID: from now on payloads are named. */
void names_begin(struct names *names, const struct session_names *said);

/* Whether another piece may be looked at, where HEAD pieces have gone and TAIL were queued. */
bool names_may_look(const struct names *names, uint32_t head, uint32_t tail);
/* The next piece has N bytes, which go AS_IS; or else their name stands in the question. */
void names_look(struct names *names, const void *bytes, uint32_t n, bool as_is);
/* The question goes out: before it does. */
void names_ask(struct names *names);

/* Takes the answers that came. -EPROTO: one fits no question. */
int names_heed(struct names *names);
/* How piece number HEAD goes; *name is what it is called. */
enum names_way names_of(
	const struct names *names, uint32_t head, const struct session_name **name);

/* The receiver: whether an answer is to come; and one that came. */
bool names_await(const struct names *names);
void names_hear(struct names *names, uint32_t count, uint64_t have);

#endif
