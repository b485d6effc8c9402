/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of a stripe (protocol/wire/session.h), coded where that pays: a thread that sends has
 * a piece_sender, one that receives a piece_receiver.  Both are the thread's own but for the
 * counts, which anybody reads.
 */
#ifndef VCUDA_TRANSPORT_CODEC_PIECE_H
#define VCUDA_TRANSPORT_CODEC_PIECE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"
#include "transport/codec/codec.h"
#include "transport/codec/controller.h"
#include "transport/transport.h"

/* Of one direction. */
struct piece_counts {
	_Atomic uint64_t payload;	      /* bytes, before they were coded */
	_Atomic uint64_t wire;		      /* … and as they went, heads and all */
	_Atomic uint64_t pieces[CODEC_KINDS]; /* by how they went */
	_Atomic uint64_t named, named_bytes;  /* those of which only the name went */
	_Atomic uint64_t rate; /* of the wire as it was seen last, bytes/s; 0: not known */
};

/* Bytes that did not travel. */
uint64_t piece_saved(const struct piece_counts *counts);

struct piece_sender {
	struct link_flow flow;
	struct controller controller;
	struct codec *codec; /* NULL: nothing is coded, or nothing was yet */
	bool codes;	     /* the peer knows coded pieces, and we are to make some */
	uint32_t marks;	     /* SESSION_PIECE_…, of the next piece */
	struct piece_counts *counts;
};

struct piece_receiver {
	struct codec *codec;
	bool codes;	/* coded pieces may come */
	bool names;	/* and marks (SESSION_PIECE_…) */
	uint32_t marks; /* of the piece that came last */
	struct piece_counts *counts;
};

/* COUNTS stay the caller's; MODE is OFF where the peer knows no coded pieces. */
void piece_sender_init(
	struct piece_sender *sender, enum controller_mode mode, struct piece_counts *counts);
void piece_sender_fini(struct piece_sender *sender);

/* N bytes, which others may be writing to, behind their head; N = 0: the head alone. As
 * link_send_all. */
int piece_send(struct piece_sender *sender, struct link *link, const void *bytes, uint32_t n,
	const _Atomic bool *stop);

/* NAME in place of the payload that it is of. As link_send_all. */
int piece_send_named(struct piece_sender *sender, struct link *link,
	const struct session_name *name, const _Atomic bool *stop);

/* A question: COUNT names. As link_send_all. */
int piece_send_ask(struct piece_sender *sender, struct link *link,
	const struct session_name *names, uint32_t count, const _Atomic bool *stop);

/* The thread waited for something to send. */
void piece_paused(struct piece_sender *sender);

void piece_receiver_init(
	struct piece_receiver *receiver, bool codes, struct piece_counts *counts);
void piece_receiver_fini(struct piece_receiver *receiver);

/* What comes next, without its marks. 0; -EPROTO: a length that cannot be; or as
 * link_receive_all. Of an ASK head->length is how many names (or bits) there are, at least one,
 * and head->coded not checked. */
int piece_receive_head(
	struct piece_receiver *receiver, struct link *link, struct session_piece *head);

/* The payload of HEAD, of head->length bytes, to TO, which is only written. Where FILL is not
 * NULL and all bytes are one, *fill is that one and nothing is written; else it is -1. 0;
 * -EPROTO: it is no coding of so many bytes; -ENOMEM; or as link_receive_all. */
int piece_receive(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, void *to, int *fill);

/* The name of HEAD, which is NAMED. 0; -EPROTO: of another length; or as link_receive_all. */
int piece_receive_named(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, struct session_name *name);

/* N bytes that are no payload, behind HEAD, which says how many: as link_receive_all, or
 * -EPROTO where it says otherwise. */
int piece_receive_plain(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, void *to, uint32_t n);

#endif
