/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are asked for once: by whom they were given, and which stay when there are too
 * many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "shim/engine/cache.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/thread.h"

enum { MANY = 200000, USED = 100, OP = 7 };

_Thread_local struct thread thread_self;
unsigned shim_perf = ~0u;
static uint64_t asked;
static uint64_t answer;

const void *shim_wait(struct shim_call *call, size_t reply_bytes)
{
	assert_int_equal(reply_bytes, sizeof(answer));
	answer = ++asked;
	call->reply = (const unsigned char *)&answer;
	call->reply_bytes = sizeof(answer);
	return call->reply;
}

CUresult shim_post(struct shim_call *call)
{
	return call->status;
}

CUresult shim_end(struct shim_call *call)
{
	return call->status;
}

/* What the call with KEY says: the number of the question that was answered. */
static uint64_t ask(uint16_t context, uint64_t key)
{
	static unsigned char body[THREAD_SCRATCH];
	struct shim_call call = {
		.op = OP, .context = context, .body = body, .body_bytes = sizeof(key)};
	uint64_t got;

	memcpy(body, &key, sizeof(key));
	memcpy(&got, shim_wait_cached(&call, sizeof(got)), sizeof(got));
	return got;
}

static void each_agent_answers(void **state)
{
	static struct session one = {.index = 0}, two = {.index = 1};
	uint64_t first, second;

	(void)state;
	thread_self.session = &one;
	first = ask(1, 5);
	thread_self.session = &two;
	second = ask(1, 5);
	assert_int_not_equal(first, second);
	assert_int_equal(ask(1, 5), second);
	thread_self.session = &one;
	assert_int_equal(ask(1, 5), first);
	cache_drop(1);
	assert_int_not_equal(ask(1, 5), first);
}

static void what_is_used_stays(void **state)
{
	uint64_t kept[USED], before;

	(void)state;
	for (uint64_t i = 0; i < USED; i++)
		kept[i] = ask(1, i);
	before = asked;
	for (uint64_t i = 0; i < MANY; i++) {
		ask(1, USED + i);
		if (i % 1000 == 0)
			for (uint64_t k = 0; k < USED; k++)
				assert_int_equal(ask(1, k), kept[k]);
	}
	assert_int_equal(asked - before, MANY);
	ask(1, USED); /* the first of the many went long ago */
	assert_int_equal(asked - before, MANY + 1);
	ask(1, USED + MANY - 1); /* the last is there */
	assert_int_equal(asked - before, MANY + 1);
	shim_forget(OP);
	assert_int_not_equal(ask(1, 0), kept[0]);
	shim_forget(OP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_agent_answers),
		cmocka_unit_test(what_is_used_stays),
	};

	return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
