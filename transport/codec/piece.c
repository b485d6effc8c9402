/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/codec/piece.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/wait.h"

static void count(_Atomic uint64_t *to, uint64_t n)
{
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

uint64_t piece_saved(const struct piece_counts *counts)
{
	uint64_t wire = atomic_load(&counts->wire), payload = atomic_load(&counts->payload);

	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		payload += atomic_load(&counts->pieces[kind]) * sizeof(struct session_piece);
	payload += atomic_load(&counts->named) * sizeof(struct session_piece);
	/* They are written one after the other. */
	return payload > wire ? payload - wire : 0;
}

static void piece_full(struct link_flow *flow)
{
	struct piece_sender *sender =
		(void *)((char *)flow - offsetof(struct piece_sender, flow));
	struct controller *controller = &sender->controller;

	controller_sent(controller, flow->sent);
	flow->sent = 0;
	controller_full(controller, wait_now());
	atomic_store_explicit(
		&sender->counts->rate, (uint64_t)controller->wire, memory_order_relaxed);
}

void piece_sender_init(
	struct piece_sender *sender, enum controller_mode mode, struct piece_counts *counts)
{
	*sender = (struct piece_sender){.flow.full = piece_full, .counts = counts};
	controller_init(&sender->controller, mode);
	sender->codes = mode != CONTROLLER_OFF;
}

void piece_sender_fini(struct piece_sender *sender)
{
	codec_free(sender->codec);
	sender->codec = NULL;
}

void piece_paused(struct piece_sender *sender)
{
	controller_pause(&sender->controller);
}

/* How many of *coded say the same as N bytes; 0: they go as they are. */
static uint32_t piece_code(struct piece_sender *sender, const void *bytes, uint32_t n,
	enum codec_kind *kind, const unsigned char **coded)
{
	struct controller *controller = &sender->controller;
	struct codec_guess guess;
	unsigned char byte;
	uint32_t got;
	uint64_t since;

	if (!sender->codec)
		sender->codec = codec_new();
	if (!sender->codec)
		return 0;
	*kind = CODEC_FILL;
	if (codec_is_fill(bytes, n, &byte)) {
		got = codec_encode(sender->codec, CODEC_FILL, bytes, n, coded);
		if (got)
			return got;
	}
	if (!controller_asks(controller))
		return 0;
	since = wait_now();
	codec_guess(sender->codec, bytes, n, &guess);
	*kind = controller_choose(controller, &guess, n);
	if (*kind == CODEC_RAW)
		return 0;
	got = codec_encode(sender->codec, *kind, bytes, n, coded);
	controller_coded(controller, *kind, &guess, n, got, wait_now() - since);
	return got;
}

int piece_send(struct piece_sender *sender, struct link *link, const void *bytes, uint32_t n,
	const _Atomic bool *stop)
{
	struct session_piece head = {.length = n | sender->marks};
	const unsigned char *coded = NULL;
	enum codec_kind kind = CODEC_RAW;
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)bytes, n}};
	struct piece_counts *counts = sender->counts;
	int ret;

	if (n && sender->codes)
		head.coded = piece_code(sender, bytes, n, &kind, &coded);
	if (head.coded)
		iov[1] = (struct iovec){(void *)(uintptr_t)coded, head.coded};
	else
		kind = CODEC_RAW;
	if (n) {
		count(&counts->pieces[kind], 1);
		count(&counts->payload, n);
		count(&counts->wire, sizeof(head) + (head.coded ? head.coded : n));
	}
	ret = link_send_all(link, iov, n ? 2 : 1, stop, sender->codes ? &sender->flow : NULL);
	controller_sent(&sender->controller, sender->flow.sent);
	sender->flow.sent = 0;
	return ret;
}

static void count_named(struct piece_counts *counts, uint32_t n)
{
	count(&counts->named, 1);
	count(&counts->named_bytes, n);
	count(&counts->payload, n);
	count(&counts->wire, sizeof(struct session_piece) + sizeof(struct session_name));
}

int piece_send_named(struct piece_sender *sender, struct link *link,
	const struct session_name *name, const _Atomic bool *stop)
{
	struct session_piece head = {
		.length = SESSION_PIECE_NAMED | name->length, .coded = sizeof(*name)};
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)name, sizeof(*name)}};

	count_named(sender->counts, name->length);
	return link_send_all(link, iov, 2, stop, NULL);
}

int piece_send_ask(struct piece_sender *sender, struct link *link,
	const struct session_name *names, uint32_t n, const _Atomic bool *stop)
{
	struct session_piece head = {
		.length = SESSION_PIECE_ASK | n, .coded = n * (uint32_t)sizeof(*names)};
	struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)names, head.coded}};

	count(&sender->counts->wire, sizeof(head) + head.coded);
	return link_send_all(link, iov, 2, stop, NULL);
}

void piece_receiver_init(
	struct piece_receiver *receiver, bool codes, struct piece_counts *counts)
{
	*receiver = (struct piece_receiver){.codes = codes, .counts = counts};
}

void piece_receiver_fini(struct piece_receiver *receiver)
{
	codec_free(receiver->codec);
	receiver->codec = NULL;
}

int piece_receive_head(
	struct piece_receiver *receiver, struct link *link, struct session_piece *head)
{
	int ret = link_receive_all(link, head, sizeof(*head));

	if (ret)
		return ret;
	receiver->marks = receiver->names ? head->length & SESSION_PIECE_MARKS : 0;
	head->length &= ~receiver->marks;
	if (receiver->marks & (receiver->marks - 1) || (receiver->marks && !head->length))
		return -EPROTO;
	if (receiver->marks & SESSION_PIECE_ASK)
		return head->length > SESSION_NAMES_ASK ? -EPROTO : 0;
	if (receiver->marks & SESSION_PIECE_NAMED)
		return head->length > CODEC_MOST ? -EPROTO : 0;
	if (receiver->names && !head->length)
		return head->coded > sizeof(struct session_names) ? -EPROTO : 0;
	if (!receiver->codes)
		head->coded = 0; /* reserved then */
	if (head->length > CODEC_MOST || (head->coded && head->coded >= head->length))
		return -EPROTO;
	return 0;
}

int piece_receive(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, void *to, int *fill)
{
	struct piece_counts *counts = receiver->counts;
	unsigned char *coded, byte;
	int ret;

	count(&counts->payload, head->length);
	count(&counts->wire, sizeof(*head) + (head->coded ? head->coded : head->length));
	if (fill)
		*fill = -1;
	if (!head->coded) {
		count(&counts->pieces[CODEC_RAW], 1);
		return link_receive_all(link, to, head->length);
	}
	if (!receiver->codec)
		receiver->codec = codec_new();
	coded = receiver->codec ? codec_input(receiver->codec) : NULL;
	if (!coded)
		return -ENOMEM;
	ret = link_receive_all(link, coded, head->coded);
	if (ret)
		return ret;
	if (*coded < CODEC_KINDS)
		count(&counts->pieces[*coded], 1);
	if (fill && codec_fills(receiver->codec, head->coded, &byte)) {
		*fill = byte;
		return 0;
	}
	return codec_decode(receiver->codec, head->coded, to, head->length);
}

int piece_receive_plain(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, void *to, uint32_t n)
{
	count(&receiver->counts->wire, sizeof(*head) + n);
	return head->coded == n ? link_receive_all(link, to, n) : -EPROTO;
}

int piece_receive_named(struct piece_receiver *receiver, struct link *link,
	const struct session_piece *head, struct session_name *name)
{
	int ret = head->coded == sizeof(*name) ? link_receive_all(link, name, sizeof(*name))
					       : -EPROTO;

	if (ret || name->length != head->length)
		return ret ? ret : -EPROTO;
	count_named(receiver->counts, name->length);
	return 0;
}
