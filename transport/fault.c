/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fault.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wait.h"
#include "protocol/wire/frame.h"
#include "transport/rated.h"

#define FAULT_HELD (1u << 20) /* bytes held back at once; more stays in the socket */
#define FAULT_IOV 64

/* Bytes that arrived and may not be seen yet. */
struct held {
	struct held *next;
	uint64_t due;
	size_t at, n;
	unsigned char bytes[];
};

struct fault {
	struct link link;
	struct link *inner;
	struct fault_plan plan;
	uint64_t frames, bytes; /* sent whole; sent */
	uint64_t left;		/* of the frame that is being sent, header done */
	size_t header_at;
	unsigned char header[sizeof(struct frame_header)];
	bool cut;
	struct held *first, **last;
	size_t held;
	bool eof;
	int failed; /* -errno met while reading ahead */
};

static bool fault_stalled(const struct fault *fault)
{
	return fault->frames >= fault->plan.stall_after;
}

/* Follows the frame boundaries of what is about to be sent. Returns how many of the N bytes may
 * go before a cut or a stall; counts them as sent. */
static size_t fault_follow(struct fault *fault, const unsigned char *bytes, size_t n)
{
	size_t at = 0;

	while (at < n && !fault->cut && !fault_stalled(fault)) {
		uint64_t step = n - at;
		struct frame_header header;

		if (fault->left) {
			if (step > fault->left)
				step = fault->left;
			fault->left -= step;
		} else {
			if (step > sizeof(header) - fault->header_at)
				step = sizeof(header) - fault->header_at;
			memcpy(fault->header + fault->header_at, bytes + at, (size_t)step);
			fault->header_at += (size_t)step;
			if (fault->header_at == sizeof(header)) {
				memcpy(&header, fault->header, sizeof(header));
				fault->left = header.length;
			}
		}
		if (fault->bytes + step >= fault->plan.cut_after_bytes) {
			step = fault->plan.cut_after_bytes - fault->bytes;
			fault->cut = true;
		}
		fault->bytes += step;
		at += (size_t)step;
		if (!fault->cut && fault->header_at == sizeof(header) && !fault->left) {
			fault->header_at = 0;
			if (++fault->frames >= fault->plan.cut_after) {
				fault->cut = true;
				at -= fault->plan.truncate < at ? (size_t)fault->plan.truncate
								: at;
			}
		}
	}
	return at;
}

static ssize_t fault_send(struct link *link, const struct iovec *iov, int count)
{
	struct fault *fault = (struct fault *)link;
	ssize_t total = 0;

	/* One vector at a time and only what the inner link took is followed: a slow path, but
	 * exact. A short inner send shows as a short send. */
	for (int i = 0; i < count; i++) {
		struct fault before = *fault;
		struct iovec one = iov[i];
		ssize_t sent;

		if (fault->cut)
			return total ? total : -ECONNRESET;
		if (fault_stalled(fault))
			return total ? total : -EAGAIN;
		one.iov_len = fault_follow(fault, one.iov_base, one.iov_len);
		sent = one.iov_len ? link_send(fault->inner, &one, 1) : 0;
		if (sent < 0 || (size_t)sent < one.iov_len) {
			*fault = before;
			if (sent > 0)
				fault_follow(fault, one.iov_base, (size_t)sent);
			if (sent < 0)
				return total ? total : sent;
		}
		total += sent;
		if ((size_t)sent < iov[i].iov_len)
			break;
	}
	if (!total && fault->cut)
		return -ECONNRESET;
	return total ? total : -EAGAIN;
}

/* Takes what has arrived and stamps it. */
static void fault_hold(struct fault *fault)
{
	while (!fault->eof && !fault->failed && fault->held < FAULT_HELD) {
		size_t room = 64 * 1024;
		struct held *held = malloc(sizeof(*held) + room);
		ssize_t n;

		if (!held) {
			fault->failed = -ENOMEM;
			return;
		}
		n = link_receive(fault->inner, held->bytes, room);
		if (n <= 0) {
			free(held);
			if (!n)
				fault->eof = true;
			else if (n != -EAGAIN)
				fault->failed = (int)n;
			return;
		}
		*held = (struct held){.due = wait_now() + fault->plan.delay, .n = (size_t)n};
		*fault->last = held;
		fault->last = &held->next;
		fault->held += (size_t)n;
	}
}

static ssize_t fault_receive(struct link *link, void *buffer, size_t n)
{
	struct fault *fault = (struct fault *)link;
	struct held *held;

	if (fault->cut)
		return -ECONNRESET;
	if (fault_stalled(fault))
		return -EAGAIN;
	if (!fault->plan.delay)
		return link_receive(fault->inner, buffer, n);

	fault_hold(fault);
	held = fault->first;
	if (!held) {
		if (fault->failed)
			return fault->failed;
		return fault->eof ? 0 : -EAGAIN;
	}
	if (wait_now() < held->due)
		return -EAGAIN;
	if (n > held->n - held->at)
		n = held->n - held->at;
	memcpy(buffer, held->bytes + held->at, n);
	held->at += n;
	fault->held -= n;
	if (held->at == held->n) {
		fault->first = held->next;
		if (!fault->first)
			fault->last = &fault->first;
		free(held);
	}
	return (ssize_t)n;
}

static void fault_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	struct fault *fault = (struct fault *)link;

	link_fds(fault->inner, fds, want_send);
	if (fault_stalled(fault))
		fds[0].fd = fds[1].fd = -1;
	/* Nothing new is wanted before what is held back is due or has made room. */
	if (fault->held >= FAULT_HELD || fault->eof || fault->failed)
		fds[0].fd = -1;
}

static uint64_t fault_wake_at(struct link *link)
{
	struct fault *fault = (struct fault *)link;
	uint64_t inner = link_wake_at(fault->inner);

	if (fault->cut)
		return 0;
	if (fault->first && fault->first->due < inner && !fault_stalled(fault))
		return fault->first->due;
	if (!fault->first && (fault->eof || fault->failed))
		return 0;
	return inner;
}

static void fault_shut(struct link *link)
{
	link_shut(((struct fault *)link)->inner);
}

static void fault_close(struct link *link)
{
	struct fault *fault = (struct fault *)link;
	struct held *held, *next;

	for (held = fault->first; held; held = next) {
		next = held->next;
		free(held);
	}
	link_close(fault->inner);
	free(fault);
}

static const struct link_ops fault_ops = {
	.send = fault_send,
	.receive = fault_receive,
	.fds = fault_fds,
	.wake_at = fault_wake_at,
	.shut = fault_shut,
	.close = fault_close,
};

/* Wraps INNER, which it owns from then on (also when it fails). */
static int fault_wrap(struct link *inner, const struct fault_plan *plan, struct link **link,
	struct error *error)
{
	struct fault *fault = calloc(1, sizeof(*fault));

	if (!fault) {
		link_close(inner);
		return error_set(error, ENOMEM, "fault link");
	}
	fault->link.ops = &fault_ops;
	fault->inner = inner;
	fault->plan = *plan;
	fault->last = &fault->first;
	*link = &fault->link;
	return 0;
}

static int fault_number(const char *text, bool time, uint64_t *value)
{
	unsigned long long n, unit = 1;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9')
		return -EINVAL;
	if (time) {
		unit = !strcmp(end, "us")   ? 1000ull
		       : !strcmp(end, "ms") ? 1000000ull
		       : !strcmp(end, "s")  ? 1000000000ull
					    : 0;
		end += unit ? strlen(end) : 0;
	}
	if (*end || !unit || __builtin_mul_overflow(n, unit, &n))
		return -EINVAL;
	*value = n;
	return 0;
}

int fault_parse(const char *text, struct fault_plan *plan, struct error *error)
{
	const struct {
		const char *word;
		bool time;
		uint64_t *value;
	} words[] = {
		{"delay", true, &plan->delay},
		{"cut-after", false, &plan->cut_after},
		{"cut-after-bytes", false, &plan->cut_after_bytes},
		{"stall-after", false, &plan->stall_after},
		{"truncate", false, &plan->truncate},
		{"rate", false, &plan->rate},
	};
	char copy[256], *rest = copy, *word, *equals;

	*plan = (struct fault_plan){.cut_after = FAULT_NONE,
		.cut_after_bytes = FAULT_NONE,
		.stall_after = FAULT_NONE};
	if (strlen(text) >= sizeof(copy))
		return error_set(
			error, 0, "fault plan: longer than %zu characters", sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	while ((word = strsep(&rest, "&"))) {
		size_t i, n = sizeof(words) / sizeof(words[0]);

		equals = strchr(word, '=');
		if (equals)
			*equals++ = 0;
		for (i = 0; i < n && strcmp(words[i].word, word); i++)
			;
		if (i == n || !equals || fault_number(equals, words[i].time, words[i].value) ||
			(words[i].value == &plan->rate && !plan->rate))
			return error_set(error, 0,
				"fault plan: '%s%s%s' is not delay=TIME, cut-after=N, "
				"cut-after-bytes=N, truncate=N, rate=BYTES or stall-after=N",
				word, equals ? "=" : "", equals ? equals : "");
	}
	return 0;
}

/* Splits X://…?PLAN. 0, or -EINVAL with *error. */
static int fault_split(
	const char *address, char inner[512], struct fault_plan *plan, struct error *error)
{
	const char *question = strchr(address, '?');
	size_t n = question ? (size_t)(question - address) : strlen(address);

	if (n >= 512)
		return error_set(error, 0, "the address is longer than %d characters", 511);
	memcpy(inner, address, n);
	inner[n] = 0;
	return fault_parse(question ? question + 1 : "truncate=0", plan, error);
}

/* Where a link over a wire leads, and which wire that is. */
struct fault_place {
	const struct transport *transport;
	unsigned wire;
	_Alignas(8) unsigned char bytes[TRANSPORT_INNER];
};
_Static_assert(sizeof(struct fault_place) <= TRANSPORT_PLACE, "a place has room for another's");

static int fault_open_stripe(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error)
{
	struct transport_place plain = {0};
	struct fault_place where;
	struct link *inner = NULL;
	int ret;

	memcpy(&where, place->bytes, sizeof(where));
	plain.transport = where.transport;
	memcpy(plain.bytes, where.bytes, sizeof(where.bytes));
	ret = plain.transport->open_stripe(&plain, hello, deadline, number, &inner, error);
	*stripe = NULL;
	return ret < 0 || !inner ? ret : rated_wrap(inner, where.wire, stripe, error);
}

/* INNER, which it owns from then on, over the wire of ADDRESS. */
static int fault_slow(const char *address, const struct fault_plan *plan, struct link **inner,
	struct fault_place *place, struct error *error)
{
	const struct transport_place *plain = &(*inner)->place;

	place->wire = rated_wire(address, plan->rate);
	if (plain->transport && plain->transport->open_stripe) {
		place->transport = plain->transport;
		memcpy(place->bytes, plain->bytes, sizeof(place->bytes));
	}
	return rated_wrap(*inner, place->wire, inner, error);
}

/* ADDRESS is the whole of it: X://…?PLAN. */
static int fault_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct fault_plan plan;
	struct fault_place place = {0};
	struct link *inner;
	char plain[512];
	int ret = fault_split(address, plain, &plan, error);
	const struct transport *transport = ret ? NULL : transport_find(plain, error);

	if (!transport)
		return ret ? ret : -EINVAL;
	if (transport->shares)
		return error_set(error, 0,
			"'%.120s': the transport shares memory, there is no link to break: "
			"fault+unix://",
			address);
	ret = transport_dial(plain, hello, welcome, deadline, &inner, error);
	if (ret < 0 || !inner) {
		*link = NULL;
		return ret;
	}
	if (plan.rate)
		ret = fault_slow(address, &plan, &inner, &place, error);
	if (ret < 0)
		return ret;
	ret = fault_wrap(inner, &plan, link, error);
	if (!ret && place.transport) {
		(*link)->place.transport = &transport_fault;
		memcpy((*link)->place.bytes, &place, sizeof(place));
	}
	return ret;
}

/* The plan is looked at when it is dialed. */
static int fault_describe(
	const char *address, struct transport_description *description, struct error *error)
{
	size_t n = strcspn(address, "?");
	char plain[512];

	snprintf(plain, sizeof(plain), "%.*s", (int)(n < 511 ? n : 511), address);
	return transport_describe(plain, description->port, description, error);
}

const struct transport transport_fault = {
	.name = "fault",
	.dial = fault_dial,
	.open_stripe = fault_open_stripe,
	.describe = fault_describe,
};
