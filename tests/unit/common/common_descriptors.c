/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors that come with a datagram: those asked for arrive, and a peer that attaches more,
 * or to a datagram that should have none, leaves none behind in this process.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"

static int pair[2];
static int refused, times; /* the errno of the next TIMES sendmsg */

/* In libc's place, or the sanitizer's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
		(ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");

	if (times) {
		times--;
		errno = refused;
		return -1;
	}
	return next(fd, message, flags);
}

static int open_pair(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static unsigned open_now(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(folder);
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* Sends COUNT of one file, as a peer that keeps no rule. */
static void attach(const void *bytes, size_t n, unsigned count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(16 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int))};
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(file >= 0);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &file, sizeof(file));
	assert_int_equal(sendmsg(pair[0], &message, 0), n);
	close(file);
}

static void both_arrive_in_their_order(void **state)
{
	int sent[2], got[2];
	struct stat a, b;
	char text[8];

	(void)state;
	assert_int_equal(pipe2(sent, O_CLOEXEC), 0);
	assert_int_equal(descriptors_send(pair[0], "two", 3, sent, 2, 0), 0);
	assert_int_equal(descriptors_receive(pair[1], text, sizeof(text), got, 2, 0), 3);
	for (int i = 0; i < 2; i++) {
		assert_true(got[i] >= 0 && got[i] != sent[i]);
		assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		assert_int_equal(fcntl(got[i], F_GETFL) & O_ACCMODE, i ? O_WRONLY : O_RDONLY);
		assert_int_equal(fstat(sent[i], &a) | fstat(got[i], &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		close(sent[i]);
		close(got[i]);
	}
}

static void none_is_minus_one(void **state)
{
	int got[2] = {0, 0};
	char text[8];

	(void)state;
	assert_int_equal(descriptors_send(pair[0], "none", 4, NULL, 0, 0), 0);
	assert_int_equal(descriptors_receive(pair[1], text, sizeof(text), got, 2, 0), 4);
	assert_int_equal(got[0], -1);
	assert_int_equal(got[1], -1);
}

static void what_was_not_asked_for_is_closed(void **state)
{
	unsigned before = open_now();
	char text[4];

	(void)state;
	for (unsigned attached = 1; attached <= 16; attached++)
		for (unsigned asked = 0; asked <= DESCRIPTORS_MOST; asked++) {
			unsigned kept = 0;
			int got[DESCRIPTORS_MOST];

			attach("more", 4, attached);
			assert_int_equal(
				descriptors_receive(pair[1], text, sizeof(text), got, asked, 0),
				4);
			for (unsigned i = 0; i < asked; i++)
				if (got[i] >= 0) {
					kept++;
					close(got[i]);
				}
			assert_int_equal(kept, attached < asked ? attached : asked);
			assert_int_equal(open_now(), before);
		}
}

static void lengths_and_ends_are_told(void **state)
{
	char text[4];
	int got;

	(void)state;
	assert_int_equal(
		descriptors_receive(pair[1], text, sizeof(text), &got, 1, MSG_DONTWAIT),
		-EAGAIN);
	assert_int_equal(descriptors_send(pair[0], "too long", 8, NULL, 0, 0), 0);
	assert_int_equal(descriptors_receive(pair[1], text, sizeof(text), &got, 1, 0), 8);
	close(pair[0]);
	assert_int_equal(descriptors_receive(pair[1], text, sizeof(text), &got, 1, 0), 0);
	assert_int_equal(descriptors_send(pair[1], "x", 1, NULL, 0, 0), -EPIPE);
	close(pair[1]);
	assert_int_equal(open_pair(NULL), 0);
}

/* Who asked to wait waits; who did not is told. */
static void a_kernel_short_of_memory_is_waited_for(void **state)
{
	static const int short_of_memory[] = {ENOBUFS, ENOMEM};
	char text[4];
	int got;

	(void)state;
	for (int i = 0; i < 2; i++) {
		refused = short_of_memory[i];
		times = 3;
		assert_int_equal(descriptors_send(pair[0], "x", 1, NULL, 0, 0), 0);
		assert_int_equal(times, 0);
		assert_int_equal(
			descriptors_receive(pair[1], text, sizeof(text), &got, 1, 0), 1);
		times = 1;
		assert_int_equal(
			descriptors_send(pair[0], "x", 1, NULL, 0, MSG_DONTWAIT), -refused);
		times = 1 << 20; /* but not for ever */
		assert_int_equal(descriptors_send(pair[0], "x", 1, NULL, 0, 0), -refused);
		times = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_arrive_in_their_order),
		cmocka_unit_test(none_is_minus_one),
		cmocka_unit_test(what_was_not_asked_for_is_closed),
		cmocka_unit_test(a_kernel_short_of_memory_is_waited_for),
		cmocka_unit_test(lengths_and_ends_are_told),
	};

	return cmocka_run_group_tests(tests, open_pair, close_pair);
}
