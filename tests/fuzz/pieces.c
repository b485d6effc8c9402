/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: what comes on a stripe, from a peer that violates the protocol: heads, marks,
 * names, answers and payloads, coded or not, as the threads of sidecar and worker take them.
 * The first byte says what the two had agreed on; the rest are the stripe's bytes.  No length
 * that comes back may be beyond what may travel, and nothing behind a payload's place is
 * written.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/codec/piece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GUARD 64
#define CODES 1 /* of the first byte */
#define NAMES 2

/* A link on which those bytes come, and then the end. */
struct wire {
	struct link link;
	const uint8_t *bytes;
	size_t left;
};

static int wire_receive_all(struct link *link, void *buffer, size_t n)
{
	struct wire *wire = (void *)link;

	if (n > wire->left)
		return -ECONNRESET;
	memcpy(buffer, wire->bytes, n);
	wire->bytes += n;
	wire->left -= n;
	return 0;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static int take_payload(
	struct piece_receiver *receiver, struct link *link, const struct session_piece *head)
{
	unsigned char *to = malloc(head->length + GUARD);
	int ret, fill = -1;

	must(to);
	memset(to + head->length, 0xa5, GUARD);
	ret = piece_receive(receiver, link, head, to, receiver->names ? &fill : NULL);
	for (int i = 0; i < GUARD; i++)
		must(to[head->length + (uint32_t)i] == 0xa5);
	must(fill >= -1 && fill <= 0xff);
	free(to);
	return ret;
}

static int take_ask(
	struct piece_receiver *receiver, struct link *link, const struct session_piece *head)
{
	struct session_name names[SESSION_NAMES_ASK];

	must(head->length && head->length <= SESSION_NAMES_ASK);
	return piece_receive_plain(
		receiver, link, head, names, head->length * (uint32_t)sizeof(*names));
}

/* The next piece, as who knows all marks takes it. */
static int take(struct piece_receiver *receiver, struct link *link)
{
	struct session_piece head;
	struct session_name name;
	struct session_names begin;
	int ret = piece_receive_head(receiver, link, &head);

	if (ret)
		return ret;
	must(receiver->names || !receiver->marks);
	if (receiver->marks & SESSION_PIECE_ASK)
		return take_ask(receiver, link, &head);
	must(head.length <= CODEC_MOST);
	if (receiver->marks & SESSION_PIECE_NAMED) {
		ret = piece_receive_named(receiver, link, &head, &name);
		must(ret || name.length == head.length);
		return ret;
	}
	if (receiver->names && !head.length) {
		must(head.coded <= sizeof(begin));
		return piece_receive_plain(receiver, link, &head, &begin, head.coded);
	}
	must(!head.coded || head.coded < head.length);
	return take_payload(receiver, link, &head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct link_ops ops = {.receive_all = wire_receive_all};
	struct wire wire = {.link.ops = &ops, .bytes = data + 1, .left = size ? size - 1 : 0};
	struct piece_counts counts = {0};
	struct piece_receiver receiver;
	int ret;

	if (!size)
		return 0;
	piece_receiver_init(&receiver, data[0] & CODES, &counts);
	receiver.names = data[0] & NAMES;
	while (!(ret = take(&receiver, &wire.link)))
		;
	must(ret == -ECONNRESET || ret == -EPROTO);
	must(piece_saved(&counts) <= atomic_load(&counts.payload) + size);
	piece_receiver_fini(&receiver);
	return 0;
}
