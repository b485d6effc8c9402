/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of what agent-uploads keeps is taken from the kernel before it is wanted, some way
 * ahead; what somebody has already is not touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "gpu-agent/uploads/payloads.h"

static bool resident(const unsigned char *at)
{
	unsigned char page = 0;

	assert_int_equal(mincore((void *)(uintptr_t)at, 1, &page), 0);
	return page & 1;
}

static void memory_is_taken_ahead(void **state)
{
	enum { AHEAD = 512, MORE = 96 };
	struct error error;
	struct payloads *cache = payloads_open((AHEAD + MORE) * (uint64_t)FRAME_CHUNK, &error);
	const char name[TENSOR_SPACE] = "red";
	uint32_t space, piece, prepared = 0;
	unsigned char *bytes;

	(void)state;
	assert_non_null(cache);
	space = payloads_enter(cache, name);
	piece = payloads_room(cache, space, &bytes);
	assert_int_equal(piece, 0);
	memset(bytes, 0xaa, FRAME_CHUNK);
	assert_false(resident(payloads_bytes(cache, AHEAD / 2)));
	while (payloads_prepare(cache))
		assert_true(++prepared <= AHEAD + 1);
	assert_int_equal(prepared, AHEAD + 1);
	assert_true(resident(payloads_bytes(cache, AHEAD / 2)));
	assert_true(resident(payloads_bytes(cache, AHEAD)));
	assert_false(resident(payloads_bytes(cache, AHEAD + MORE - 1)));
	for (uint32_t i = 0; i < FRAME_CHUNK; i++)
		assert_int_equal(bytes[i], 0xaa);
	payloads_discard(cache, piece);
	/* Who takes some is waited for. */
	for (uint32_t i = 1; i < AHEAD + MORE; i++)
		assert_int_equal(payloads_room(cache, space, &bytes), i);
	assert_true(payloads_prepare_wait(cache));
	while (payloads_prepare(cache))
		prepared++;
	assert_int_equal(prepared, AHEAD + MORE);
	assert_int_equal(payloads_room(cache, space, &bytes), 0);
	payloads_leave(cache, space);
	payloads_close(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_taken_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
