/* SPDX-License-Identifier: Apache-2.0
 *
 * Names: a resolver that asks only for what it is given (musl, where the name has enough dots)
 * finds a service all the same, and where nobody does the text says what was asked and what to
 * do. getaddrinfo is ours here (-Wl,--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/resolve.h"

static const char *known;    /* the one name there is */
static int otherwise;	     /* what any other gets */
static char asked[1024];     /* all of them, a comma behind each */
static struct addrinfo here; /* what is found */

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **list);

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **list)
{
	(void)service;
	(void)hints;
	strcat(strcat(asked, host), ",");
	*list = &here;
	return known && !strcmp(host, known) ? 0 : otherwise;
}

static char path[] = "/tmp/vcuda-resolve-XXXXXX";

static int start(void **state)
{
	FILE *file = fdopen(mkstemp(path), "w");

	(void)state;
	fputs("# a pod's\n"
	      "nameserver 10.96.0.10\n"
	      "search ns.svc.cluster.local svc.cluster.local cluster.local\n"
	      "options ndots:2\n",
		file);
	return fclose(file);
}

static int end(void **state)
{
	(void)state;
	return unlink(path);
}

static int resolve(const char *host, const char *there, int else_what, struct error *error)
{
	struct addrinfo hints = {0}, *list = NULL;

	known = there;
	otherwise = else_what;
	asked[0] = 0;
	return resolve_by(path, host, "9998", &hints, &list, error);
}

static void test_found_as_it_stands(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(resolve("agent", "agent", EAI_NONAME, &error), 0);
	assert_string_equal(asked, "agent,");
}

static void test_found_with_a_search_domain(void **state)
{
	struct error error;

	(void)state;
	assert_int_equal(resolve("vcuda-agent.vcuda.svc", "vcuda-agent.vcuda.svc.cluster.local",
				 EAI_NONAME, &error),
		0);
	assert_string_equal(asked,
		"vcuda-agent.vcuda.svc,vcuda-agent.vcuda.svc.ns.svc.cluster.local,"
		"vcuda-agent.vcuda.svc.svc.cluster.local,"
		"vcuda-agent.vcuda.svc.cluster.local,");
}

static void test_not_found(void **state)
{
	struct error error;

	(void)state;
	assert_true(resolve("vcuda-agent.vcuda.svc", NULL, EAI_NONAME, &error) < 0);
	assert_non_null(strstr(error.text, "agent vcuda-agent.vcuda.svc: no such name"));
	assert_non_null(
		strstr(error.text, "svc.cluster.local); with dnsPolicy Default or None"));
	assert_non_null(strstr(error.text, "Asked 10.96.0.10 for it and it with .ns.svc"));
}

static void test_a_whole_name_is_not_made_longer(void **state)
{
	struct error error;

	(void)state;
	assert_true(resolve("agent.example.", NULL, EAI_NONAME, &error) < 0);
	assert_string_equal(asked, "agent.example.,");
	assert_true(resolve("10.0.0.1", NULL, EAI_NONAME, &error) < 0);
	assert_string_equal(asked, "10.0.0.1,");
	assert_true(resolve("fd00::1", NULL, EAI_NONAME, &error) < 0);
	assert_string_equal(asked, "fd00::1,");
}

static void test_no_answer_is_no_refusal(void **state)
{
	struct error error;

	(void)state;
	assert_true(resolve("agent", NULL, EAI_AGAIN, &error) < 0);
	assert_string_equal(asked, "agent,");
	assert_non_null(strstr(error.text, "nameserver (10.96.0.10) does not answer"));
}

static void test_long_names_end(void **state)
{
	char host[300];
	struct error error;

	(void)state;
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = 0;
	assert_true(resolve(host, NULL, EAI_NONAME, &error) < 0);
	assert_non_null(strstr(error.text, "no such name"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_as_it_stands),
		cmocka_unit_test(test_found_with_a_search_domain),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_a_whole_name_is_not_made_longer),
		cmocka_unit_test(test_no_answer_is_no_refusal),
		cmocka_unit_test(test_long_names_end),
	};

	return cmocka_run_group_tests(tests, start, end);
}
