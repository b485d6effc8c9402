/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML reader: keys, lists and lines; each error names its line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config.h"

static char seen[2048];

static int note(void *argument, const struct config_item *item, struct error *error)
{
	size_t at = strlen(seen);

	(void)argument;
	if (!strcmp(item->text, "bad"))
		return error_set(error, 0, "%s: is bad", item->key);
	snprintf(seen + at, sizeof(seen) - at, "%u:%s[%d]=%s%s ", item->line, item->key,
		item->index, item->text, item->quoted ? "'" : "");
	return 0;
}

static int read_text(const char *text, struct error *error)
{
	seen[0] = 0;
	return config_read_bytes("f.yaml", text, strlen(text), note, NULL, error);
}

static void test_keys(void **state)
{
	struct error error = {0};

	(void)state;
	assert_int_equal(read_text("", &error), 0);
	assert_int_equal(read_text("# nothing\n", &error), 0);
	assert_string_equal(seen, "");
	assert_int_equal(
		read_text("a: 1\nports:\n  send: 2\n  deep: {x: y}\nlist: [p, 'q']\nz:\n"
			  "end: 4\n",
			&error),
		0);
	assert_string_equal(seen,
		"1:a[-1]=1 3:ports.send[-1]=2 4:ports.deep.x[-1]=y 5:list[0]=p "
		"5:list[1]=q' 6:z[-1]= 7:end[-1]=4 ");
	assert_int_equal(
		read_text(
			"n:\n- {a: 1, l: [p, q]}\n- x\n- a: {b: 2}\n  c: 3\nend: 4\n", &error),
		0);
	assert_string_equal(seen,
		"2:n[0].a[-1]=1 2:n[0].l[0]=p 2:n[0].l[1]=q 3:n[1]=x 4:n[2].a.b[-1]=2 "
		"5:n[2].c[-1]=3 6:end[-1]=4 ");
}

static void test_errors_name_the_line(void **state)
{
	const struct {
		const char *text, *error;
	} cases[] = {
		{"a: 1\nb: bad\n", "f.yaml:2: b: is bad"},
		{"a: [1,\n", "f.yaml:2: "},
		{"- a\n", "f.yaml:1: 'key: value' lines are expected, not a list"},
		{"word\n", "f.yaml:1: 'key: value' lines are expected"},
		{"a: &x 1\nb: *x\n", "f.yaml:2: aliases"},
		{"a: [[1]]\n", "f.yaml:1: only plain values may stand in a list"},
		{"? [a]\n: b\n", "f.yaml:1: a key must be plain text"},
		{"a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n",
			"f.yaml:1: nested too deeply"},
		{"a: \"x\\0y\"\n", "f.yaml:1: the value is too long or holds a NUL"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(read_text(cases[i].text, &error) < 0);
		if (strncmp(error.text, cases[i].error, strlen(cases[i].error)))
			fail_msg("'%s' is not '%s…'", error.text, cases[i].error);
	}
	assert_int_equal(config_read("/nonexistent/f", note, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "/nonexistent/f"));
	assert_int_equal(config_read("/", note, NULL, &error), -EISDIR);
}

static void test_values(void **state)
{
	struct config_item item = {.key = "k", .index = -1};
	struct error error;
	uint64_t n;
	char text[4];
	int b;

	(void)state;
	item.text = "12";
	assert_int_equal(config_number(&item, 0, 12, &n, &error), 0);
	assert_int_equal(n, 12);
	assert_int_equal(config_number(&item, 13, 20, &n, &error), -EINVAL);
	assert_non_null(strstr(error.text, "k: '12' is not a number from 13 to 20"));
	item.text = "4Mi";
	assert_int_equal(config_number(&item, 0, 100, &n, &error), -EINVAL);
	assert_int_equal(config_size(&item, 0, UINT64_MAX, &n, &error), 0);
	assert_int_equal(n, 4 << 20);
	item.text = "99999999999999999Gi";
	assert_int_equal(config_size(&item, 0, UINT64_MAX, &n, &error), -EINVAL);
	item.text = "-1";
	assert_int_equal(config_number(&item, 0, UINT64_MAX, &n, &error), -EINVAL);
	item.text = "on";
	assert_int_equal(config_bool(&item, &b, &error), 0);
	assert_int_equal(b, 1);
	item.text = "maybe";
	assert_int_equal(config_bool(&item, &b, &error), -EINVAL);
	item.text = "abc";
	assert_int_equal(config_text(&item, text, sizeof(text), &error), 0);
	item.text = "abcd";
	assert_int_equal(config_text(&item, text, sizeof(text), &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_errors_name_the_line),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
