/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that processes share, in a real worker, whose front and other process are the test: a
 * stream waits for what the other one recorded until that is done or the other one is gone,
 * what the driver may wait in is kept back meanwhile, boards that nothing uses make room for
 * others, and what comes in a board's place is none.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "gpu-agent/worker/driver/ipc/ipc_board.h"
#include "tests/unit/worker/board_page.h"
#include "tests/unit/worker/worker_peer.h"

#define THEIRS 9u   /* the other process's number on a board */
#define BOARDS 300u /* more than a worker has at once */

static struct peer peer, *p = &peer;
static uint64_t magic;

static uint64_t event_of(uint32_t index)
{
	return handle_make(1, KIND_CUevent, index);
}

static void make(uint64_t event)
{
	struct wire_vcudaEventCreate body = {.event = event, .flags = CU_EVENT_DISABLE_TIMING};

	send_post(p, OP_vcudaEventCreate, &body, sizeof(body));
}

static void destroy(uint64_t event)
{
	struct wire_vcudaEventDestroy body = {.event = event};

	send_post(p, OP_vcudaEventDestroy, &body, sizeof(body));
}

/* What the worker asks the front, and what came with it. */
static int asked(uint32_t what, struct handoff *h)
{
	int fd = -1;

	do
		assert_int_equal(
			descriptors_receive(p->handoff, h, sizeof(*h), &fd, 1, 0), sizeof(*h));
	while (h->what == HANDOFF_STATS);
	assert_int_equal(h->what, what);
	return fd;
}

static void answer(uint32_t what, const uint8_t name[16], int fd)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = what, .bytes = BOARD_BYTES};

	memcpy(h.session, name, 16);
	assert_int_equal(descriptors_send(p->handoff, &h, sizeof(h), &fd, fd >= 0, 0), 0);
}

static CUresult replied(void)
{
	struct frame_header h;
	bool lost;

	assert_int_equal(peer_reply(p, &h, &lost), 0);
	if (lost)
		fail_msg("the session is over: %.*s", (int)h.length, peer_body);
	return (CUresult)h.status;
}

static struct page *map(int fd)
{
	struct page *page = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

/* Shares the event; the board, with its descriptor and the event's place. */
static struct page *share(uint64_t event, int *board, uint32_t *number)
{
	static const uint8_t name[16] = "a name of sixtee";
	struct wire_vcudaEventShare body = {.event = event, .recorded = 1};
	struct wire_vcudaEventShare_reply *reply = (void *)peer_body;
	struct frame_header h = call_header(p, OP_vcudaEventShare, sizeof(body));
	struct handoff ask;
	struct page *page;

	peer_send(p, &h, &body);
	*board = asked(HANDOFF_SHARE, &ask);
	assert_int_equal(ask.bytes, BOARD_BYTES);
	page = map(*board);
	answer(HANDOFF_SHARED, name, -1);
	assert_int_equal(replied(), CUDA_SUCCESS);
	assert_memory_equal(peer_body + reply->name.offset, name, 16);
	*number = reply->number % BOARD_EVENTS;
	magic = page->magic;
	return page;
}

static CUresult with(uint16_t op, uint64_t event)
{
	struct wire_vcudaEventAwait body = {.event = event};

	return CALL_OF(op, body);
}

static CUresult query(uint64_t event)
{
	struct wire_vcudaQuery body = {.scope = SYNC_SHARED, .handle = event};

	return CALL_OF(OP_vcudaQuery, body);
}

static CUresult stream_query(void)
{
	struct wire_vcudaQuery body = {.scope = SYNC_STREAM};

	return CALL_OF(OP_vcudaQuery, body);
}

/* The other process: a lock on a byte, and words. */
static void lives(int board, bool alive)
{
	struct flock lock = {
		.l_type = alive ? F_WRLCK : F_UNLCK, .l_start = THEIRS, .l_len = 1};

	assert_int_equal(fcntl(board, F_SETLK, &lock), 0);
}

static void theirs(struct page *page, uint32_t number, uint64_t track, uint64_t recorded)
{
	page->tracks[track].claim = (uint64_t)THEIRS << BOARD_SHIFT | recorded;
	page->events[number].recording = track << BOARD_SHIFT | recorded;
}

static void streams_wait_for_the_other_process(void **state)
{
	const uint64_t event = event_of(3);
	struct wire_vcudaStreamCreate stream = {.stream = handle_make(1, KIND_CUstream, 4)};
	struct frame_header h;
	uint32_t number;
	struct page *page;
	int board;
	struct pollfd replies;

	(void)state;
	peer_start(p);
	replies = (struct pollfd){.fd = p->replies, .events = POLLIN};
	make(event);
	page = share(event, &board, &number);
	lives(board, true);
	assert_int_equal(query(event), CUDA_SUCCESS);
	/* What is recorded here is written there. */
	assert_int_equal(with(OP_vcudaEventRecord, event), CUDA_SUCCESS);
	expect_alive(p);
	assert_int_equal(page->events[number].recording, 1);
	assert_int_equal(page->tracks[0].done, 1);

	theirs(page, number, 7, 3);
	page->tracks[7].done = 2;
	assert_int_equal(query(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(with(OP_vcudaEventAwait, event), CUDA_SUCCESS);
	assert_int_equal(stream_query(), CUDA_ERROR_NOT_READY);
	/* Where the driver may wait for an idle GPU, the call does. */
	h = call_header(p, OP_vcudaStreamCreate, sizeof(stream));
	peer_send(p, &h, &stream);
	while (poll(&replies, 1, 200))
		assert_int_not_equal(next_frame(p, &h), FRAME_REPLY);
	__atomic_store_n(&page->tracks[7].done, 3, __ATOMIC_RELEASE);
	assert_int_equal(replied(), CUDA_SUCCESS);
	expect_alive(p);
	assert_int_equal(stream_query(), CUDA_SUCCESS);
	assert_int_equal(query(event), CUDA_SUCCESS);

	/* It is gone before it is done. */
	theirs(page, number, 7, 4);
	assert_int_equal(with(OP_vcudaEventAwait, event), CUDA_SUCCESS);
	assert_int_equal(stream_query(), CUDA_ERROR_NOT_READY);
	lives(board, false);
	expect_alive(p);
	assert_int_equal(page->tracks[7].done, 4);
	assert_int_equal(query(event), CUDA_SUCCESS);

	/* Lies. */
	page->events[number].recording = UINT64_MAX;
	assert_int_equal(with(OP_vcudaEventAwait, event), CUDA_SUCCESS);
	assert_int_equal(query(event), CUDA_SUCCESS);
	memset(page, 0xff, sizeof(*page));
	assert_int_equal(with(OP_vcudaEventAwait, event), CUDA_SUCCESS);
	assert_int_equal(with(OP_vcudaEventRecord, event), CUDA_SUCCESS);
	assert_int_equal(query(event), CUDA_SUCCESS);
	expect_alive(p);
	munmap(page, BOARD_BYTES);
	close(board);
	peer_stop(p);
}

/* Joins a board of the test's with that number as its name; FD < 0: the front has none. */
static CUresult join(uint64_t event, uint32_t name, int fd)
{
	struct {
		struct wire_vcudaEventJoin call;
		uint32_t name[4];
	} body = {.call = {.event = event, .name = {sizeof(body.call), 16}}, .name = {name}};
	struct frame_header h = call_header(p, OP_vcudaEventJoin, sizeof(body));
	struct handoff ask;
	struct pollfd ready[2] = {
		{.fd = p->replies, .events = POLLIN}, {.fd = p->handoff, .events = POLLIN}};

	peer_send(p, &h, &body);
	do {
		assert_true(poll(ready, 2, PATIENCE_MS) > 0);
		if (ready[1].revents)
			assert_int_equal(recv(p->handoff, &ask, sizeof(ask), 0), sizeof(ask));
		else if (next_frame(p, &h) == FRAME_REPLY)
			return (CUresult)h.status;
	} while (!ready[1].revents || ask.what == HANDOFF_STATS);
	assert_int_equal(ask.what, HANDOFF_WANT);
	assert_memory_equal(ask.session, body.name, 16);
	answer(HANDOFF_GIVEN, ask.session, fd);
	return replied();
}

static int board_made(bool sealed)
{
	int fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, BOARD_BYTES), 0);
	assert_int_equal(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	if (sealed)
		assert_int_equal(
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

static void boards_make_room_for_others(void **state)
{
	CUresult status = CUDA_SUCCESS;
	uint32_t in_use = 0;

	(void)state;
	peer_start(p);
	for (uint32_t i = 1; i <= BOARDS; i++) {
		int fd = board_made(true);

		make(event_of(i));
		assert_int_equal(join(event_of(i), i, fd), CUDA_SUCCESS);
		destroy(event_of(i));
		close(fd);
	}
	/* Those that are used stay. */
	for (uint32_t i = 1; i <= BOARDS && !status; i++) {
		int fd = board_made(true);

		make(event_of(BOARDS + i));
		status = join(event_of(BOARDS + i), BOARDS + i, fd);
		in_use += !status;
		close(fd);
	}
	assert_int_equal(status, CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(in_use > 100);
	/* One that is there already is not asked for. */
	make(event_of(1000));
	assert_int_equal(join(event_of(1000), BOARDS + 1, -1), CUDA_SUCCESS);
	peer_stop(p);
}

static void what_is_no_board(void **state)
{
	const uint64_t event = event_of(3);
	int fd = board_made(false), pair[2];

	(void)state;
	peer_start(p);
	make(event);
	assert_int_equal(join(event, 1, -1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(join(event, 2, fd), CUDA_ERROR_INVALID_VALUE);
	close(fd);
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(join(event, 3, pair[0]), CUDA_ERROR_INVALID_VALUE);
	close(pair[0]);
	close(pair[1]);
	/* An event of another number than is there, and handles that are none. */
	fd = board_made(true);
	assert_int_equal(with(OP_vcudaEventRecord, event), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(with(OP_vcudaEventAwait, event), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(query(event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(join(event_of(4), 4, fd), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(join(event, 4, fd), CUDA_SUCCESS);
	assert_int_equal(join(event, 4, fd), CUDA_ERROR_INVALID_VALUE);
	close(fd);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_wait_for_the_other_process),
		cmocka_unit_test(boards_make_room_for_others),
		cmocka_unit_test(what_is_no_board),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
