/* SPDX-License-Identifier: Apache-2.0
 *
 * Stripes between a peer that says what it likes and memory that the program takes away: what
 * comes and goes is right, one that is cut within a payload breaks, and memory that is gone is
 * told apart from that, whether the kernel or the thread itself finds it out.  Where payloads
 * are named, what the agent has does not go, and an agent that answers what nobody asked is
 * left.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sidecar/stripes/stripes.h"
#include "transport/codec/name.h"
#include "transport/socket_link.h"

#define BYTES (SESSION_STRIPE_LEAST + 77)
#define PATIENCE 3000 /* times 10 ms */

/* A link whose bytes pass through this process, as TLS's do. */
struct by_hand {
	struct link link;
	struct link *inner;
	unsigned char bytes[BYTES + 64];
};

static ssize_t hand_send(struct link *link, const struct iovec *iov, int count)
{
	struct by_hand *hand = (struct by_hand *)link;
	struct iovec all = {hand->bytes, 0};

	for (int i = 0; i < count; i++) {
		memcpy(hand->bytes + all.iov_len, iov[i].iov_base, iov[i].iov_len);
		all.iov_len += iov[i].iov_len;
	}
	return link_send(hand->inner, &all, 1);
}

static int hand_receive_all(struct link *link, void *buffer, size_t n)
{
	struct by_hand *hand = (struct by_hand *)link;
	int ret = link_receive_all(hand->inner, hand->bytes, n);

	if (!ret)
		memcpy(buffer, hand->bytes, n);
	return ret;
}

static void hand_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	link_fds(((struct by_hand *)link)->inner, fds, want_send);
}

static void hand_shut(struct link *link)
{
	link_shut(((struct by_hand *)link)->inner);
}

static void hand_close(struct link *link)
{
	link_close(((struct by_hand *)link)->inner);
	free(link);
}

static const struct link_ops hand_ops = {
	.send = hand_send,
	.receive_all = hand_receive_all,
	.fds = hand_fds,
	.shut = hand_shut,
	.close = hand_close,
};

/* The agent's ends, by number. */
static struct {
	_Atomic unsigned count;
	_Atomic int fds[SESSION_STRIPES + 1]; /* 0: not there yet */
	bool by_hand;
} peer;

static int open_pair(const struct transport_place *place, const struct session_hello *hello,
	uint64_t deadline, unsigned *number, struct link **link, struct error *error)
{
	struct by_hand *hand = calloc(1, sizeof(*hand));
	int fds[2];

	(void)place, (void)hello, (void)deadline;
	if (!hand || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return error_set(error, ENOMEM, "a pair");
	*number = atomic_fetch_add(&peer.count, 1) + 1;
	peer.fds[*number] = fds[1];
	hand->link.ops = &hand_ops;
	assert_int_equal(stream_open(fds[0], fds[0], &hand->inner, error), 0);
	*link = &hand->link;
	if (!peer.by_hand) {
		*link = hand->inner;
		free(hand);
	}
	return 0;
}

static const struct transport pairs = {.name = "pairs", .open_stripe = open_pair};

struct bench {
	struct stripes stripes;
	struct stripes_counts counts;
	struct segments segments;
	int wake;
};

static bool soon(bool (*what)(const struct bench *b), const struct bench *b)
{
	for (int i = 0; i < PATIENCE && !what(b); i++)
		usleep(10000);
	return what(b);
}

static bool all_open(const struct bench *b)
{
	return stripes_count(&b->stripes) == SESSION_STRIPES;
}

static bool broken(const struct bench *b)
{
	return stripes_broken(&b->stripes);
}

static bool first_landed(const struct bench *b)
{
	return stripes_landed(&b->stripes, 1, 0);
}

#define SEED 12345

static int begin(void **state, bool by_hand, bool named)
{
	const struct session_welcome welcome = {
		.features = SESSION_FEATURE_STRIPES | SESSION_FEATURE_STRIPES_BACK |
			    (named ? SESSION_FEATURE_NAMES : 0)};
	const struct session_hello hello = {0};
	const struct {
		struct session_piece head;
		struct session_names names;
	} greeting = {.head.coded = named ? sizeof(greeting.names) : 0, .names.seed = SEED};
	const ssize_t greeted = named ? sizeof(greeting) : sizeof(greeting.head);
	struct link link = {.place.transport = &pairs};
	struct bench *b = calloc(1, sizeof(*b));
	struct error error;

	assert_non_null(b);
	assert_int_equal(
		segment_create(CHANNEL_HOST, 8 << 20, &b->segments.at[0], NULL, NULL, &error),
		0);
	b->wake = eventfd(0, EFD_NONBLOCK);
	peer.count = 0;
	for (unsigned i = 0; i <= SESSION_STRIPES; i++)
		peer.fds[i] = 0;
	peer.by_hand = by_hand;
	stripes_init(&b->stripes, &link, &hello, &welcome,
		&(struct stripes_setting){
			.segments = &b->segments, .wake = b->wake, .counts = &b->counts});
	stripes_came(&b->stripes, STRIPES_OPEN_AT);
	for (int i = 0; i < PATIENCE && peer.count < SESSION_STRIPES; i++)
		usleep(10000);
	for (unsigned i = 1; i <= SESSION_STRIPES; i++) {
		struct session_piece heard = {.length = 1};

		/* `count` is there before the descriptor. */
		while (!b->stripes.at[0].state || peer.fds[i] <= 0)
			usleep(1000);
		assert_int_equal(
			recv(peer.fds[i], &heard, sizeof(heard), MSG_WAITALL), sizeof(heard));
		assert_int_equal(heard.length, 0);
		assert_int_equal(send(peer.fds[i], &greeting, (size_t)greeted, 0), greeted);
	}
	assert_true(soon(all_open, b));
	*state = b;
	return 0;
}

static int begin_plain(void **state)
{
	return begin(state, false, false);
}

static int begin_named(void **state)
{
	return begin(state, false, true);
}

static int begin_by_hand(void **state)
{
	return begin(state, true, false);
}

static int end(void **state)
{
	struct bench *b = *state;

	stripes_close(&b->stripes);
	for (unsigned i = 1; i <= SESSION_STRIPES; i++) {
		close(peer.fds[i]);
		peer.fds[i] = 0;
	}
	segments_fini(&b->segments, true);
	close(b->wake);
	free(b);
	return 0;
}

/* Awaits a payload in the segment, over the first stripe, of which N bytes come. */
static void await_of_first(struct bench *b, size_t n)
{
	static unsigned char bytes[sizeof(struct session_piece) + BYTES];
	const struct session_piece head = {.length = BYTES};
	uint32_t ticket = 1;

	memset(bytes, 0x5a, sizeof(bytes));
	memcpy(bytes, &head, sizeof(head));
	assert_int_equal(
		stripes_await(&b->stripes, 1, b->segments.at[0]->base, BYTES, &ticket), 0);
	assert_int_equal(ticket, 0);
	n += sizeof(head);
	for (size_t at = 0; at < n;) {
		ssize_t sent =
			send(peer.fds[1], bytes + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && broken(b))
			return; /* nobody takes it any more */
		if (sent < 0)
			usleep(1000);
		at += sent > 0 ? (size_t)sent : 0;
	}
}

static void test_comes_and_goes(void **state)
{
	static unsigned char bytes[sizeof(struct session_piece) + BYTES];
	struct bench *b = *state;
	unsigned char *at = b->segments.at[0]->base;
	struct session_piece head;
	unsigned number;

	await_of_first(b, BYTES);
	assert_true(soon(first_landed, b));
	assert_int_equal(at[0], 0x5a);
	assert_int_equal(at[BYTES - 1], 0x5a);
	assert_int_equal(at[BYTES], 0);
	number = stripes_queue(&b->stripes, at, BYTES);
	assert_in_range(number, 1, SESSION_STRIPES);
	assert_int_equal(
		recv(peer.fds[number], bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
	memcpy(&head, bytes, sizeof(head));
	assert_int_equal(head.length, BYTES);
	assert_memory_equal(bytes + sizeof(head), at, BYTES);
	assert_false(stripes_broken(&b->stripes));
}

static void test_cut_within_what_comes(void **state)
{
	struct bench *b = *state;

	await_of_first(b, BYTES / 2);
	shutdown(peer.fds[1], SHUT_RDWR);
	assert_true(soon(broken, b));
	assert_false(first_landed(b));
	assert_false(stripes_robbed(&b->stripes));
}

static void test_cut_within_what_goes(void **state)
{
	struct bench *b = *state;
	unsigned char some[1000];
	unsigned number = stripes_queue(&b->stripes, b->segments.at[0]->base, BYTES);

	assert_in_range(number, 1, SESSION_STRIPES);
	assert_int_equal(recv(peer.fds[number], some, sizeof(some), MSG_WAITALL), sizeof(some));
	shutdown(peer.fds[number], SHUT_RDWR);
	/* It may have been in the kernel as a whole: the stripe's next one is not. The others
	 * get some first, as long as the kernel takes theirs at once. */
	for (int i = 0; i < PATIENCE && !broken(b) &&
			stripes_queue(&b->stripes, b->segments.at[0]->base, BYTES) != number;
		i++)
		usleep(1000);
	assert_true(soon(broken, b));
	assert_false(stripes_robbed(&b->stripes));
}

static void test_memory_gone_for_what_comes(void **state)
{
	struct bench *b = *state;

	segment_guard_install(); /* cmocka has a handler of its own until here */
	assert_int_equal(ftruncate(b->segments.at[0]->fd, 0), 0);
	await_of_first(b, BYTES);
	assert_true(soon(broken, b));
	assert_true(stripes_robbed(&b->stripes));
	assert_false(first_landed(b));
}

static void test_memory_gone_for_what_goes(void **state)
{
	struct bench *b = *state;

	segment_guard_install(); /* cmocka has a handler of its own until here */
	assert_int_equal(ftruncate(b->segments.at[0]->fd, 0), 0);
	assert_int_not_equal(stripes_queue(&b->stripes, b->segments.at[0]->base, BYTES), 0);
	assert_true(soon(broken, b));
	assert_true(stripes_robbed(&b->stripes));
}

/* Queues a payload of BYTES at AT and reads the question that comes for it. The stripe's
 * number. */
static unsigned queue_named(struct bench *b, const unsigned char *at, struct session_name *name)
{
	unsigned number = stripes_queue(&b->stripes, at, BYTES);
	struct session_piece head;

	assert_in_range(number, 1, SESSION_STRIPES);
	assert_int_equal(
		recv(peer.fds[number], &head, sizeof(head), MSG_WAITALL), sizeof(head));
	assert_int_equal(head.length, SESSION_PIECE_ASK | 1);
	assert_int_equal(head.coded, sizeof(*name));
	assert_int_equal(
		recv(peer.fds[number], name, sizeof(*name), MSG_WAITALL), sizeof(*name));
	return number;
}

static void answer(unsigned number, uint32_t length, uint32_t coded, uint64_t have)
{
	const struct session_piece head = {.length = length, .coded = coded};

	assert_int_equal(
		send(peer.fds[number], &head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
	assert_int_equal(
		send(peer.fds[number], &have, sizeof(have), MSG_NOSIGNAL), sizeof(have));
}

static void test_named(void **state)
{
	struct bench *b = *state;
	struct session_name name, said, own;
	struct session_piece head;
	static unsigned char bytes[BYTES];
	unsigned number;

	for (unsigned i = 0; i < 3 * SESSION_STRIPES; i++) {
		unsigned char *at = b->segments.at[0]->base + i * BYTES;

		memset(at, (int)i + 1, BYTES);
		own = name_of(SEED, at, BYTES);
		number = queue_named(b, at, &name);
		assert_memory_equal(&name, &own, sizeof(name));
		answer(number, SESSION_PIECE_ASK | 1, sizeof(uint64_t), i % 2);
		assert_int_equal(
			recv(peer.fds[number], &head, sizeof(head), MSG_WAITALL), sizeof(head));
		if (i % 2) {
			assert_int_equal(head.length, SESSION_PIECE_NAMED | BYTES);
			assert_int_equal(head.coded, sizeof(said));
			assert_int_equal(
				recv(peer.fds[number], &said, sizeof(said), MSG_WAITALL),
				sizeof(said));
			assert_memory_equal(&said, &name, sizeof(said));
		} else {
			assert_int_equal(head.length, SESSION_PIECE_KEEP | BYTES);
			assert_int_equal(head.coded, 0);
			assert_int_equal(
				recv(peer.fds[number], bytes, BYTES, MSG_WAITALL), BYTES);
			assert_int_equal(bytes[BYTES - 1], i + 1);
		}
	}
	assert_int_equal(b->counts.sent.named, 3 * SESSION_STRIPES / 2);
	assert_false(stripes_broken(&b->stripes));
}

/* Answers that fit no question. */
static void test_forged_answer(void **state)
{
	static const struct {
		uint32_t length, coded;
	} forged[] = {{SESSION_PIECE_ASK | 2, 8}, {SESSION_PIECE_ASK | 1, 7},
		{SESSION_PIECE_ASK | 1, 9}, {SESSION_PIECE_ASK | 65, 8}, {SESSION_PIECE_ASK, 8},
		{SESSION_PIECE_ASK | SESSION_PIECE_NAMED | 1, 8}};

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct session_name name;
		struct bench *b = *state;
		unsigned number = queue_named(b, b->segments.at[0]->base, &name);

		answer(number, forged[i].length, forged[i].coded, 1);
		assert_true(soon(broken, b));
		assert_int_equal(b->counts.sent.named, 0);
		end(state);
		begin_named(state);
	}
}

/* What only the sidecar may send. */
static void test_marks_from_the_agent(void **state)
{
	for (uint32_t mark = SESSION_PIECE_KEEP; mark; mark <<= 1) {
		struct bench *b = *state;
		const struct session_piece head = {.length = mark | BYTES, .coded = 24};
		uint32_t ticket;

		assert_int_equal(
			stripes_await(&b->stripes, 1, b->segments.at[0]->base, BYTES, &ticket),
			0);
		assert_int_equal(
			send(peer.fds[1], &head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
		assert_true(soon(broken, b));
		assert_false(first_landed(b));
		end(state);
		begin_named(state);
	}
}

/* A copy's first payloads wait for the stripes; without an answer the rest of them waits, too.
 */
/* What is large takes a stripe, what is smaller only close behind another one. */
static void test_suits(void **state)
{
	const uint64_t now = 10 * SESSION_STRIPE_SPIN;
	uint64_t last = 0;

	(void)state;
	assert_true(session_stripe_suits(SESSION_STRIPE_LEAST, now, &last));
	assert_false(session_stripe_suits(SESSION_STRIPE_SHARE - 1, now + 1, &last));
	assert_true(session_stripe_suits(
		SESSION_STRIPE_SHARE, now + SESSION_STRIPE_SPIN - 1, &last));
	assert_true(session_stripe_suits(
		SESSION_STRIPE_SHARE, now + 2 * SESSION_STRIPE_SPIN - 2, &last));
	assert_false(session_stripe_suits(
		SESSION_STRIPE_LEAST - 1, now + 4 * SESSION_STRIPE_SPIN, &last));
}

static void test_held(void **state)
{
	struct bench *b = *state;
	uint64_t until;

	assert_false(stripes_hold(&b->stripes, BYTES, &until));
	assert_false(stripes_hold(&b->stripes, 1000, &until));
	for (unsigned i = 0; i < STRIPE_QUEUE * SESSION_STRIPES; i++) {
		assert_false(stripes_hold(&b->stripes, FRAME_CHUNK, &until));
		assert_in_range(
			stripes_queue(&b->stripes, b->segments.at[0]->base, FRAME_CHUNK), 1,
			SESSION_STRIPES);
	}
	assert_true(stripes_hold(&b->stripes, FRAME_CHUNK, &until));
	/* The rest of a copy. */
	assert_true(stripes_hold(&b->stripes, SESSION_NAMES_LEAST, &until));
	assert_false(stripes_hold(&b->stripes, SESSION_NAMES_LEAST - 1, &until));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define BOTH(test)                                                                             \
	{#test, test, begin_plain, end, NULL},                                                 \
	{                                                                                      \
		#test "_by_hand", test, begin_by_hand, end, NULL                               \
	}
		BOTH(test_comes_and_goes),
		BOTH(test_cut_within_what_comes),
		BOTH(test_cut_within_what_goes),
		BOTH(test_memory_gone_for_what_comes),
		BOTH(test_memory_gone_for_what_goes),
#undef BOTH
		cmocka_unit_test(test_suits),
		cmocka_unit_test_setup_teardown(test_named, begin_named, end),
		cmocka_unit_test_setup_teardown(test_forged_answer, begin_named, end),
		cmocka_unit_test_setup_teardown(test_marks_from_the_agent, begin_named, end),
		cmocka_unit_test_setup_teardown(test_held, begin_named, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
