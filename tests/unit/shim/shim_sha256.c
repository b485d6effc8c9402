/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256: the examples of FIPS 180-4, and every length around the block's borders against
 * OpenSSL's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/sha.h>

#include "shim/engine/sha256.h"

static void test_known(void **state)
{
	static const uint8_t abc[32] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41,
		0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
		0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	uint8_t digest[32];

	(void)state;
	sha256("abc", 3, digest);
	assert_memory_equal(digest, abc, 32);
}

static void test_every_length(void **state)
{
	uint8_t bytes[4200], digest[32], want[32];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 >> 3);
	for (size_t n = 0; n < 300; n++) {
		sha256(bytes, n, digest);
		assert_memory_equal(digest, SHA256(bytes, n, want), 32);
	}
	/* Not aligned either. */
	sha256(bytes + 3, 4197, digest);
	assert_memory_equal(digest, SHA256(bytes + 3, 4197, want), 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
