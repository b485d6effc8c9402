/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/records.h"

#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 512

/* libFuzzer's; the replay has none, and changes nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most) __attribute__((weak));

static uint64_t state;

unsigned record_random(unsigned limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return limit ? (unsigned)(state >> 20) % limit : 0;
}

bool record_next(const uint8_t **bytes, size_t *n, struct record *r)
{
	size_t left;

	if (*n < sizeof(*r))
		return false;
	memcpy(r, *bytes, sizeof(*r));
	*bytes += sizeof(*r);
	left = *n -= sizeof(*r);
	if (r->body > left)
		r->body = (uint16_t)left;
	left -= r->body;
	if (r->payload > left)
		r->payload = (uint16_t)left;
	return true;
}

void record_skip(const uint8_t **bytes, size_t *n, const struct record *r)
{
	size_t size = (size_t)r->body + r->payload;

	*bytes += size;
	*n -= size;
}

/* Names, addresses and sizes as a session has them, and what overflows. */
static uint64_t number(void)
{
	static const uint64_t edges[] = {0, 1, 2, 3, 4, 8, 16, 64, 255, 4096, 65536, 1 << 20,
		2 << 20, 4 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40,
		1ull << 63, ~0ull, ~0ull - 4095};
	static const uint8_t kinds[] = {2, 3, 4, 5, 9, 10, 16, 17, 20, 15, 8, 14};
	static const uint32_t places[] = {0, 4, 100, 4096, (2 << 20) - 4, 2 << 20, 8 << 20};

	unsigned at;

	switch (record_random(5)) {
	case 0: /* a handle, mostly one that seeds.py made: kinds[index - 10] */
		at = record_random(sizeof(kinds));
		return 1ull << 32 |
		       (uint64_t)(record_random(10) ? kinds[at] : record_random(24)) << 24 |
		       (record_random(10) ? at + 10 : record_random(40));
	case 1: /* device memory */
		return 0x200000000000ull +
		       places[record_random(sizeof(places) / sizeof(places[0]))] +
		       (uint64_t)(2 << 20) * record_random(8);
	case 2: return record_random(200);
	default: return edges[record_random(sizeof(edges) / sizeof(edges[0]))];
	}
}

size_t record_write(uint8_t *out, size_t most, const struct record *r)
{
	size_t size = (size_t)r->body + r->payload;

	if (sizeof(*r) + size > most)
		return 0;
	memcpy(out, r, sizeof(*r));
	out += sizeof(*r);
	for (size_t at = 0; at < size; at += 8) {
		uint64_t value = record_random(3) ? number() : 0;

		memcpy(out + at, &value, size - at < 8 ? size - at : 8);
	}
	return sizeof(*r) + size;
}

/* Where records begin; their number. at[number] is the end. */
static unsigned find(const uint8_t *data, size_t n, size_t at[RECORDS_MAX + 1])
{
	const uint8_t *bytes = data;
	unsigned count = 0;
	struct record r;

	at[0] = 0;
	while (count < RECORDS_MAX && record_next(&bytes, &n, &r)) {
		record_skip(&bytes, &n, &r);
		at[++count] = (size_t)(bytes - data);
	}
	return count;
}

/* Takes `cut` bytes at `at` out and puts `put` bytes of `from` there. */
static size_t splice(uint8_t *data, size_t n, size_t most, size_t at, size_t cut,
	const uint8_t *from, size_t put)
{
	if (n - cut + put > most)
		return n;
	memmove(data + at + put, data + at + cut, n - at - cut);
	memcpy(data + at, from, put);
	return n - cut + put;
}

/* A field of a body, 4 or 8 bytes, becomes a number that means something. */
static void set_field(uint8_t *record, size_t n)
{
	struct record r;
	uint64_t value = number();
	unsigned width = record_random(2) ? 8 : 4, at;

	memcpy(&r, record, sizeof(r));
	if (r.body < width || n < sizeof(r) + r.body)
		return;
	at = record_random((r.body - width) / width + 1u) * width;
	memcpy(record + sizeof(r) + at, &value, width);
}

static void set_head(uint8_t *record)
{
	static const uint16_t contexts[] = {0, 1, 1, 2, 64, 65, 1023, 65535};
	struct record r;

	memcpy(&r, record, sizeof(r));
	switch (record_random(4)) {
	case 0: r.kind = (uint8_t)record_random(8); break;
	case 1: r.stripe = (uint8_t)record_random(4); break;
	case 2: r.context = contexts[record_random(8)]; break;
	default: r.op = (uint16_t)(r.op + record_random(3) - 1); break;
	}
	memcpy(record, &r, sizeof(r));
}

/* Its body grows or shrinks, as the fuzzer likes it. */
static size_t mutate_body(uint8_t *data, size_t n, size_t most, size_t at, size_t end)
{
	static uint8_t body[1 << 16];
	struct record r;
	size_t was, size;

	memcpy(&r, data + at, sizeof(r));
	was = r.body < end - at - sizeof(r) ? r.body : end - at - sizeof(r);
	memcpy(body, data + at + sizeof(r), was);
	size = LLVMFuzzerMutate(body, was, was + 64 < 0xffff ? was + 64 : 0xffff);
	r.body = (uint16_t)size;
	memcpy(data + at, &r, sizeof(r));
	size = splice(data, n, most, at + sizeof(r), was, body, size);
	if (size == n && r.body != was) { /* no room */
		r.body = (uint16_t)was;
		memcpy(data + at, &r, sizeof(r));
	}
	return size;
}

static size_t mutate_once(
	uint8_t *data, size_t n, size_t most, size_t (*make)(uint8_t *out, size_t most))
{
	static uint8_t copy[1 << 17];
	size_t at[RECORDS_MAX + 1];
	unsigned count = find(data, n, at), one = record_random(count), other;

	if (!count || record_random(6) == 0) { /* another record */
		size_t size = make(copy, sizeof(copy));

		return splice(data, n, most, count ? at[record_random(count + 1)] : 0,
			count ? 0 : n, copy, size);
	}
	other = record_random(count);
	switch (record_random(8)) {
	case 0: /* one less */
		return splice(data, n, most, at[one], at[one + 1] - at[one], copy, 0);
	case 1: /* once more, there or elsewhere */
		if (at[one + 1] - at[one] > sizeof(copy))
			return n;
		memcpy(copy, data + at[one], at[one + 1] - at[one]);
		return splice(data, n, most, at[other], 0, copy, at[one + 1] - at[one]);
	case 2: set_head(data + at[one]); return n;
	case 3: return mutate_body(data, n, most, at[one], at[one + 1]);
	default: set_field(data + at[one], at[one + 1] - at[one]); return n;
	}
}

size_t record_mutate(uint8_t *data, size_t n, size_t most, unsigned seed,
	size_t (*make)(uint8_t *out, size_t most))
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	if (!LLVMFuzzerMutate)
		return n;
	if (record_random(20) == 0)
		return LLVMFuzzerMutate(data, n, most);
	for (unsigned times = 1 + record_random(4); times; times--)
		n = mutate_once(data, n, most, make);
	return n;
}

/* Some of a, some of b behind it, and what is left of a. */
size_t record_cross(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t *out,
	size_t most, unsigned seed)
{
	size_t in_a[RECORDS_MAX + 1], in_b[RECORDS_MAX + 1], n, part;
	unsigned count_a = find(a, an, in_a), count_b = find(b, bn, in_b), from, to;

	state = seed * 0x9e3779b97f4a7c15ull + 1;
	n = in_a[record_random(count_a + 1)];
	from = record_random(count_b + 1);
	to = from + record_random(count_b - from + 1);
	part = in_b[to] - in_b[from];
	if (n + part > most)
		return 0;
	memcpy(out, a, n);
	memcpy(out + n, b + in_b[from], part);
	if (an <= most - part) {
		memcpy(out + n + part, a + n, an - n);
		return an + part;
	}
	return n + part;
}
