/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of the order of locks finds what it is for: a lock that is taken under one further
 * down, twice, without a rank, or released by who does not hold it; what is right passes.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/engine/lock.h"

static pthread_mutex_t upper = PTHREAD_MUTEX_INITIALIZER, lower = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t unknown = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t again = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(upper, upper, LOCK_INIT);
LOCK_RANK(lower, lower, LOCK_CACHE);
LOCK_RANK(again, again, LOCK_CACHE);

static void in_order(void)
{
	pthread_mutex_lock(&upper);
	pthread_mutex_lock(&lower);
	pthread_mutex_unlock(&upper);
	pthread_mutex_unlock(&lower);
	pthread_mutex_lock(&lower);
	pthread_mutex_unlock(&lower);
	pthread_mutex_lock(&upper);
	pthread_mutex_unlock(&upper);
}

static void against_the_order(void)
{
	pthread_mutex_lock(&lower);
	pthread_mutex_lock(&upper);
}

static void of_one_rank(void)
{
	pthread_mutex_lock(&lower);
	pthread_mutex_lock(&again);
}

static void without_a_rank(void)
{
	pthread_mutex_lock(&unknown);
}

static void not_held(void)
{
	pthread_mutex_unlock(&lower);
}

/* How a process ends in which FUNCTION runs: its signal, 0 for none. */
static int ends(void (*function)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		function();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void what_is_wrong_ends_the_process(void **state)
{
	(void)state;
	assert_int_equal(ends(against_the_order), SIGABRT);
	assert_int_equal(ends(of_one_rank), SIGABRT);
	assert_int_equal(ends(without_a_rank), SIGABRT);
	assert_int_equal(ends(not_held), SIGABRT);
}

static void what_is_right_passes(void **state)
{
	(void)state;
	assert_int_equal(ends(in_order), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_ends_the_process),
		cmocka_unit_test(what_is_right_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
