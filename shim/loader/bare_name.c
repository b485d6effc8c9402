/* SPDX-License-Identifier: Apache-2.0
 *
 * glibc tells the folders that it looks into (RTLD_DI_SERINFO), and what is in its cache by the
 * file alone: a head, entries of a fixed size, and the strings behind them.
 */
#include "shim/loader/bare_name.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_FILE "/etc/ld.so.cache"

/* Of a glibc before 2.32 an older table stands before this one. */
#define OLD_MAGIC "ld.so-1.7.0"
#define OLD_HEAD 16
#define OLD_ENTRY 12
#define MAGIC "glibc-ld.so.cache1.1"

struct head {
	char magic[sizeof(MAGIC) - 1];
	uint32_t count, strings;
	uint32_t unused[5];
};

struct entry {
	uint32_t flags, key, value, system; /* key and value: where the strings are */
	uint64_t features;
};

/* A libc6 library for x86-64. */
#define FLAGS_X86_64 0x0303

static bool take(const char *found, char *path, size_t size)
{
	const size_t n = strlen(found) + 1;

	if (n > size)
		return false;
	memcpy(path, found, n);
	return true;
}

/* The string at a place of the table; NULL where it does not end there. */
static const char *text_at(const char *table, size_t bytes, uint32_t at)
{
	return at < bytes && memchr(table + at, 0, bytes - at) ? table + at : NULL;
}

bool bare_name_in_cache(
	const void *cache, size_t bytes, const char *name, char *path, size_t size)
{
	const char *table = cache;
	struct head head;

	if (bytes >= OLD_HEAD && !memcmp(table, OLD_MAGIC, sizeof(OLD_MAGIC) - 1)) {
		uint32_t count;
		uint64_t skip;

		memcpy(&count, table + OLD_HEAD - sizeof(count), sizeof(count));
		skip = (OLD_HEAD + (uint64_t)count * OLD_ENTRY + 7) & ~UINT64_C(7);
		if (skip > bytes)
			return false;
		table += skip;
		bytes -= skip;
	}
	if (bytes < sizeof(head) || memcmp(table, MAGIC, sizeof(MAGIC) - 1))
		return false;
	memcpy(&head, table, sizeof(head));
	if (head.count > (bytes - sizeof(head)) / sizeof(struct entry))
		return false;
	for (uint32_t i = 0; i < head.count; i++) {
		const char *key, *value;
		struct entry entry;

		memcpy(&entry, table + sizeof(head) + i * sizeof(entry), sizeof(entry));
		key = entry.flags == FLAGS_X86_64 ? text_at(table, bytes, entry.key) : NULL;
		if (!key || strcmp(key, name))
			continue;
		value = text_at(table, bytes, entry.value);
		return value && take(value, path, size);
	}
	return false;
}

static bool in_cache(const char *name, char *path, size_t size)
{
	int fd = open(CACHE_FILE, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *cache;
	bool found;

	if (fd < 0)
		return false;
	cache = fstat(fd, &status) || !status.st_size
			? MAP_FAILED
			: mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (cache == MAP_FAILED)
		return false;
	found = bare_name_in_cache(cache, (size_t)status.st_size, name, path, size);
	munmap(cache, (size_t)status.st_size);
	return found;
}

static bool in_folders(void *program, const char *name, char *path, size_t size)
{
	Dl_serinfo *folders, need;
	bool found = false;

	if (dlinfo(program, RTLD_DI_SERINFOSIZE, &need))
		return false;
	folders = malloc(need.dls_size);
	if (!folders)
		return false;
	*folders = need;
	if (!dlinfo(program, RTLD_DI_SERINFO, folders))
		for (unsigned i = 0; i < folders->dls_cnt && !found; i++) {
			char at[4096];
			int n = snprintf(at, sizeof(at), "%s/%s",
				folders->dls_serpath[i].dls_name, name);

			found = n > 0 && (size_t)n < sizeof(at) && !access(at, R_OK) &&
				take(at, path, size);
		}
	free(folders);
	return found;
}

bool bare_name_file(void *(*open)(const char *, int), const char *name, char *path, size_t size)
{
	void *program = open(NULL, RTLD_LAZY);
	bool found = program && in_folders(program, name, path, size);

	if (program)
		dlclose(program);
	return found || in_cache(name, path, size);
}
