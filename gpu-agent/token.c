/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/cleanup.h"

int token_read(char token[AGENT_TOKEN_MAX + 1], const char *path, struct error *error)
{
	char text[AGENT_TOKEN_MAX + 2] = "";
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return error_set(error, errno, "token_file: %s", path);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return error_set(error, errno, "token_file: %s", path);
	text[n] = 0;
	text[strcspn(text, "\r\n")] = 0;
	if (!text[0])
		return error_set(error, 0, "token_file: %s: the first line is empty", path);
	if (strlen(text) > AGENT_TOKEN_MAX)
		return error_set(error, 0, "token_file: %s: longer than %d bytes", path,
			AGENT_TOKEN_MAX);
	memset(token, 0, AGENT_TOKEN_MAX + 1);
	memcpy(token, text, strlen(text));
	OPENSSL_cleanse(text, sizeof(text));
	return 0;
}

bool token_matches(
	const char token[AGENT_TOKEN_MAX + 1], const char offered[AGENT_TOKEN_MAX + 1])
{
	/* What stands behind the peer's NUL is no part of the token. */
	char padded[AGENT_TOKEN_MAX + 1] = {0};
	unsigned char open = 1;
	bool same;

	for (size_t i = 0; i < AGENT_TOKEN_MAX; i++) {
		open = (unsigned char)(open & (offered[i] != 0));
		padded[i] = (char)(offered[i] & -(int)open);
	}
	same = token_same(token, padded, sizeof(padded));
	return same || !token[0];
}

bool token_same(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

int token_random(void *out, size_t n, struct error *error)
{
	if (getrandom(out, n, 0) != (ssize_t)n)
		return error_set(error, errno, "getrandom");
	return 0;
}
