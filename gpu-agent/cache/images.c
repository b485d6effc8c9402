/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/cache/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/folder.h"
#include "common/log.h"
#include "gpu-agent/cache/tenant_folder.h"

/* A file that was not written for so long will not be finished. */
#define PART_SECONDS 60
#define PIECE (1u << 20)
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)
#define NAME 65 /* bytes of a digest's name, with its NUL */

static void name_of(char name[NAME], const uint8_t digest[32])
{
	for (ptrdiff_t i = 0; i < 32; i++)
		snprintf(name + 2 * i, 3, "%02x", digest[i]);
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The tenant's, made where it is missing and `make` says so; -1: there is none. */
static int open_place(const struct images_place *place, bool make)
{
	char name[TENANT_FOLDER];

	if (make && folder_make(place->folder))
		return -1;
	cleanup_close int root = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || !*place->tenant)
		return take_fd(&root);
	tenant_folder(name, place->tenant);
	if (make && mkdirat(root, name, 0700) && errno != EEXIST)
		return -1;
	return open_folder(root, name);
}

/* SIZE bytes of FROM, from its beginning, to TO, and whether they have the digest. 0, -EBADMSG
 * or -errno. */
static int copy_checked(int from, int to, const uint8_t digest[32], uint64_t size)
{
	unsigned char found[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *sum = EVP_MD_CTX_new();
	unsigned char *piece = malloc(PIECE);
	int ret = piece && sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) ? 0 : -ENOMEM;

	for (uint64_t at = 0; !ret && at < size;) {
		uint64_t left = size - at;
		ssize_t n = pread(from, piece, left < PIECE ? left : PIECE, (off_t)at);
		ssize_t put = n > 0 ? write(to, piece, (size_t)n) : n;

		if (put < 0)
			ret = -errno;
		else if (!n)
			ret = -EBADMSG; /* cut */
		else if (put < n)
			ret = -ENOSPC;
		else if (!EVP_DigestUpdate(sum, piece, (size_t)n))
			ret = -ENOMEM;
		at += (uint64_t)(n > 0 ? n : 0);
	}
	if (!ret && !EVP_DigestFinal_ex(sum, found, NULL))
		ret = -ENOMEM;
	if (!ret && memcmp(found, digest, 32))
		ret = -EBADMSG;
	EVP_MD_CTX_free(sum);
	free(piece);
	return ret;
}

bool images_sealed(int fd, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) &&
	       S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

int images_read(const struct images_place *place, const uint8_t digest[32], uint64_t size)
{
	cleanup_close int folder = open_place(place, false);
	cleanup_close int file = -1, memory = -1;
	char name[NAME];
	struct stat st;
	int ret;

	name_of(name, digest);
	if (folder < 0)
		return -ENOENT;
	file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file < 0 || fstat(file, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	memory = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory < 0)
		return -errno;
	ret = (uint64_t)st.st_size == size ? copy_checked(file, memory, digest, size)
					   : -EBADMSG;
	if (ret == -EBADMSG) {
		log_warn("cache.drop", "path=%s/%s reason=\"its bytes do not have its digest\"",
			place->folder, name);
		unlinkat(folder, name, 0);
		return -ENOENT;
	}
	if (ret)
		return ret;
	if (fcntl(memory, F_ADD_SEALS, SEALS | F_SEAL_SEAL))
		return -errno;
	futimens(file, NULL); /* used now: the oldest go first */
	return take_fd(&memory);
}

/* --- room --------------------------------------------------------------------------------- */

/* What a tenant has, or what lies in CACHE_DIR itself. */
struct heap {
	uint64_t bytes;
	char folder[256], oldest[256]; /* "": none of it may go */
	struct timespec when;
};

static bool older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Its plain files; a worker or an agent that was killed may have left some half written. */
static void heap_add(struct heap *heap, const struct dirent *entry, const struct stat *st)
{
	heap->bytes += (uint64_t)st->st_size;
	if (entry->d_name[0] == '.' && st->st_mtim.tv_sec > time(NULL) - PART_SECONDS)
		return; /* somebody may be writing it */
	if (heap->oldest[0] && !older(&st->st_mtim, &heap->when))
		return;
	heap->when = st->st_mtim;
	snprintf(heap->oldest, sizeof(heap->oldest), "%s", entry->d_name);
}

static DIR *list(int at, const char *name)
{
	int fd = open_folder(at, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static void heap_of(struct heap *heap, int root, const char *folder)
{
	DIR *dir = list(root, folder);
	struct dirent *entry;
	struct stat st;

	*heap = (struct heap){0};
	snprintf(heap->folder, sizeof(heap->folder), "%s", folder);
	while (dir && (entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			S_ISREG(st.st_mode))
			heap_add(heap, entry, &st);
	if (dir)
		closedir(dir);
}

/* Of all heaps: how much they are, and in *most the largest of those that can lose something.
 */
static uint64_t weigh(int root, struct heap *most)
{
	DIR *dir = list(root, ".");
	struct dirent *entry;
	struct heap heap;
	uint64_t total;
	struct stat st;

	heap_of(most, root, ".");
	total = most->bytes;
	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
			fstatat(root, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
			!S_ISDIR(st.st_mode))
			continue;
		heap_of(&heap, root, entry->d_name);
		total += heap.bytes;
		if (heap.oldest[0] && (!most->oldest[0] || heap.bytes > most->bytes))
			*most = heap;
	}
	if (dir)
		closedir(dir);
	return total;
}

/* Removes files until NEED more bytes fit below the limit. */
static void make_room(const struct images_place *place, uint64_t need)
{
	cleanup_close int root = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct heap most;

	while (root >= 0 && weigh(root, &most) + need > place->limit && most.oldest[0]) {
		cleanup_close int folder = open_folder(root, most.folder);

		if (folder < 0 || (unlinkat(folder, most.oldest, 0) && errno != ENOENT))
			return;
		if (strcmp(most.folder, "."))
			unlinkat(root, most.folder, AT_REMOVEDIR); /* if that was the last */
	}
}

int images_write(
	const struct images_place *place, const uint8_t digest[32], int image, uint64_t size)
{
	char name[NAME], part[40];
	unsigned char random[12];
	struct stat st;
	int ret;

	if (size > place->limit)
		return -EFBIG;
	make_room(place, size);
	cleanup_close int folder = open_place(place, true);
	if (folder < 0)
		return -errno;
	name_of(name, digest);
	/* A number of a process may be another one's too, in another container. */
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EAGAIN;
	part[0] = '.';
	for (ptrdiff_t i = 0; i < (ptrdiff_t)sizeof(random); i++)
		snprintf(part + 1 + 2 * i, 3, "%02x", random[i]);
	strcat(part, ".part");
	cleanup_close int file = openat(
		folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return -errno;
	ret = copy_checked(image, file, digest, size);
	if (!ret && (fstat(file, &st) || (uint64_t)st.st_size != size))
		ret = -EIO;
	if (!ret && renameat(folder, part, folder, name))
		ret = -errno;
	if (ret)
		unlinkat(folder, part, 0);
	return ret;
}
