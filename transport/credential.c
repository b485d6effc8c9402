/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/credential.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"

#define LOOK_NS 1000000000ull
#define PATH_MOST 4096

/* All of it under `lock`. */
static struct {
	pthread_mutex_t lock;
	char path[PATH_MOST]; /* "": there is none */
	bool clear;
	struct stat seen;
	uint64_t looked_at;
	size_t n;
	char text[SESSION_CREDENTIAL_MAX];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a file holds, without the end of its line. */
static ssize_t read_text(const char *path, char text[SESSION_CREDENTIAL_MAX + 1],
	struct stat *seen, struct error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, seen))
		return error_set(error, errno, "%s", path);
	while (n > 0 && got <= SESSION_CREDENTIAL_MAX) {
		n = read(fd, text + got, SESSION_CREDENTIAL_MAX + 1 - got);
		if (n < 0)
			return error_set(error, errno, "%s", path);
		got += (size_t)n;
	}
	while (got && (text[got - 1] == '\n' || text[got - 1] == '\r'))
		got--;
	if (!got || got > SESSION_CREDENTIAL_MAX || memchr(text, 0, got))
		return error_set(error, 0, "%s must hold 1 to %d characters", path,
			SESSION_CREDENTIAL_MAX);
	return (ssize_t)got;
}

/* Under the lock. */
static ssize_t take(struct error *error)
{
	char text[SESSION_CREDENTIAL_MAX + 1];
	struct stat seen;
	ssize_t n = read_text(own.path, text, &seen, error);

	if (n > 0) {
		memcpy(own.text, text, (size_t)n);
		own.n = (size_t)n;
		own.seen = seen;
	}
	explicit_bzero(text, sizeof(text));
	return n;
}

int transport_credential(const char *path, bool clear, struct error *error)
{
	ssize_t n;

	if (strlen(path) >= PATH_MOST)
		return error_set(error, ENAMETOOLONG, "%.100s", path);
	pthread_mutex_lock(&own.lock);
	strcpy(own.path, path);
	own.clear = clear;
	n = take(error);
	if (n < 0)
		own.path[0] = 0;
	pthread_mutex_unlock(&own.lock);
	return n < 0 ? (int)n : 0;
}

static bool changed(void)
{
	struct stat st;

	return !stat(own.path, &st) &&
	       (st.st_dev != own.seen.st_dev || st.st_ino != own.seen.st_ino ||
		       st.st_size != own.seen.st_size ||
		       st.st_mtim.tv_sec != own.seen.st_mtim.tv_sec ||
		       st.st_mtim.tv_nsec != own.seen.st_mtim.tv_nsec);
}

/* Under the lock. One that does not fit is tried again: it may be written just now. */
static void look_again(void)
{
	uint64_t now = wait_now();
	struct error error;

	if (now - own.looked_at < LOOK_NS)
		return;
	own.looked_at = now;
	if (changed() && take(&error) < 0)
		log_warn("token.file", "text=\"%s; the former one stays in use\"", error.text);
}

ssize_t credential_get(const struct transport *transport, char text[SESSION_CREDENTIAL_MAX],
	struct error *error)
{
	ssize_t n = 0;

	pthread_mutex_lock(&own.lock);
	if (own.path[0] && transport_is_clear(transport) && !own.clear) {
		n = error_set(error, 0,
			"the ServiceAccount's token is not sent in the clear: use tls://, or "
			"say "
			"`insecure: true`");
	} else if (own.path[0]) {
		look_again();
		n = (ssize_t)own.n;
		memcpy(text, own.text, own.n);
	}
	pthread_mutex_unlock(&own.lock);
	return n;
}
