/* SPDX-License-Identifier: Apache-2.0
 *
 * The front's event loop: who is served in a turn in which others come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/wait.h"
#include "gpu-agent/front/events.h"

static struct events events;
static struct watch one, two;
static int served, pipes[3][2];

static void end_the_other(struct watch *watch, uint32_t mask)
{
	struct watch *other = watch == &one ? &two : &one;

	(void)mask;
	served++;
	events_forget(&events, other);
	events_forget(&events, watch);
}

/* As a session's place that is taken anew: nothing has come in the third pipe. */
static void replace_the_other(struct watch *watch, uint32_t mask)
{
	struct watch *other = watch == &one ? &two : &one;

	(void)mask;
	served++;
	events_forget(&events, other);
	assert_int_equal(
		events_watch(&events, other, pipes[2][0], EPOLLIN, replace_the_other), 0);
}

static int begin(void **state)
{
	struct error error;

	(void)state;
	served = 0;
	if (events_open(&events, &events, &error))
		return -1;
	for (int i = 0; i < 3; i++)
		if (pipe(pipes[i]))
			return -1;
	return write(pipes[0][1], "x", 1) == 1 && write(pipes[1][1], "x", 1) == 1 ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	close(events.epoll);
	return 0;
}

static void turn_with(void (*ready)(struct watch *watch, uint32_t mask))
{
	assert_int_equal(events_watch(&events, &one, pipes[0][0], EPOLLIN, ready), 0);
	assert_int_equal(events_watch(&events, &two, pipes[1][0], EPOLLIN, ready), 0);
	events_turn(&events, wait_now() + 1000000000u);
}

static void a_watch_that_is_forgotten_is_not_served(void **state)
{
	(void)state;
	turn_with(end_the_other);
	assert_int_equal(served, 1);
}

static void a_watch_that_is_set_anew_is_not_served_for_the_descriptor_before(void **state)
{
	(void)state;
	turn_with(replace_the_other);
	assert_int_equal(served, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_watch_that_is_forgotten_is_not_served, begin, end),
		cmocka_unit_test_setup_teardown(
			a_watch_that_is_set_anew_is_not_served_for_the_descriptor_before, begin,
			end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
