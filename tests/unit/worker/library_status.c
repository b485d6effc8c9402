/* SPDX-License-Identifier: Apache-2.0
 *
 * A library's status where a CUresult must carry it, because its call was posted: each number
 * of the stanza comes back as itself, what has none as a lost call, and never as success.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/libraries/plain.h"

/* As cublas.api, curand.api and cudnn.api have them. */
static const struct library_statuses many = {.handle = 1,
	.memory = 3,
	.lost = 13,
	.missing = 1,
	.invalid = 7,
	.unsupported = 15,
	.internal = 14,
	.architecture = 8,
	.mapping = 11};
static const struct library_statuses few = {
	.handle = 101, .memory = 102, .lost = 202, .missing = 203};
static const struct library_statuses ranges = {.handle = 2000,
	.memory = 4003,
	.lost = 5000,
	.missing = 1001,
	.null = 2002,
	.invalid = 2000,
	.unsupported = 3000,
	.internal = 4000};

static int posted(const struct library_statuses *s, int status)
{
	return library_status(s, library_result(s, status));
}

static void test_posted(void **state)
{
	static const int own[] = {0, 1, 3, 7, 8, 11, 13, 14, 15};

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal(posted(&many, own[i]), own[i]);
	assert_int_equal(posted(&many, 16), 13); /* CUBLAS_STATUS_LICENSE_ERROR */
	for (int status = 2000; status <= 5000; status += 1000)
		assert_int_equal(posted(&ranges, status), status);
	assert_int_equal(posted(&ranges, 1001), 1001);
	assert_int_equal(posted(&ranges, 4003), 4003);
	assert_int_equal(posted(&few, 0), 0);
	assert_int_equal(posted(&few, 102), 102);
	assert_int_equal(posted(&few, 203), 203);
	assert_int_equal(posted(&few, 999), 202);
}

/* A driver's error, whichever it is, is no success. */
static void test_never_success(void **state)
{
	(void)state;
	for (int status = 1; status < 1000; status++) {
		assert_int_not_equal(library_status(&many, (CUresult)status), 0);
		assert_int_not_equal(library_status(&few, (CUresult)status), 0);
		assert_int_not_equal(library_result(&many, status), CUDA_SUCCESS);
		assert_int_not_equal(library_result(&few, status), CUDA_SUCCESS);
	}
}

/* Without the context's own: whether that is lost is for the driver to say. */
static void test_nothing_sticky(void **state)
{
	(void)state;
	for (int status = 0; status < 1000; status++)
		assert_int_not_equal(library_result(&many, status), CUDA_ERROR_LAUNCH_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posted),
		cmocka_unit_test(test_never_success),
		cmocka_unit_test(test_nothing_sticky),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
