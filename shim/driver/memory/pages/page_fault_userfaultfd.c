/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching by userfaultfd(2): the kernel stops whoever touches a page that is not there or is
 * not to be written to, system calls too, and no signal is involved.  For faults in system
 * calls the kernel wants vm.unprivileged_userfaultfd=1, CAP_SYS_PTRACE, or /dev/userfaultfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/driver/memory/pages/page_fault.h"
#include "shim/driver/memory/pages/pages.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

static int uffd = -1;

static int uffd_new(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), device;

	if (fd >= 0)
		return fd;
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (device < 0)
		return -1;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	close(device);
	return fd;
}

static bool way_open(void)
{
	struct uffdio_api api = {.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID};

	uffd = uffd_new();
	if (uffd < 0)
		return false;
	if (!ioctl(uffd, UFFDIO_API, &api))
		return true;
	close(uffd);
	uffd = -1;
	return false;
}

static struct uffdio_range range(uint64_t at, size_t bytes)
{
	return (struct uffdio_range){.start = at, .len = bytes};
}

static void *address(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

static void way_unmap(uint64_t at, void *view, size_t bytes, bool ours)
{
	(void)view; /* the pages themselves */
	if (ours)
		mmap(address(at), bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(address(at), bytes);
}

static void *way_map(uint64_t at, size_t bytes, bool ours)
{
	struct uffdio_register watch = {.range = range(at, bytes),
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
	void *got = mmap(address(at), bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			(ours ? MAP_FIXED : MAP_FIXED_NOREPLACE),
		-1, 0);

	if (got == MAP_FAILED)
		return NULL;
	/* An old kernel takes the address for a wish.  A child of fork has none of it, as
	 * natively. */
	if (got == address(at) && !madvise(got, bytes, MADV_DONTFORK) &&
		!madvise(got, bytes, MADV_NOHUGEPAGE) && !ioctl(uffd, UFFDIO_REGISTER, &watch))
		return got;
	if (got != address(at))
		munmap(got, bytes);
	else
		way_unmap(at, got, bytes, ours);
	return NULL;
}

static bool protect(uint64_t at, size_t bytes, uint64_t mode)
{
	struct uffdio_writeprotect change = {.range = range(at, bytes), .mode = mode};
	int ret;

	do
		ret = ioctl(uffd, UFFDIO_WRITEPROTECT, &change);
	while (ret && errno == EAGAIN);
	return !ret;
}

static bool install_zero(uint64_t at, size_t bytes)
{
	struct uffdio_zeropage zero = {
		.range = range(at, bytes), .mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE};

	while (ioctl(uffd, UFFDIO_ZEROPAGE, &zero)) {
		if (errno != EAGAIN)
			return false;
		/* So far it came before something moved the mappings about it. */
		if (zero.zeropage > 0) {
			zero.range.start += (uint64_t)zero.zeropage;
			zero.range.len -= (uint64_t)zero.zeropage;
		}
	}
	return true;
}

static bool install_bytes(uint64_t at, const void *from, size_t bytes, bool write)
{
	struct uffdio_copy copy = {.dst = at,
		.src = (uint64_t)(uintptr_t)from,
		.len = bytes,
		.mode = UFFDIO_COPY_MODE_DONTWAKE | (write ? 0 : UFFDIO_COPY_MODE_WP)};

	while (ioctl(uffd, UFFDIO_COPY, &copy)) {
		if (errno != EAGAIN)
			return false;
		if (copy.copy > 0) {
			copy.dst += (uint64_t)copy.copy;
			copy.src += (uint64_t)copy.copy;
			copy.len -= (uint64_t)copy.copy;
		}
	}
	return true;
}

static bool way_install(uint64_t at, void *view, const void *from, size_t bytes, bool write)
{
	(void)view;
	if (from)
		return install_bytes(at, from, bytes, write);
	return install_zero(at, bytes) &&
	       (write || protect(at, bytes, UFFDIO_WRITEPROTECT_MODE_WP));
}

static bool way_let_write(uint64_t at, size_t bytes)
{
	return protect(at, bytes, UFFDIO_WRITEPROTECT_MODE_DONTWAKE);
}

static bool way_forbid_write(uint64_t at, size_t bytes)
{
	return protect(at, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

static bool way_evict(uint64_t at, void *view, size_t bytes)
{
	(void)at;
	return !madvise(view, bytes, MADV_DONTNEED);
}

static void way_done(const struct fault *fault, bool managed)
{
	struct uffdio_range woken = range(fault->address, PAGE_BYTES);

	(void)managed; /* what was unmapped meanwhile is told of by the kernel */
	ioctl(uffd, UFFDIO_WAKE, &woken);
}

static bool way_next(struct fault *fault)
{
	struct uffd_msg message;
	ssize_t n;

	for (;;) {
		n = read(uffd, &message, sizeof(message));
		if (n == (ssize_t)sizeof(message)) {
			if (message.event != UFFD_EVENT_PAGEFAULT)
				continue;
			*fault = (struct fault){.address = message.arg.pagefault.address &
							   ~(uint64_t)(PAGE_BYTES - 1),
				.write = message.arg.pagefault.flags &
					 (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP),
				.thread = message.arg.pagefault.feat.ptid};
			return true;
		}
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return false;
	}
}

const struct fault_way fault_userfaultfd = {.open = way_open,
	.map = way_map,
	.unmap = way_unmap,
	.install = way_install,
	.let_write = way_let_write,
	.forbid_write = way_forbid_write,
	.evict = way_evict,
	.next = way_next,
	.done = way_done};
