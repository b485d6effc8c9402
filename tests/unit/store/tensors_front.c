/* SPDX-License-Identifier: Apache-2.0
 *
 * The front joins a store: all its sessions are told, however little the connection takes at
 * once, and none that has ended.  What the store says to a session comes in its order, however
 * slowly that reads.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"
#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/tensor/fallen.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tensor/tensor_socket.h"
#include "gpu-agent/front/tensor/tensor_outbound.h"
#include "gpu-agent/front/tensor/tensors.h"

#define SESSIONS 2000u

static struct front front;
static struct agent_config config;
static int store = -1;

/* ---- what is not asked for here ---- */

/* No copies are made here, and no GPU falls. */
void tensor_copy_fetch(struct front *f, const struct tensor_message *m, int memory)
{
	(void)f;
	(void)m;
	if (memory >= 0)
		close(memory);
}

void tensor_copy_source(struct front *f, const struct tensor_message *m, int memory)
{
	tensor_copy_fetch(f, m, memory);
}

void tensor_copy_redeemed(struct front *f, const struct tensor_message *m, int memory)
{
	tensor_copy_fetch(f, m, memory);
}

void tensor_copy_store_gone(struct front *f)
{
	(void)f;
}

void fallen_tell(struct front *f)
{
	(void)f;
}

void pool_fault(struct front *f, struct pool_worker *worker, const char *why)
{
	(void)f;
	(void)worker;
	fail_msg("%s", why);
}

void session_set_end(struct session *session, uint32_t status, const char *text)
{
	(void)session;
	(void)status;
	(void)text;
}

uint32_t quota_gpu(const struct front *f, const struct session *session, uint32_t index)
{
	(void)f;
	(void)session;
	(void)index;
	return UINT32_MAX;
}

uint64_t ledger_free(const struct ledger *ledger, uint32_t index)
{
	(void)ledger;
	(void)index;
	return 0;
}

void ledger_store(struct ledger *ledger, uint32_t index, uint64_t bytes)
{
	(void)ledger;
	(void)index;
	(void)bytes;
}

bool tensor_socket_follows(struct front *f, uint64_t session)
{
	(void)f;
	(void)session;
	return false;
}

int tensor_socket_tell(
	struct front *f, uint64_t session, const struct tensor_message *message, int fd)
{
	(void)f;
	(void)session;
	(void)message;
	(void)fd;
	return -ENOENT;
}

/* One process of the node is there. */
uint64_t tensor_socket_session(const struct front *f, uint32_t index)
{
	(void)f;
	return index == 7 ? SESSIONS + 1 : 0;
}

/* ---- the store's end ---- */

static uint64_t told[SESSIONS + 1];
static uint32_t told_count;
static bool whole;

/* As much as there is, a few messages: it is slow. */
static void store_reads(int most)
{
	struct tensor_message m;
	int none;

	while (most-- && descriptors_receive(store, &m, sizeof(m), &none, 0, MSG_DONTWAIT) ==
				 (ssize_t)sizeof(m)) {
		if (m.what == TENSOR_SESSIONS) {
			told_count = 0;
			whole = false;
		} else if (m.what == TENSOR_SESSION) {
			assert_true(told_count <= SESSIONS);
			told[told_count++] = m.session;
		} else if (m.what == TENSOR_END) {
			whole = true;
		} else if (m.what == TENSOR_OVER) {
			for (uint32_t i = 0; i < told_count; i++)
				if (told[i] == m.session)
					told[i--] = told[--told_count];
		}
	}
}

static void join(void)
{
	struct tensor_message ready = {.version = TENSOR_VERSION, .what = TENSOR_READY};
	struct error error = {0};
	int pair[2], few = 16384, table = memfd_create("table", MFD_CLOEXEC);

	assert_int_equal(ftruncate(table, sizeof(struct tensor_table)), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	memset(&front, 0, sizeof(front));
	assert_int_equal(events_open(&front.events, &front, &error), 0);
	front.config = &config;
	front.tensors.store.fd = -1;
	config.max_sessions = SESSIONS;
	front.sessions = calloc(SESSIONS, sizeof(*front.sessions));
	assert_non_null(front.sessions);
	for (uint32_t i = 0; i < SESSIONS; i++) {
		front.sessions[i].state = i % 5 ? SESSION_RUNNING : SESSION_FREE;
		front.sessions[i].number = i + 1;
	}
	store = pair[1];
	whole = false;
	told_count = 0;
	tensors_store(&front, pair[0]);
	assert_int_equal(
		descriptors_send(store, &ready, sizeof(ready), &table, 1, MSG_DONTWAIT), 0);
	close(table);
	events_turn(&front.events, 0);
}

static void end(void)
{
	tensors_store(&front, -1);
	munmap((void *)(uintptr_t)front.tensors.table, sizeof(struct tensor_table));
	close(front.events.epoll);
	close(store);
	free(front.sessions);
}

/* Until the store knows all, as the front's loop goes on. */
static void go_on(void)
{
	uint64_t until = wait_now() + 20000000000u;

	while (!whole || !front.tensors.ready) {
		assert_true(wait_now() < until);
		store_reads(7);
		tensors_tick(&front, wait_now());
	}
}

static void all_are_told_a_few_at_a_time(void **state)
{
	(void)state;
	join();
	assert_false(front.tensors.ready);
	go_on();
	assert_int_equal(told_count, SESSIONS - SESSIONS / 5 + 1);
	for (uint32_t i = 0; i < told_count; i++)
		assert_true(told[i] % 5 != 1 || told[i] == SESSIONS + 1);
	end();
}

static void one_that_ends_meanwhile_is_not_left(void **state)
{
	(void)state;
	join();
	assert_false(front.tensors.ready);
	store_reads(3);
	tensors_session_over(&front, &front.sessions[1]);
	front.sessions[1].state = SESSION_FREE;
	go_on();
	tensors_session_over(&front, &front.sessions[2]);
	front.sessions[2].state = SESSION_FREE;
	store_reads(7);
	assert_int_equal(told_count, SESSIONS - SESSIONS / 5 - 1);
	for (uint32_t i = 0; i < told_count; i++)
		assert_true(told[i] != 2 && told[i] != 3);
	end();
}

static void words_for_one_that_reads_slowly_keep_their_order(void **state)
{
	struct tensor_message m = {.version = TENSOR_VERSION, .what = TENSOR_READ_ONLY};
	struct pool_worker worker = {.pid = 7};
	uint64_t until = wait_now() + 20000000000u, next = 0;
	int pair[2], few = 16384, fd;

	(void)state;
	join();
	go_on();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	worker.handoff.fd = pair[0];
	worker.session = &front.sessions[1];
	front.pool.workers = &worker;
	front.pool.room = 1;
	m.session = front.sessions[1].number;
	for (m.tag = 0; m.tag < 500; m.tag++) {
		/* Every seventh is an answer that brings a descriptor. */
		tensor_outbound_send(&front, &m, m.tag % 7 ? -1 : 0);
		if (m.tag % 2)
			continue;
		m.session++; /* to nobody */
		tensor_outbound_send(&front, &m, -1);
		m.session--;
	}
	while (next < 500) {
		ssize_t n = descriptors_receive(pair[1], &m, sizeof(m), &fd, 1, MSG_DONTWAIT);

		assert_true(wait_now() < until);
		if (n == -EAGAIN) {
			assert_true(tensor_outbound_tick(&front, wait_now()) || next == 500);
			continue;
		}
		assert_int_equal(n, sizeof(m));
		assert_int_equal(m.tag, next);
		assert_int_equal(fd >= 0, next % 7 == 0);
		if (fd >= 0)
			close(fd);
		next++;
	}
	assert_null(front.tensors.outbound);
	for (int i = 0; i < 100; i++)
		tensor_outbound_send(&front, &m, 0);
	assert_non_null(front.tensors.outbound);
	tensor_outbound_over(&front, m.session);
	assert_null(front.tensors.outbound);
	close(pair[0]);
	close(pair[1]);
	front.pool.room = 0;
	end();
}

static void who_does_not_read_may_not_ask_for_ever(void **state)
{
	struct tensor_message m = {.version = TENSOR_VERSION, .what = TENSOR_STAT};
	struct pool_worker worker = {.pid = 7};
	int pair[2], few = 16384, asked = 0;

	(void)state;
	join();
	go_on();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	worker.handoff.fd = pair[0];
	worker.session = &front.sessions[1];
	front.pool.workers = &worker;
	front.pool.room = 1;
	front.ledger.device_count = 1;
	m.session = front.sessions[1].number;
	/* There is no store by the configuration, so each is answered at once. */
	while (tensors_ask_for(&front, &m, 10))
		assert_true(++asked < 100);
	assert_true(asked >= 10);
	assert_int_equal(tensor_outbound_answers(&front, m.session), 10);
	/* Nor for a GPU that the agent does not have, which the front itself refuses. */
	m.what = TENSOR_TAKE;
	m.gpu[0] = 0xee;
	assert_false(tensors_ask_for(&front, &m, 10));
	assert_int_equal(tensor_outbound_answers(&front, m.session), 10);
	close(pair[0]);
	close(pair[1]);
	tensors_session_over(&front, &front.sessions[1]);
	assert_null(front.tensors.outbound);
	front.pool.room = 0;
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_told_a_few_at_a_time),
		cmocka_unit_test(one_that_ends_meanwhile_is_not_left),
		cmocka_unit_test(words_for_one_that_reads_slowly_keep_their_order),
		cmocka_unit_test(who_does_not_read_may_not_ask_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
