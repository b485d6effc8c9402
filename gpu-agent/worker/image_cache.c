/* SPDX-License-Identifier: Apache-2.0
 *
 * Module images by their SHA-256, on disk: the second start of a program sends none.  A file is
 * believed only if its bytes have the digest that names it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/folder.h"
#include "common/log.h"
#include "gpu-agent/worker/image_cache.h"
#include "gpu-agent/worker/worker_state.h"

/* A file that was not written for so long will not be finished. */
#define PART_SECONDS 60

static void cache_path(char path[4096], const char *folder, const uint8_t digest[32])
{
	char hex[65];

	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(path, 4096, "%s/%s", folder, hex);
}

unsigned char *cache_read(const char *folder, const uint8_t digest[32], uint64_t size)
{
	char path[4096];
	unsigned char found[32];
	unsigned char *bytes;
	cleanup_close int fd = -1;
	struct stat st;
	uint64_t at = 0;

	cache_path(path, folder, digest);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) || (uint64_t)st.st_size != size)
		return NULL;
	bytes = malloc(size + 1);
	if (!bytes)
		return NULL;
	while (at < size) {
		ssize_t n = read(fd, bytes + at, size - at);

		if (n <= 0)
			break;
		at += (uint64_t)n;
	}
	if (at < size || memcmp(SHA256(bytes, size, found), digest, 32)) {
		log_warn("cache.drop", "path=%s reason=\"its bytes do not have its digest\"",
			path);
		unlink(path);
		free(bytes);
		return NULL;
	}
	bytes[size] = 0;
	futimens(fd, NULL); /* used now: the oldest go first */
	return bytes;
}

/* Removes the files that were used longest ago until `need` more bytes fit below the limit.
 * What a worker that was killed had half written counts too. */
static void cache_trim(const char *folder, uint64_t need, uint64_t limit)
{
	for (;;) {
		DIR *dir = opendir(folder);
		char oldest[256] = "";
		struct timespec when = {0};
		uint64_t total = need;
		struct dirent *entry;
		struct stat st;

		if (!dir)
			return;
		while ((entry = readdir(dir))) {
			if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
				fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
				!S_ISREG(st.st_mode))
				continue;
			total += (uint64_t)st.st_size;
			if (entry->d_name[0] == '.' &&
				st.st_mtim.tv_sec > time(NULL) - PART_SECONDS)
				continue; /* somebody may be writing it */
			if (!oldest[0] || st.st_mtim.tv_sec < when.tv_sec ||
				(st.st_mtim.tv_sec == when.tv_sec &&
					st.st_mtim.tv_nsec < when.tv_nsec)) {
				when = st.st_mtim;
				snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
			}
		}
		if (total > limit && oldest[0])
			unlinkat(dirfd(dir), oldest, 0);
		closedir(dir);
		if (total <= limit || !oldest[0])
			return;
	}
}

void cache_write(const char *folder, const uint8_t digest[32], const void *bytes, uint64_t size,
	uint64_t limit)
{
	char path[4096], part[4096 + 32];
	cleanup_close int fd = -1;
	uint64_t at = 0;

	if (size > limit || folder_make(folder))
		return;
	cache_trim(folder, size, limit);
	cache_path(path, folder, digest);
	/* A number of a process may be another one's too, in another container. */
	snprintf(part, sizeof(part), "%s/.XXXXXX.part", folder);
	fd = mkostemps(part, 5, O_CLOEXEC);
	if (fd < 0)
		return;
	while (at < size) {
		ssize_t n = write(fd, (const char *)bytes + at, size - at);

		if (n <= 0)
			break;
		at += (uint64_t)n;
	}
	if (at < size || rename(part, path)) {
		log_warn("cache.write", "path=%s error=\"%s\"", path, strerror(errno));
		unlink(part);
	}
}
