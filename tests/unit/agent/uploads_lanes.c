/* SPDX-License-Identifier: Apache-2.0
 *
 * What agent-uploads keeps, and what workers say to it: bytes are found under the name that
 * they have, and under no other one, whatever a worker says or changes meanwhile; namespaces
 * are apart, and none pushes another one below its equal share; never is more kept than was
 * allowed; nothing that a worker may say ends more than its own lane.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"
#include "gpu-agent/uploads/lanes.h"
#include "gpu-agent/worker/staging/uploads.h"
#include "transport/codec/name.h"

#define PIECES 4u
#define PATIENCE_MS 5000

struct world {
	struct payloads *cache;
	struct lanes *lanes;
	pthread_t thread;
	_Atomic bool over;
	uint64_t session;
	struct world *before;
};

/* The process that has them ends with them, so nothing frees them: for the leak sanitizer. */
static struct world *worlds;

/* As a worker has it. */
struct stripe {
	struct uploads_lane_end end;
	unsigned char *base;
	int memory;
};

static void *serve(void *argument)
{
	struct world *w = argument;

	while (!atomic_load(&w->over))
		lanes_serve(w->lanes);
	return NULL;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct error error;

	assert_non_null(w);
	w->before = worlds;
	worlds = w;
	w->cache = payloads_open(PIECES * FRAME_CHUNK + 1000, &error);
	assert_non_null(w->cache);
	w->lanes = lanes_new(w->cache, &error);
	assert_non_null(w->lanes);
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	atomic_store(&w->over, true);
	pthread_join(w->thread, NULL);
	return 0;
}

/* The worker's ends of a new lane. */
static void open_ends(struct world *w, const char *space, int ends[2])
{
	struct uploads_lane lane = {.version = UPLOADS_VERSION, .session = ++w->session};
	int ask[2], keep[2];

	snprintf(lane.space, sizeof(lane.space), "%s", space);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ask), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keep), 0);
	lanes_open(w->lanes, &lane, (int[]){ask[1], keep[1]});
	ends[0] = ask[0];
	ends[1] = keep[0];
}

static struct stripe open_stripe(struct world *w, const char *space)
{
	struct stripe s = {0};
	int ends[2];
	void *base;

	open_ends(w, space, ends);
	s.end.ask = ends[0];
	s.end.keep = ends[1];
	s.memory = uploads_memory(&base);
	assert_true(s.memory >= 0);
	s.base = base;
	uploads_begin(&s.end, s.memory);
	assert_true(s.end.began);
	return s;
}

static void close_stripe(struct stripe *s)
{
	uploads_end(&s->end);
	munmap(s->base, UPLOADS_MEMORY);
	close(s->memory);
}

static void fill(unsigned char *to, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		to[i] = (unsigned char)(seed >> 24);
	}
}

static struct session_name name_for(const struct stripe *s, uint32_t n, uint32_t seed)
{
	unsigned char *bytes = malloc(n);
	struct session_name name;

	fill(bytes, n, seed);
	name = name_of(s->end.seed, bytes, n);
	free(bytes);
	return name;
}

static void keep(struct stripe *s, uint32_t slot, uint32_t n, uint32_t seed)
{
	fill(s->base + slot * UPLOADS_SLOT_BYTES, n, seed);
	uploads_keep(&s->end, slot, n);
	uploads_drain(&s->end, slot);
}

static bool has(struct stripe *s, uint32_t n, uint32_t seed)
{
	const struct session_name name = name_for(s, n, seed);

	return uploads_ask(&s->end, &name, 1) == 1;
}

/* It was told of, and comes as it was. */
static void take(struct stripe *s, uint32_t n, uint32_t seed)
{
	const struct session_name name = name_for(s, n, seed);
	unsigned char *bytes = malloc(n);

	fill(bytes, n, seed);
	memset(s->base + 7 * UPLOADS_SLOT_BYTES, 0, n);
	assert_true(uploads_get(&s->end, &name, 7));
	assert_memory_equal(s->base + 7 * UPLOADS_SLOT_BYTES, bytes, n);
	free(bytes);
}

static void what_is_kept_is_found(void **state)
{
	struct stripe a = open_stripe(*state, "a"), b = open_stripe(*state, "a"),
		      other = open_stripe(*state, "b");
	struct session_name shorter;

	assert_false(has(&a, FRAME_CHUNK, 1));
	keep(&a, 0, FRAME_CHUNK, 1);
	keep(&a, 1, 1000, 2);
	/* What stands there now is another thing. */
	fill(a.base, FRAME_CHUNK, 3);
	assert_true(has(&b, FRAME_CHUNK, 1));
	take(&b, FRAME_CHUNK, 1);
	assert_true(has(&b, 1000, 2));
	take(&b, 1000, 2);
	assert_false(has(&b, FRAME_CHUNK, 3));
	shorter = name_for(&b, FRAME_CHUNK, 1);
	shorter.length--;
	assert_int_equal(uploads_ask(&b.end, &shorter, 1), 0);
	/* Another namespace has another seed, and nothing of this one under either name. */
	assert_int_not_equal(other.end.seed, a.end.seed);
	assert_int_equal(a.end.seed, b.end.seed);
	assert_false(has(&other, FRAME_CHUNK, 1));
	shorter = name_for(&a, FRAME_CHUNK, 1);
	assert_int_equal(uploads_ask(&other.end, &shorter, 1), 0);
	/* Nothing is given that was not told of, and once only. */
	assert_false(uploads_get(&b.end, &shorter, 0));
	close_stripe(&a);
	close_stripe(&b);
	close_stripe(&other);
}

static void the_least_used_goes(void **state)
{
	struct world *w = *state;
	struct stripe s = open_stripe(w, "a"), t = open_stripe(w, "b");
	struct uploads_counts counts;

	for (uint32_t i = 0; i < PIECES; i++)
		keep(&s, i, FRAME_CHUNK, 100 + i);
	assert_true(has(&s, FRAME_CHUNK, 100)); /* and is held */
	keep(&t, 0, FRAME_CHUNK, 200);
	keep(&t, 0, FRAME_CHUNK, 200); /* there already */
	assert_false(has(&s, FRAME_CHUNK, 101));
	for (uint32_t i = 0; i < 3 * PIECES; i++)
		keep(&t, 1, FRAME_CHUNK, 300 + i);
	payloads_counts(w->cache, &counts);
	assert_true(counts.bytes <= PIECES * FRAME_CHUNK);
	assert_true(counts.evictions >= 3 * PIECES);
	take(&s, FRAME_CHUNK, 100); /* however much came meanwhile */
	assert_true(has(&t, FRAME_CHUNK, 300 + 3 * PIECES - 1));
	/* All of it is held: nothing more is kept. */
	assert_true(has(&t, FRAME_CHUNK, 300 + 3 * PIECES - 2));
	assert_true(has(&s, FRAME_CHUNK, 103)); /* its share: two of four */
	assert_true(has(&s, FRAME_CHUNK, 100));
	keep(&s, 0, FRAME_CHUNK, 400);
	assert_false(has(&s, FRAME_CHUNK, 400));
	/* A stripe that ends gives back what it was told of. */
	close_stripe(&t);
	for (int i = 0; i < PATIENCE_MS && !has(&s, FRAME_CHUNK, 400); i++) {
		keep(&s, 0, FRAME_CHUNK, 400);
		usleep(1000);
	}
	take(&s, FRAME_CHUNK, 400);
	close_stripe(&s);
}

static void nobody_pushes_another_one_out(void **state)
{
	struct stripe a = open_stripe(*state, "a"), b = open_stripe(*state, "b");
	struct stripe c = open_stripe(*state, "c"), ask = open_stripe(*state, "a");

	/* Who is alone has all. */
	for (uint32_t i = 0; i < PIECES; i++)
		keep(&a, 0, FRAME_CHUNK, 100 + i);
	for (uint32_t i = 0; i < PIECES; i++)
		assert_true(has(&ask, FRAME_CHUNK, 100 + i));
	close_stripe(&ask);
	for (uint32_t i = 0; i < 5 * PIECES; i++)
		keep(&b, 0, FRAME_CHUNK, 200 + i);
	assert_false(has(&a, FRAME_CHUNK, 101)); /* what was above its share */
	for (uint32_t i = PIECES / 2; i < PIECES; i++) {
		assert_true(has(&a, FRAME_CHUNK, 100 + i));
		take(&a, FRAME_CHUNK, 100 + i);
	}
	/* Three now: at least one each, whoever comes last. */
	for (uint32_t i = 0; i < 5 * PIECES; i++)
		keep(&c, 0, FRAME_CHUNK, 300 + i);
	assert_true(has(&a, FRAME_CHUNK, 100 + PIECES - 1));
	assert_true(has(&b, FRAME_CHUNK, 200 + 5 * PIECES - 1));
	assert_true(has(&c, FRAME_CHUNK, 300 + 5 * PIECES - 1));
	close_stripe(&a);
	close_stripe(&b);
	close_stripe(&c);
}

static _Atomic bool scribbling;

static void *scribble(void *argument)
{
	unsigned char *to = argument, *one = malloc(FRAME_CHUNK), *two = malloc(FRAME_CHUNK);

	fill(one, FRAME_CHUNK, 1);
	fill(two, FRAME_CHUNK, 2);
	for (int i = 0; atomic_load(&scribbling); i++) {
		memcpy(to, i & 1 ? two : one, FRAME_CHUNK);
		usleep((unsigned)rand() % 300);
	}
	free(one);
	free(two);
	return NULL;
}

/* A worker that changes its memory while it is read: what is found has the name that it has. */
static void a_worker_that_lies(void **state)
{
	struct stripe liar = open_stripe(*state, "a"), s = open_stripe(*state, "a");
	pthread_t thread;
	int found = 0;

	atomic_store(&scribbling, true);
	assert_int_equal(pthread_create(&thread, NULL, scribble, liar.base), 0);
	for (int i = 0; i < 300; i++) {
		uploads_keep(&liar.end, 0, FRAME_CHUNK);
		uploads_drain(&liar.end, 0);
		for (uint32_t seed = 1; seed <= 2; seed++)
			if (has(&s, FRAME_CHUNK, seed)) {
				take(&s, FRAME_CHUNK, seed);
				found++;
			}
	}
	atomic_store(&scribbling, false);
	pthread_join(thread, NULL);
	assert_true(found > 0);
	close_stripe(&liar);
	close_stripe(&s);
}

/* The lane ends: the other side closes it. */
static void assert_over(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
}

static void say(struct world *w, int which, const void *bytes, size_t n, int fd)
{
	int ends[2];

	open_ends(w, "a", ends);
	assert_int_equal(descriptors_send(ends[which], bytes, n, &fd, fd >= 0, 0), 0);
	assert_over(ends[which]);
	close(ends[0]);
	close(ends[1]);
}

static int file_of(size_t n, unsigned flags)
{
	int fd = memfd_create("test", flags);

	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	return fd;
}

static void what_makes_no_sense(void **state)
{
	struct world *w = *state;
	const size_t head = offsetof(struct uploads_request, names);
	struct uploads_request r = {.what = UPLOADS_BEGIN};
	const int files[] = {-1, open("/dev/zero", O_RDWR), open("/proc/self/exe", O_RDONLY),
		file_of(UPLOADS_MEMORY - 1, 0), file_of(UPLOADS_MEMORY + 1, 0)};
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	say(w, 0, &r, head, pipes[0]);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		say(w, 0, &r, head, files[i]);
	say(w, 0, "x", 1, -1);
	say(w, 1, "x", 1, -1);
	say(w, 1, &r, head, file_of(UPLOADS_MEMORY, 0));
	for (uint32_t what = 0; what < 7; what++) {
		r.what = what;
		for (r.count = 0; r.count < 130; r.count += 13) {
			say(w, 1, &r, sizeof(r), -1);
			if (what != UPLOADS_ASK || r.count > SESSION_NAMES_ASK || !r.count)
				say(w, 0, &r, sizeof(r), -1);
		}
		r.count = 0;
	}
	/* Before there is memory. */
	r = (struct uploads_request){.what = UPLOADS_GET, .count = 1};
	say(w, 0, &r, sizeof(r), -1);
	r = (struct uploads_request){.what = UPLOADS_PUT, .length = 1};
	say(w, 1, &r, head, -1);
	assert_int_equal(close(pipes[0]) | close(pipes[1]), 0);
}

/* Slots and lengths that are none, with memory; and memory that goes away. */
static void what_lies_outside(void **state)
{
	static const struct {
		uint32_t slot, length;
	} bad[] = {{UPLOADS_SLOTS, 1}, {UINT32_MAX, 1}, {0, 0}, {0, FRAME_CHUNK + 1},
		{0, UINT32_MAX}};
	struct world *w = *state;
	struct stripe s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct uploads_request r = {
			.what = UPLOADS_PUT, .slot = bad[i].slot, .length = bad[i].length};

		s = open_stripe(w, "a");
		assert_true(
			send(s.end.keep, &r, offsetof(struct uploads_request, names), 0) > 0);
		assert_over(s.end.keep);
		close_stripe(&s);
	}
	s = open_stripe(w, "a");
	keep(&s, 0, FRAME_CHUNK, 77);
	assert_true(has(&s, FRAME_CHUNK, 77));
	assert_int_equal(ftruncate(s.memory, 0), 0);
	uploads_keep(&s.end, 1, FRAME_CHUNK);
	uploads_drain(&s.end, 1);
	assert_true(s.end.keep >= 0);
	assert_int_equal(ftruncate(s.memory, UPLOADS_MEMORY), 0);
	take(&s, FRAME_CHUNK, 77);
	close_stripe(&s);
	for (int i = 0; i < PATIENCE_MS && lanes_count(w->lanes); i++)
		usleep(1000);
	assert_int_equal(lanes_count(w->lanes), 0);
}

/* Requests of any numbers, on lanes with and without memory: what another stripe has is right.
 */
static void any_numbers(void **state)
{
	static const uint32_t numbers[] = {
		0, 1, 2, 7, 8, 63, 64, 65, 4096, FRAME_CHUNK, FRAME_CHUNK + 1, UINT32_MAX};
	const unsigned count = sizeof(numbers) / sizeof(numbers[0]);
	struct stripe s = open_stripe(*state, "a"), bad = {.memory = -1};
	struct uploads_answer answers[16];

	keep(&s, 0, FRAME_CHUNK, 9);
	for (int i = 0; i < 3000; i++) {
		struct uploads_request r = {.what = (uint32_t)rand() % 6,
			.slot = numbers[(unsigned)rand() % count],
			.length = numbers[(unsigned)rand() % count],
			.count = numbers[(unsigned)rand() % count]};
		size_t n = (unsigned)rand() % 4 ? offsetof(struct uploads_request, names) +
							  r.count % 65 * sizeof(r.names[0])
						: (unsigned)rand() % sizeof(r);
		int which = rand() % 2, fd;

		if (bad.memory < 0)
			bad = open_stripe(*state, "a");
		for (int j = 0; j < 4; j++)
			r.names[j] = name_of(bad.end.seed, numbers, (uint32_t)rand() % 48);
		fd = which ? bad.end.keep : bad.end.ask;
		if (send(fd, &r, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
			close_stripe(&bad);
			bad.memory = -1;
			continue;
		}
		(void)!recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
	}
	if (bad.memory >= 0)
		close_stripe(&bad);
	keep(&s, 0, FRAME_CHUNK, 10);
	assert_true(has(&s, FRAME_CHUNK, 10));
	take(&s, FRAME_CHUNK, 10);
	close_stripe(&s);
}

/* A stripe that is opened anew: the lane that it had is closed. */
static void one_lane_for_each_stripe(void **state)
{
	struct world *w = *state;
	int before[2], after[2];

	open_ends(w, "a", before);
	w->session--;
	open_ends(w, "a", after);
	assert_over(before[0]);
	assert_over(before[1]);
	for (int i = 0; i < 2; i++) {
		close(before[i]);
		close(after[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(the_least_used_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_pushes_another_one_out, setup, teardown),
		cmocka_unit_test_setup_teardown(a_worker_that_lies, setup, teardown),
		cmocka_unit_test_setup_teardown(what_makes_no_sense, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lies_outside, setup, teardown),
		cmocka_unit_test_setup_teardown(any_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(one_lane_for_each_stripe, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
