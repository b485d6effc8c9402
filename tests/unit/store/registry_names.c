/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of tensors have one form, and what cannot be a name, a dtype or a shape is refused with
 * a sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/store/registry/registry.h"

static char out[REGISTRY_NAME + 1];
static struct error error;

static const char *named(const char *namespace, const char *name)
{
	return registry_name(out, namespace, name, &error) ? NULL : out;
}

static void refused(const char *namespace, const char *name, const char *why)
{
	memset(&error, 0, sizeof(error));
	assert_null(named(namespace, name));
	if (!strstr(error.text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, error.text);
}

static void test_one_form(void **state)
{
	char space[REGISTRY_NAMESPACE + 1];

	(void)state;
	assert_string_equal(named("default", "X"), "X");
	assert_string_equal(named("team", "default/X"), "X");
	assert_string_equal(named("default", "team/X"), "team/X");
	assert_string_equal(named("team", "X"), "team/X");
	assert_string_equal(named("team", "default/a/b"), "default/a/b");
	assert_string_equal(named("team", "cmd"), "team/cmd");
	assert_string_equal(named("default", "größe 漢字"), "größe 漢字");
	registry_namespace(space, "X");
	assert_string_equal(space, "default");
	registry_namespace(space, "default/a/b");
	assert_string_equal(space, "default");
	registry_namespace(space, "team/X");
	assert_string_equal(space, "team");
}

static void test_its_own_form_stays(void **state)
{
	static const char *const names[] = {"X", "team/X", "default/a/b", "team/a/b"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(named("default", names[i]), names[i]);
	/* In place, too. */
	strcpy(out, "default/X");
	assert_string_equal(named("other", out), "X");
}

static void test_bad_names(void **state)
{
	char text[REGISTRY_NAME + 2];

	(void)state;
	refused("default", "", "empty");
	refused("default", "a\nb", "control byte");
	refused("default", "a\x7f", "control byte");
	refused("default", "\xc2\x85", "control byte");	 /* NEL */
	refused("default", "\xc0\x80", "UTF-8");	 /* NUL in two bytes */
	refused("default", "\xed\xa0\x80", "UTF-8");	 /* a surrogate */
	refused("default", "\xf5\x80\x80\x80", "UTF-8"); /* above 10ffff */
	refused("default", "\xe6\xbc", "UTF-8");
	refused("default", "cmd", "list of commands");
	refused("x", "default/cmd", "list of commands");
	refused("default", "/x", "namespace");
	refused("default", "a b/x", "namespace");
	refused("default", "größe/x", "namespace");
	refused("default", "team/", "no name");
	memset(text, 'a', sizeof(text) - 1);
	text[REGISTRY_NAME] = 0;
	assert_non_null(named("default", text));
	refused("team", text, "more than 256");
	text[REGISTRY_NAME] = 'a';
	text[REGISTRY_NAME + 1] = 0;
	refused("default", text, "more than 256");
}

static void test_bytes(void **state)
{
	const uint64_t shape[REGISTRY_DIMENSIONS + 1] = {2, 3}, zero[] = {2, 0},
						   most[] = {1ull << 50},
						   over[] = {1ull << 50, 2},
						   wraps[] = {1ull << 32, 1ull << 32};
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(registry_bytes("f32", shape, 2, &bytes, &error), 0);
	assert_int_equal(bytes, 24);
	assert_int_equal(registry_bytes("bf16", shape, 0, &bytes, &error), 0);
	assert_int_equal(bytes, 2);
	assert_int_equal(registry_bytes("u8", most, 1, &bytes, &error), 0);
	assert_int_equal(bytes, REGISTRY_BYTES_MAX);
	assert_true(registry_bytes("u8", over, 2, &bytes, &error) < 0);
	assert_true(registry_bytes("f64", most, 1, &bytes, &error) < 0);
	assert_true(registry_bytes("u8", wraps, 2, &bytes, &error) < 0);
	assert_true(registry_bytes("f32", zero, 2, &bytes, &error) < 0);
	assert_true(registry_bytes("f31", shape, 2, &bytes, &error) < 0);
	assert_true(registry_bytes("f32", shape, REGISTRY_DIMENSIONS + 1, &bytes, &error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_form),
		cmocka_unit_test(test_its_own_form_stays),
		cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests_name("registry_names", tests, NULL, NULL);
}
