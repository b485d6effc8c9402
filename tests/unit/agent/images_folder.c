/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of images on disk: what is read has the digest that it was asked for by, whatever
 * became of the file, it stays within its limit, and a full disk or another agent in the same
 * folder do no harm.
 */
#include <dirent.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "gpu-agent/cache/images.h"
#include "gpu-agent/cache/tenant_folder.h"

#define SIZE 1000
#define LIMIT (4 * SIZE + SIZE / 2)

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static char folder[] = "/tmp/vcuda-image-cache-XXXXXX";
static struct images_place place = {.folder = folder, .tenant = "", .limit = LIMIT};

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
	unsigned char bytes[SIZE], got[SIZE];
	uint8_t digest[32];
	int fd;

	image(bytes, digest, number);
	fd = images_read(&place, digest, SIZE);
	if (fd < 0)
		return false;
	assert_true(images_sealed(fd, SIZE));
	assert_int_equal(pread(fd, got, SIZE, 0), SIZE);
	assert_memory_equal(got, bytes, SIZE);
	close(fd);
	return true;
}

static int memory_of(const unsigned char *bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, bytes, SIZE), SIZE);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int put_as(unsigned number, const uint8_t digest[32])
{
	unsigned char bytes[SIZE];
	uint8_t own[32];
	int fd, ret;

	image(bytes, own, number);
	fd = memory_of(bytes, SEALS);
	ret = images_write(&place, digest ? digest : own, fd, SIZE);
	close(fd);
	return ret;
}

static int put(unsigned number)
{
	return put_as(number, NULL);
}

/* From here on all is of that tenant's. */
static void be(const char *tenant)
{
	place.tenant = tenant;
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
	log_level = LOG_ERROR; /* of files that are dropped there are thousands */
	strcpy(folder, "/tmp/vcuda-image-cache-XXXXXX");
	be("");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
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
		assert_int_not_equal(access(path, F_OK), 0);
		/* Of the right length again, as a crash of the machine leaves it. */
		put(1);
		assert_int_equal(truncate(path, n), 0);
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

/* Agents that are killed while they write. */
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
	unsigned char bytes[SIZE];
	struct rlimit was, small;
	uint8_t digest[32];
	unsigned count;
	int fd;

	(void)state;
	image(bytes, digest, 1);
	fd = memory_of(bytes, SEALS); /* the limit would hold for it too */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = SIZE / 2;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(images_write(&place, digest, fd, SIZE), -ENOSPC);
	setrlimit(RLIMIT_FSIZE, &was);
	close(fd);
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

static void what_has_another_digest_is_not_kept(void **state)
{
	unsigned char bytes[SIZE];
	uint8_t digest[32];
	unsigned count;

	(void)state;
	image(bytes, digest, 4);
	assert_int_equal(put_as(5, digest), -EBADMSG);
	taken(&count);
	assert_int_equal(count, 0);
	assert_int_equal(put(4), 0);
	assert_int_equal(put_as(5, digest), -EBADMSG);
	assert_true(has(4)); /* the right one stays */
}

/* Of a hostile worker: memory that it could still change, cut or fill, and what is none. */
static void only_memory_that_nobody_changes_is_looked_at(void **state)
{
	static const int lacking[] = {0, F_SEAL_SHRINK | F_SEAL_GROW,
		F_SEAL_WRITE | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_SHRINK,
		F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */};
	unsigned char bytes[SIZE];
	uint8_t digest[32];
	int fd, pair[2];

	(void)state;
	image(bytes, digest, 6);
	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
		fd = memory_of(bytes, lacking[i]);
		assert_false(images_sealed(fd, SIZE));
		close(fd);
	}
	fd = memory_of(bytes, SEALS);
	assert_true(images_sealed(fd, SIZE));
	assert_false(images_sealed(fd, SIZE - 1));
	assert_false(images_sealed(fd, SIZE + 1));
	close(fd);
	assert_false(images_sealed(-1, SIZE));
	assert_int_equal(pipe(pair), 0);
	assert_false(images_sealed(pair[0], 0));
	close(pair[0]);
	close(pair[1]);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_false(images_sealed(fd, (uint64_t)lseek(fd, 0, SEEK_END)));
	close(fd);
}

static void a_tenant_has_its_own(void **state)
{
	char path[256];

	(void)state;
	be("red");
	assert_int_equal(put(7), 0);
	assert_true(has(7));
	be("blue");
	assert_false(has(7));
	assert_int_equal(put(8), 0);
	be(""); /* what all share is apart from that again */
	assert_false(has(7));
	be("red");
	assert_true(has(7));
	assert_false(has(8));
	/* A folder that is a link leads nowhere. */
	be("green");
	snprintf(path, sizeof(path), "%s/", folder);
	tenant_folder(path + strlen(path), "green");
	assert_int_equal(symlink("/tmp", path), 0);
	assert_true(put(9) < 0);
	assert_false(has(9));
	assert_int_equal(unlink(path), 0);
}

/* Who brings without end loses its own. */
static void a_tenant_takes_no_room_from_one_that_has_less(void **state)
{
	(void)state;
	be("small");
	assert_int_equal(put(1), 0);
	be("hog");
	for (unsigned i = 10; i < 40; i++) {
		assert_int_equal(put(i), 0);
		assert_true(has(i));
	}
	be("small");
	assert_true(has(1));
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
		IN_FOLDER(what_has_another_digest_is_not_kept),
		IN_FOLDER(only_memory_that_nobody_changes_is_looked_at),
		IN_FOLDER(a_tenant_has_its_own),
		IN_FOLDER(a_tenant_takes_no_room_from_one_that_has_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
