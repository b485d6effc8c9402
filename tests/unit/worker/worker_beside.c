/* SPDX-License-Identifier: Apache-2.0
 *
 * While a library prepares something for long (behind a gate: a plan of cuFFT, a graph of
 * cuDNN, sizes of cuSOLVER and cuSPARSE), the worker serves the session's other calls, and each
 * gets its answer.
 */
#include "protocol/generated/cufft_ops.h"
#include "protocol/generated/cusparse_ops.h"
#include "protocol/generated/cusparse_wire.h"
#include "protocol/libraries/cufft.h"
#include "tests/unit/worker/worker_beside.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Shared with the worker, whose calls of the C library these are too. */
static struct watched {
	_Atomic bool hold;	/* a thread of a job that wakes the loop waits … */
	_Atomic bool held;	/* … and says that it does, … */
	_Atomic bool woke;	/* … or did. */
	_Atomic unsigned ready; /* ppoll that found something, of its loop */
} *watched;

ssize_t write(int fd, const void *bytes, size_t n)
{
	bool late = watched && watched->hold && n == sizeof(uint64_t) && gettid() != getpid();
	ssize_t written;

	for (int i = 0; late && watched->hold && i < PATIENCE_MS; i++) {
		watched->held = true;
		usleep(1000);
	}
	written = syscall(SYS_write, fd, bytes, n);
	if (late)
		watched->woke = true;
	return written;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec){0};
	int found = (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, _NSIG / 8);

	if (watched && found > 0)
		watched->ready++;
	return found;
}

/* What ppoll is with _FORTIFY_SOURCE. */
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask, size_t bytes);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask, size_t bytes)
{
	(void)bytes;
	return ppoll(fds, n, timeout, mask);
}

static void wait_until(const _Atomic bool *flag)
{
	for (int i = 0; i < PATIENCE_MS && !*flag; i++)
		usleep(1000);
	assert_true(*flag);
}

static struct cufft_content content(int64_t n)
{
	return (struct cufft_content){.major = 12,
		.form = CUFFT_FORM_1D,
		.rank = 1,
		.n = {n},
		.in_type = CUFFT_C2C,
		.batch = 1};
}

static void ask(struct peer *p, uint16_t tag, int64_t n)
{
	struct wire_cufftXtGetSizeMany body = {.content = content(n)};
	struct frame_header h = call_header(p, OP_cufftXtGetSizeMany, sizeof(body));

	h.tag = tag;
	peer_send(p, &h, &body);
}

static void expect_size(struct peer *p, uint16_t tag)
{
	const struct wire_cufftXtGetSizeMany_reply *reply = (const void *)peer_body;
	struct frame_header h;
	bool lost;

	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.tag, tag);
	assert_int_equal(h.status, CUDA_SUCCESS);
	assert_int_equal(reply->plain.status, CUFFT_SUCCESS);
}

static void others_are_served_meanwhile(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 100);
	expect_alive(&p); /* its own answer comes first */
	expect_alive(&p);
	gate_open(1);
	expect_size(&p, 1);
	ask(&p, 2, 100); /* there is one now: no gate */
	expect_size(&p, 2);
	peer_stop(&p);
}

/* The answers of the calls FIRST to LAST, in whatever order, each once. */
static void expect_each_of(struct peer *p, unsigned first, unsigned last)
{
	uint32_t answered = 0;

	for (unsigned i = first; i <= last; i++) {
		struct frame_header h;
		bool lost;

		assert_int_equal(peer_reply(p, &h, &lost), 0);
		assert_int_equal(h.status, CUDA_SUCCESS);
		assert_in_range(h.tag, first, last);
		assert_false(answered & 1u << h.tag);
		answered |= 1u << h.tag;
	}
}

/* More than have a thread: those wait in the loop, and all are answered. */
static void many_are_all_answered(void **state)
{
	enum { MANY = 20 };
	struct peer p;

	(void)state;
	peer_start(&p);
	gate_open(MANY);
	for (uint16_t i = 0; i < MANY; i++)
		ask(&p, i, 200 + i);
	expect_each_of(&p, 0, MANY - 1);
	peer_stop(&p);
}

/* The loop sees by itself that the job has ended, before its thread wakes it. The wake that
 * comes then is heard once: the loop of a session without work sleeps. */
static void a_late_wake_is_heard_once(void **state)
{
	const struct wire_vcudaSync sync = {.scope = SYNC_CONTEXT};
	struct peer p;
	unsigned ready;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 600);
	expect_alive(&p);
	watched->hold = true;
	gate_open(1);
	wait_until(&watched->held);
	send_call(&p, OP_vcudaSync, 2, &sync, sizeof(sync));
	expect_each_of(&p, 1, 2);
	watched->hold = false;
	wait_until(&watched->woke);
	expect_alive(&p);
	ready = watched->ready;
	assert_int_not_equal(ready, 0); /* it is this ppoll that the loop calls */
	usleep(100000);
	assert_in_range(watched->ready - ready, 0, 20);
	peer_stop(&p);
}

/* Two of the same content at a time: one is kept, both are answered. */
static void two_alike_are_one(void **state)
{
	struct peer p;
	struct frame_header h;
	bool lost;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 300);
	ask(&p, 2, 300);
	expect_alive(&p);
	gate_open(2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(peer_reply(&p, &h, &lost), 0);
	ask(&p, 3, 300);
	expect_size(&p, 3);
	peer_stop(&p);
}

/* The client goes while a plan is made: the worker ends with it. */
static void a_client_that_goes_is_not_waited_for(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 400);
	expect_alive(&p);
	gate_open(1);
	peer_stop(&p);
}

/* --- calls that travel as items, and cuDNN's graphs -----------------------------------------
 */

static void ask_sparse(struct peer *p, uint16_t tag, uint64_t handle)
{
	LIBRARY_BODY(3, 2)
	body = {.head = {.state.handle = handle, .key_words = 3}, .key = {tag, tag, 0}};

	send_call(p, OP_cusparseXcsrsort_bufferSizeExt, tag, &body, sizeof(body));
}

static void every_library_prepares_beside_the_loop(void **state)
{
	uint64_t dnn, solver, sparse;
	struct peer p;

	(void)state;
	peer_start(&p);
	dnn = open_handle(&p, OP_cudnnCreate, KIND_cudnnHandle, 9, 1);
	solver = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 2);
	sparse = open_handle(&p, OP_cusparseCreate, KIND_cusparseHandle, 12, 3);
	for (uint16_t tag = 1; tag <= 3; tag++) {
		if (tag == 1)
			ask_dnn(&p, tag, dnn);
		else if (tag == 2)
			ask_solver(&p, tag, solver, 0);
		else
			ask_sparse(&p, tag, sparse);
		expect_alive(&p);
		expect_alive(&p);
		gate_open(1);
		/* A tensor of nothing but a name is no good, and that is an answer. */
		assert_int_equal(!!expect_answer(&p, tag), tag == 1);
	}
	peer_stop(&p);
}

/* One makes, the others wait for it and not for the loop. */
static void graphs_are_made_one_after_the_other(void **state)
{
	enum { MANY = 8 };
	uint64_t dnn;
	struct peer p;

	(void)state;
	peer_start(&p);
	dnn = open_handle(&p, OP_cudnnCreate, KIND_cudnnHandle, 9, 1);
	for (uint16_t i = 0; i < MANY; i++)
		ask_dnn(&p, i, dnn);
	expect_alive(&p);
	gate_open(MANY);
	expect_each_of(&p, 0, MANY - 1);
	peer_stop(&p);
}

/* Two threads of the program with one handle: the second waits for the first. */
static void a_handle_is_one_calls_at_a_time(void **state)
{
	struct peer p;
	uint64_t solver;

	(void)state;
	peer_start(&p);
	solver = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 1);
	ask_solver(&p, 1, solver, 0);
	ask_solver(&p, 2, solver, 0);
	gate_open(1);
	assert_int_equal(expect_answer(&p, 1), 0);
	gate_open(1);
	assert_int_equal(expect_answer(&p, 2), 0);
	peer_stop(&p);
}

/* The library waits for the GPU, which waits for a host function of the app, and for the
 * driver's lock waits who asks it anything: the function's end has to be heard all the same,
 * and what came meanwhile is done. */
static void a_library_waits_for_a_host_function(void **state)
{
	int fd = memfd_create("inside", 0), inside = 0;
	char number[16];
	struct peer p;

	(void)state;
	assert_int_equal(ftruncate(fd, sizeof(inside)), 0);
	snprintf(number, sizeof(number), "%d", fd);
	setenv("VCUDA_SOFTGPU_INSIDE", number, 1);
	peer_start(&p);
	begin_function(&p);
	ask(&p, 1, 500);
	for (int i = 0; i < PATIENCE_MS && !inside; i++) {
		usleep(1000);
		assert_int_equal(pread(fd, &inside, sizeof(inside), 0), sizeof(inside));
	}
	assert_int_equal(inside, 1);
	ask(&p, 2, 500); /* another thread's */
	usleep(50000);	 /* the loop has long looked at the stream */
	end_function(&p);
	expect_each_of(&p, 1, 2);
	expect_alive(&p);
	peer_stop(&p);
	unsetenv("VCUDA_SOFTGPU_INSIDE");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(others_are_served_meanwhile, gate_shut),
		cmocka_unit_test_setup(many_are_all_answered, gate_shut),
		cmocka_unit_test_setup(a_late_wake_is_heard_once, gate_shut),
		cmocka_unit_test_setup(two_alike_are_one, gate_shut),
		cmocka_unit_test_setup(a_client_that_goes_is_not_waited_for, gate_shut),
		cmocka_unit_test_setup(every_library_prepares_beside_the_loop, gate_shut),
		cmocka_unit_test_setup(graphs_are_made_one_after_the_other, gate_shut),
		cmocka_unit_test_setup(a_handle_is_one_calls_at_a_time, gate_shut),
		cmocka_unit_test(a_library_waits_for_a_host_function),
	};

	watched = mmap(NULL, sizeof(*watched), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watched == MAP_FAILED)
		return 1;
	return gate_make() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
