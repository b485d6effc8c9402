/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "protocol/channel.h"

#define PULSE_BYTES 4096
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1: our mapping stays writable, no other is */
#endif

int pulse_open(struct pulse *pulse, struct error *error)
{
	cleanup_close int fd = memfd_create("vcuda-pulse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct channel_pulse *page;

	if (fd < 0 || ftruncate(fd, PULSE_BYTES))
		return error_set(error, errno, "memory of the pulse");
	page = mmap(NULL, PULSE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return error_set(error, errno, "mapping the pulse");
	page->magic = CHANNEL_MAGIC;
	page->version = CHANNEL_VERSION;
	/* An older kernel knows no such seal. There a program can feign our life to others of
	 * its own pod, which is no more than it can do by keeping us busy. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return error_set(error, errno, "sealing the pulse");
	*pulse = (struct pulse){.page = page, .fd = take_fd(&fd)};
	return 0;
}

void pulse_beat(struct pulse *pulse, uint64_t now)
{
	if (now < pulse->beat_at)
		return;
	atomic_fetch_add_explicit(&pulse->page->beats, 1, memory_order_relaxed);
	pulse->beat_at = now + PULSE_BEAT_NS;
}
