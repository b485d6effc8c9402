/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's libraries as workers open them: once for each major, the next major where only that
 * is there, and where none is, that too is found out once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/probe/library_search.h"

struct table {
	char path[64];
};

static struct agent_config config;
static unsigned opens;
static const char *there; /* the one name that can be opened */

static int fake_open(void *library, const char *path, struct error *error)
{
	struct table *table = library;

	opens++;
	if (!there || strcmp(path, there))
		return error_set(error, ENOENT, "no %s", path);
	snprintf(table->path, sizeof(table->path), "%s", path);
	return 0;
}

static const struct table *get(enum agent_library family, uint32_t major)
{
	return library_once(&config, family, major, fake_open, sizeof(struct table));
}

static void each_major_is_opened_once(void **state)
{
	const struct table *first;

	(void)state;
	opens = 0;
	there = "libcublas.so.13";
	first = get(LIBRARY_CUBLAS, 13);
	assert_non_null(first);
	assert_string_equal(first->path, there);
	assert_int_equal(opens, 1);
	assert_ptr_equal(get(LIBRARY_CUBLAS, 13), first);
	assert_int_equal(opens, 1);
}

static void the_next_major_serves(void **state)
{
	const struct table *older;

	(void)state;
	opens = 0;
	there = "libcublas.so.13";
	older = get(LIBRARY_CUBLAS, 12);
	assert_non_null(older);
	assert_string_equal(older->path, there);
	assert_int_equal(opens, 2); /* 12 was asked for first */
	assert_ptr_not_equal(older, get(LIBRARY_CUBLAS, 13));
	assert_int_equal(opens, 2);
}

static void what_is_missing_is_not_looked_for_again(void **state)
{
	(void)state;
	opens = 0;
	there = NULL;
	assert_null(get(LIBRARY_CUDNN, 8));
	assert_int_equal(opens, 2);
	there = "libcudnn.so.9";
	assert_null(get(LIBRARY_CUDNN, 8));
	assert_int_equal(opens, 2);
	/* Another major, another family: questions of their own. */
	assert_non_null(get(LIBRARY_CUDNN, 9));
	assert_int_equal(opens, 3);
}

/* A toolkit's, which no loader finds; but for no other library. */
static void cupti_is_looked_for_in_the_toolkit(void **state)
{
	const struct table *table;

	(void)state;
	there = "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13";
	table = get(LIBRARY_CUPTI, 13);
	assert_non_null(table);
	assert_string_equal(table->path, there);
	there = "/usr/local/cuda/lib64/libcupti.so.12";
	table = get(LIBRARY_CUPTI, 12);
	assert_non_null(table);
	assert_string_equal(table->path, there);
	there = "/usr/local/cuda/lib64/libcufft.so.12";
	assert_null(get(LIBRARY_CUFFT, 12));
}

static void other_majors_are_refused_unasked(void **state)
{
	(void)state;
	opens = 0;
	for (unsigned family = 0; family < AGENT_LIBRARIES; family++) {
		const struct library_family *f = library_family((enum agent_library)family);
		/* 0 is a major of its own: libcusparseLt.so.0. */
		const uint32_t wrong[] = {
			f->oldest ? 0 : 1, f->oldest - 1, f->newest + 1, UINT32_MAX};

		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			assert_false(library_serves((enum agent_library)family, wrong[i]));
			assert_null(get((enum agent_library)family, wrong[i]));
		}
	}
	assert_int_equal(opens, 0);
	for (unsigned family = 0; family < AGENT_LIBRARIES; family++) {
		const struct library_family *f = library_family((enum agent_library)family);

		assert_true(f->newest - f->oldest < LIBRARY_MAJORS);
		for (uint32_t major = f->oldest; major <= f->newest; major++)
			assert_true(library_serves((enum agent_library)family, major));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_major_is_opened_once),
		cmocka_unit_test(the_next_major_serves),
		cmocka_unit_test(what_is_missing_is_not_looked_for_again),
		cmocka_unit_test(cupti_is_looked_for_in_the_toolkit),
		cmocka_unit_test(other_majors_are_refused_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
