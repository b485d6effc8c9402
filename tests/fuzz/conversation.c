/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/conversation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t an, const uint8_t *b, size_t bn,
	uint8_t *out, size_t most, unsigned seed);

void must(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	abort();
}

void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void descriptors_made(int fds[2], unsigned count)
{
	for (unsigned i = 0; i < 2; i++)
		fds[i] = i < count ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	return record_mutate(data, n, most, seed, make_record);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t an, const uint8_t *b, size_t bn,
	uint8_t *out, size_t most, unsigned seed)
{
	return record_cross(a, an, b, bn, out, most, seed);
}
