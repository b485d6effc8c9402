/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker that was taken over: what it says to the front, one case at a time.
 * tests/faults/app.cu asks for a case by a launch (counting_driver.c); tests/faults/hostile.py
 * has the names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu-agent/handoff.h"

void hostile(uint32_t which);

#define FDS 10

static void say_bytes(const void *bytes, size_t n, int fd, int fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fds) {
		struct cmsghdr *c = &control.align;

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE((size_t)fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)fds * sizeof(int));
		for (int i = 0; i < fds; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	}
	sendmsg(HANDOFF_FD, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say(const struct handoff *h, int fd)
{
	say_bytes(h, sizeof(*h), fd, fd >= 0);
}

static void plain(uint32_t what, uint32_t device, uint64_t bytes)
{
	struct handoff h = {
		.version = HANDOFF_VERSION, .what = what, .device = device, .bytes = bytes};

	say(&h, -1);
}

/* All fields as large as they get, texts without an end. */
static void largest(uint32_t what, uint32_t devices)
{
	struct handoff h;

	memset(&h, 0xff, sizeof(h));
	h.version = HANDOFF_VERSION;
	h.what = what;
	h.device_count = devices;
	say(&h, -1);
}

static void often(uint32_t what, uint64_t bytes, unsigned times)
{
	while (times--)
		plain(what, 0, bytes);
}

static void share(uint64_t bytes, int fd, unsigned times)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_SHARE, .bytes = bytes};

	while (times--)
		say(&h, fd);
	if (fd >= 0)
		close(fd);
}

static int memory(void)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd >= 0 && !ftruncate(fd, 4096) ? fd : -1;
}

/* An image whose digest is of nothing. */
static void image(uint64_t bytes, int fd, unsigned times)
{
	struct handoff h = {
		.version = HANDOFF_VERSION, .what = HANDOFF_IMAGE_PUT, .bytes = bytes};

	while (times--)
		say(&h, fd);
	if (fd >= 0)
		close(fd);
}

static int sealed(void)
{
	int fd = memory();

	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static void noise(void)
{
	static unsigned char bytes[sizeof(struct handoff)];

	for (unsigned i = 0; i < 300; i++) {
		struct handoff *h = (void *)bytes;

		for (size_t at = 0; at < sizeof(bytes); at++)
			bytes[at] = (unsigned char)rand();
		h->version = HANDOFF_VERSION;
		h->what = i % 30;
		h->device_count %= 20;
		say(h, -1);
	}
}

static void sizes(uint32_t which)
{
	static char bytes[65536];
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_ALIVE};

	memcpy(bytes, &h, sizeof(h));
	say_bytes(bytes,
		which == 31   ? 4
		: which == 32 ? 0
		: which == 33 ? sizeof(h) + 1
			      : 65536,
		-1, 0);
}

static void shares(uint32_t which)
{
	switch (which) {
	case 18: share(4096, -1, 1); break;
	case 19: share(4096, open("/dev/null", O_RDWR | O_CLOEXEC), 1); break;
	case 20: share(UINT64_MAX, memory(), 1); break;
	default: share(4096, memory(), 200); break;
	}
}

static void endings(uint32_t which)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_ALIVE};

	switch (which) {
	case 35: say_bytes(&h, sizeof(h), 0, FDS); break;
	case 36: often(HANDOFF_ALIVE, 0, 20000); break;
	case 37: close(HANDOFF_FD); break;
	case 38: shutdown(HANDOFF_FD, SHUT_RDWR); break;
	case 39: noise(); break;
	case 40: _exit(0);
	default: abort();
	}
}

static void versions(uint32_t which)
{
	struct handoff h = {.version = which ? UINT32_MAX : 0, .what = HANDOFF_STATS};

	say(&h, -1);
}

static void images(uint32_t which)
{
	switch (which) {
	case 42: plain(HANDOFF_IMAGE_WANT, 0, UINT64_MAX); break;
	case 43: plain(HANDOFF_IMAGE_WANT, 0, 0); break;
	case 44: often(HANDOFF_IMAGE_WANT, 4096, 1000); break;
	case 45: plain(HANDOFF_IMAGE_PUT, 0, 4096); break;
	case 46: image(4096, open("/dev/null", O_RDWR | O_CLOEXEC), 1); break;
	case 47: image(4096, memory(), 1); break;
	case 48: image(4096, sealed(), 1); break;
	case 49: image(8192, sealed(), 1); break;
	default: image(4096, sealed(), 2000); break;
	}
}

void hostile(uint32_t which)
{
	static const uint32_t kinds[] = {
		0, UINT32_MAX, HANDOFF_SESSION, HANDOFF_GRANT, HANDOFF_READY};

	if (which < 2)
		versions(which);
	else if (which < 7)
		plain(kinds[which - 2], 0, 0);
	else if (which >= 18 && which <= 21)
		shares(which);
	else if (which >= 31 && which <= 34)
		sizes(which);
	else if (which >= 35 && which <= 41)
		endings(which);
	else if (which >= 42)
		images(which);
	switch (which) {
	case 7: largest(HANDOFF_READY, UINT32_MAX); break;
	case 8: largest(HANDOFF_FAILED, 1); break;
	case 9: plain(HANDOFF_LEASE, UINT32_MAX, 4096); break;
	case 10: plain(HANDOFF_LEASE, 0, UINT64_MAX); break;
	case 11: plain(HANDOFF_LEASE, 0, 0); break;
	case 12: often(HANDOFF_LEASE, 1ull << 32, 1000); break;
	case 13: largest(HANDOFF_STATS, HANDOFF_DEVICES); break;
	case 14: largest(HANDOFF_STATS, HANDOFF_DEVICES + 1); break;
	case 15: largest(HANDOFF_STATS, UINT32_MAX); break;
	case 16: plain(HANDOFF_ENDED, 0, 0); break;
	case 17: largest(HANDOFF_ENDED, 1); break;
	case 22: largest(HANDOFF_UNSHARE, 1); break;
	case 23: largest(HANDOFF_WANT, 1); break;
	case 24: often(HANDOFF_WANT, 0, 1000); break;
	case 25: plain(HANDOFF_AGAIN, 0, 0); break;
	case 26: largest(HANDOFF_AGAIN, 1); break;
	case 27: largest(HANDOFF_TIME, 1); break;
	case 28: often(HANDOFF_TIME, 1, 1000); break;
	case 29: plain(HANDOFF_PARKED, 0, UINT64_MAX); break;
	case 30: largest(HANDOFF_PARKED, 1); break;
	default: break;
	}
}
