/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory by which workers share events: who is there and who is gone, whose places and
 * tracks are had again, and sessions that lie.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/worker/driver/ipc/ipc_board.h"
#include "gpu-agent/worker/worker_state.h"
#include "tests/unit/worker/board_page.h"

static struct worker_stream streams[BOARD_TRACKS + 1];

static CUresult registers(void *at, size_t bytes, unsigned flags)
{
	(void)at, (void)bytes, (void)flags;
	return CUDA_SUCCESS;
}

static CUresult forgets(void *at)
{
	(void)at;
	return CUDA_SUCCESS;
}

static CUresult tells(CUdeviceptr *address, void *at, unsigned flags)
{
	(void)flags;
	*address = (CUdeviceptr)(uintptr_t)at;
	return CUDA_SUCCESS;
}

static struct worker *w;

static int begin(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	w->current = CONTEXT_PRIMARY(0);
	w->cuda.cuMemHostRegister_v2 = registers;
	w->cuda.cuMemHostUnregister = forgets;
	w->cuda.cuMemHostGetDevicePointer = tells;
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(w);
	return 0;
}

static struct board *ours(void)
{
	struct board *b;

	assert_int_equal(board_new(w, 0, &b), 0);
	assert_int_equal(board_join(b), 0);
	assert_int_equal(b->session, 1);
	return b;
}

static struct page *page_of(const struct board *b)
{
	return (struct page *)b->page;
}

static uint64_t recorded(struct board *b, const struct worker_stream *stream)
{
	uint64_t recording;

	assert_int_equal(board_next(b, stream, &recording), 0);
	board_written(b, stream, recording);
	return recording;
}

/* As the device does it. */
static void writes(struct board *b, uint64_t recording)
{
	uint64_t *word;
	CUdeviceptr there = board_word(b, recording, &word);

	assert_int_equal(there, (CUdeviceptr)(uintptr_t)word);
	*word = recording & BOARD_NUMBERS;
}

/* Another process that has the board, and does THERE with it; it lives until it is killed. The
 * descriptor stays open here: closing one of the board's lets all locks of a process go. */
static pid_t another(const struct board *b, void (*there)(struct board *b))
{
	int ready[2], fd = dup(b->fd);
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct board *mine;

		if (!board_open(w, 0, &fd, &mine) && mine->session != 1) {
			there(mine);
			(void)!write(ready[1], "r", 1);
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void killed(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void record_and_publish(struct board *b)
{
	assert_true(board_event_get(b, BOARD_EVENTS)); /* the first one of place 0 */
	board_event_set(b, 0, recorded(b, &streams[0]));
}

static void who_is_gone_lets_go(void **state)
{
	struct board *b = ours();
	uint64_t recording, looked = 0;
	uint32_t number;
	pid_t pid;

	(void)state;
	assert_true(board_event_new(b, &number));
	assert_int_equal(board_event(b, number), 0);
	assert_true(board_done(b, 0, NULL)); /* never recorded */
	pid = another(b, record_and_publish);
	recording = board_event(b, number);
	assert_int_not_equal(recording, 0);
	assert_false(board_done(b, recording, NULL));
	killed(pid);
	assert_true(board_done(b, recording, &looked));
	/* The device's wait ends, too. */
	assert_true(page_of(b)->tracks[recording >> BOARD_SHIFT].done >=
		    (recording & BOARD_NUMBERS));
	/* The next one has its number, and nothing of what it left. */
	pid = another(b, record_and_publish);
	assert_int_equal(page_of(b)->events[0].sessions[0], 1 << 1 | 1 << 2);
	assert_true(board_done(b, recording, NULL));
	killed(pid);
	board_close(w, b);
}

static void nothing(struct board *b)
{
	(void)b;
}

static void whoever_comes_buries_who_had_its_number(void **state)
{
	struct board *b = ours();
	uint64_t recording;
	uint32_t number;
	pid_t pid;

	(void)state;
	assert_true(board_event_new(b, &number));
	pid = another(b, record_and_publish);
	recording = board_event(b, number);
	killed(pid);
	pid = another(b, nothing);
	assert_int_equal(page_of(b)->events[0].sessions[0], 1 << 1);
	assert_true(board_done(b, recording, NULL));
	killed(pid);
	board_close(w, b);
}

static void numbers_of_a_track_come_in_their_order(void **state)
{
	struct board *b = ours();
	uint64_t first = recorded(b, &streams[0]), other = recorded(b, &streams[1]),
		 second = recorded(b, &streams[0]);

	(void)state;
	assert_int_equal(second, first + 1);
	assert_int_not_equal(first >> BOARD_SHIFT, other >> BOARD_SHIFT);
	writes(b, first);
	assert_true(board_done(b, first, NULL));
	assert_false(board_done(b, second, NULL));
	assert_false(board_done(b, other, NULL));
	/* A stream that goes leaves its track: to the next one, if its work was done. */
	writes(b, other);
	board_stream_gone(b, &streams[1]);
	assert_int_equal(recorded(b, &streams[2]), other + 1);
	board_stream_gone(b, &streams[0]);
	assert_true(board_done(b, second, NULL));
	assert_int_not_equal(recorded(b, &streams[3]) >> BOARD_SHIFT, first >> BOARD_SHIFT);
	board_give_up(b);
	assert_true(board_done(b, other + 1, NULL));
	board_close(w, b);
}

static void take_tracks(struct board *b)
{
	for (size_t i = 0; i < BOARD_TRACKS; i++)
		(void)recorded(b, &streams[i]);
}

static void tracks_of_who_is_gone_come_back(void **state)
{
	struct board *b = ours();
	uint64_t recording;
	pid_t pid = another(b, take_tracks);

	(void)state;
	assert_int_equal(board_next(b, &streams[0], &recording), CUDA_ERROR_OUT_OF_MEMORY);
	killed(pid);
	for (size_t i = 0; i < BOARD_TRACKS; i++)
		assert_int_equal(recorded(b, &streams[i]) & BOARD_NUMBERS, 2);
	board_close(w, b);
}

static void have_all(struct board *b)
{
	for (uint32_t i = 0; i < BOARD_EVENTS; i++)
		(void)board_event_get(b, i + BOARD_EVENTS);
}

static void places_are_had_again(void **state)
{
	struct board *b = ours();
	uint32_t numbers[BOARD_EVENTS], number;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < BOARD_EVENTS; i++)
		assert_true(board_event_new(b, &numbers[i]));
	assert_false(board_event_new(b, &number));
	assert_true(board_event_get(b, numbers[7])); /* twice */
	board_event_put(b, numbers[7]);
	assert_false(board_event_new(b, &number));
	board_event_put(b, numbers[7]);
	/* Who comes late has it still, until another one is there. */
	assert_true(board_event_get(b, numbers[7]));
	board_event_put(b, numbers[7]);
	assert_true(board_event_new(b, &number));
	assert_int_equal(number, numbers[7] + BOARD_EVENTS);
	assert_false(board_event_get(b, numbers[7]));
	board_event_put(b, number);
	for (size_t i = 0; i < BOARD_EVENTS; i++)
		if (i != 7)
			board_event_put(b, numbers[i]);
	/* While another process has them they are not free. */
	pid = another(b, have_all);
	assert_true(board_event_new(b, &number));
	assert_int_equal(number % BOARD_EVENTS, 7);
	assert_false(board_event_new(b, &number));
	killed(pid);
	assert_true(board_event_new(b, &number));
	board_close(w, b);
}

static void lies(void **state)
{
	struct board *b = ours();
	struct page *page = page_of(b);
	uint64_t recording = recorded(b, &streams[0]), other;
	uint32_t number;

	(void)state;
	/* Tracks that are none, and tracks of nobody and of sessions that cannot be. */
	assert_true(board_done(b, (uint64_t)BOARD_TRACKS << BOARD_SHIFT | 1, NULL));
	assert_true(board_done(b, UINT64_MAX, NULL));
	assert_true(board_done(b, 5ull << BOARD_SHIFT | 1, NULL));
	page->tracks[6].claim = UINT64_MAX;
	assert_true(board_done(b, 6ull << BOARD_SHIFT | 1, NULL));
	page->tracks[7].claim = 128ull << BOARD_SHIFT;
	assert_true(board_done(b, 7ull << BOARD_SHIFT | 1, NULL));
	/* A track's number that leaves none above it. */
	for (size_t i = 0; i < BOARD_TRACKS; i++)
		page->tracks[i].done = UINT64_MAX;
	assert_int_equal(board_next(b, &streams[1], &other), CUDA_ERROR_OUT_OF_MEMORY);
	/* What is this session's own it knows by itself. */
	assert_int_equal(recorded(b, &streams[0]), recording + 1);
	memset(page->events, 0xff, sizeof(page->events));
	assert_false(board_event_new(b, &number));
	board_close(w, b);
}

/* Only what nobody can cut off, of the size and the kind. */
static void other_files(void **state)
{
	static const struct {
		size_t bytes;
		int seals;
		bool magic;
	} files[] = {
		{BOARD_BYTES, 0, true},
		{BOARD_BYTES, F_SEAL_SHRINK | F_SEAL_GROW, true},
		{BOARD_BYTES - 4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, true},
		{2 * BOARD_BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, true},
		{BOARD_BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, false},
	};
	struct board *b = ours(), *opened;
	uint64_t magic = page_of(b)->magic;
	int fd, pipes[2];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(fd, (off_t)files[i].bytes), 0);
		if (files[i].magic)
			assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
		assert_int_equal(fcntl(fd, F_ADD_SEALS, files[i].seals), 0);
		assert_int_equal(board_open(w, 0, &fd, &opened), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(close(fd), 0); /* it was not taken */
	}
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(board_open(w, 0, &pipes[0], &opened), CUDA_ERROR_INVALID_VALUE);
	close(pipes[0]);
	close(pipes[1]);
	board_close(w, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_gone_lets_go),
		cmocka_unit_test(whoever_comes_buries_who_had_its_number),
		cmocka_unit_test(numbers_of_a_track_come_in_their_order),
		cmocka_unit_test(tracks_of_who_is_gone_come_back),
		cmocka_unit_test(places_are_had_again),
		cmocka_unit_test(lies),
		cmocka_unit_test(other_files),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
