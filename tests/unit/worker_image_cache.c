/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of images on disk: what is read has the digest that it was asked for by, whatever
 * became of the file, it stays within its limit, and a full disk or another agent in the same
 * folder do no harm.
 */
#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/worker/image_cache.h"

#define SIZE 1000
#define LIMIT (4 * SIZE + SIZE / 2)

static char folder[] = "/tmp/vcuda-image-cache-XXXXXX";

static void image(unsigned char bytes[SIZE], uint8_t digest[32], unsigned number)
{
	for (unsigned i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)((i * 31 + number * 14) | 1); /* no zeros */
	SHA256(bytes, SIZE, digest);
}

static void path_of(char path[256], const uint8_t digest[32])
{
	int n = snprintf(path, 256, "%s/", folder);

	for (int i = 0; i < 32; i++)
		n += snprintf(path + n, 256 - (size_t)n, "%02x", digest[i]);
}

/* Whether it is there; what is there must be right. */
static bool has(unsigned number)
{
	unsigned char bytes[SIZE], *got;
	uint8_t digest[32];

	image(bytes, digest, number);
	got = cache_read(folder, digest, SIZE);
	if (got)
		assert_memory_equal(got, bytes, SIZE);
	free(got);
	return got != NULL;
}

static void put(unsigned number)
{
	unsigned char bytes[SIZE];
	uint8_t digest[32];

	image(bytes, digest, number);
	cache_write(folder, digest, bytes, SIZE, LIMIT);
}

/* Of all files, the half-written ones too; *count: how many. */
static uint64_t taken(unsigned *count)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	uint64_t sum = 0;
	struct stat st;

	assert_non_null(dir);
	*count = 0;
	while ((entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			S_ISREG(st.st_mode)) {
			sum += (uint64_t)st.st_size;
			++*count;
		}
	closedir(dir);
	return sum;
}

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/vcuda-image-cache-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	(void)state;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

static void a_file_cut_at_any_length_is_not_believed(void **state)
{
	unsigned char bytes[SIZE];
	uint8_t digest[32];
	char path[256];

	(void)state;
	image(bytes, digest, 1);
	path_of(path, digest);
	for (off_t n = 0; n < SIZE; n++) {
		put(1);
		assert_int_equal(truncate(path, n), 0);
		assert_false(has(1));
		/* Of the right length again, as a crash of the machine leaves it. */
		assert_int_equal(truncate(path, SIZE), 0);
		assert_false(has(1));
		assert_int_not_equal(access(path, F_OK), 0);
	}
	put(1);
	assert_true(has(1));
}

static void a_changed_byte_is_not_believed(void **state)
{
	unsigned char bytes[SIZE];
	uint8_t digest[32];
	char path[256];

	(void)state;
	image(bytes, digest, 2);
	path_of(path, digest);
	for (unsigned at = 0; at < SIZE; at += 37) {
		unsigned char wrong = bytes[at] ^ 1;
		int fd;

		put(2);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
		close(fd);
		assert_false(has(2));
	}
}

static void a_link_is_not_followed(void **state)
{
	unsigned char bytes[SIZE];
	uint8_t digest[32];
	char path[256], other[256];

	(void)state;
	put(3);
	image(bytes, digest, 3);
	path_of(path, digest);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(has(3));
}

static void what_was_used_last_stays(void **state)
{
	unsigned count;

	(void)state;
	put(0);
	for (unsigned i = 1; i < 40; i++) {
		usleep(2000); /* a file's times are as fine as the kernel's ticks */
		assert_true(has(0));
		usleep(10000);
		put(i);
		assert_true(taken(&count) <= LIMIT);
	}
	assert_true(has(0));
	assert_true(has(39));
	assert_false(has(1));
}

/* Workers that are killed while they write. */
static void what_was_left_half_written_counts(void **state)
{
	unsigned count;

	(void)state;
	for (int i = 0; i < 20; i++) {
		char path[256];
		int fd;

		snprintf(path, sizeof(path), "%s/.%d.part", folder, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_int_equal(ftruncate(fd, SIZE), 0);
		assert_int_equal(
			futimens(fd, (struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}), 0);
		close(fd);
	}
	put(1);
	assert_true(taken(&count) <= LIMIT);
	assert_true(has(1));
}

static void a_full_disk_leaves_nothing(void **state)
{
	struct rlimit was, small;
	unsigned count;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = SIZE / 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	put(1);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(taken(&count), 0);
	assert_int_equal(count, 0);
	assert_false(has(1));
	put(1);
	assert_true(has(1));
}

static void agents_share_a_folder(void **state)
{
	enum { PROCESSES = 6, ROUNDS = 300 };
	unsigned count;

	(void)state;
	for (unsigned p = 0; p < PROCESSES; p++) {
		if (fork())
			continue;
		alarm(60);
		for (unsigned i = 0; i < ROUNDS; i++) {
			put((i * 5 + p) % 8);
			has(i % 8); /* exits with a failure where it is wrong */
		}
		_exit(0);
	}
	for (unsigned p = 0; p < PROCESSES; p++) {
		int status = -1;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	/* Each has room made for its own before it writes: so much more at the most. */
	assert_true(taken(&count) <= LIMIT + PROCESSES * SIZE);
	put(9);
	assert_true(taken(&count) <= LIMIT);
	assert_true(has(9));
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(a_file_cut_at_any_length_is_not_believed),
		IN_FOLDER(a_changed_byte_is_not_believed),
		IN_FOLDER(a_link_is_not_followed),
		IN_FOLDER(what_was_used_last_stays),
		IN_FOLDER(what_was_left_half_written_counts),
		IN_FOLDER(a_full_disk_leaves_nothing),
		IN_FOLDER(agents_share_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
