/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/memory/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "protocol/wire/channel.h"

#define HEARTBEAT_BYTES 4096
#define HEARTBEAT_STACK (256u * 1024)
#define HEARTBEAT_IDLE_NS 60000000000ull
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1: our mapping stays writable, no other is */
#endif

static void *heartbeat_main(void *argument)
{
	struct heartbeat *heartbeat = argument;

	for (;;) {
		if (!atomic_load(&heartbeat->watched))
			wait_sleep(&heartbeat->watched, 0, HEARTBEAT_IDLE_NS);
		atomic_fetch_add_explicit(&heartbeat->page->beats, 1, memory_order_relaxed);
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	return NULL;
}

static int heartbeat_thread(struct heartbeat *heartbeat)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, HEARTBEAT_STACK);
	ret = pthread_create(&thread, &attributes, heartbeat_main, heartbeat);
	pthread_attr_destroy(&attributes);
	return ret;
}

int heartbeat_start(struct heartbeat *heartbeat, struct error *error)
{
	cleanup_close int fd = memfd_create("vcuda-heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct channel_heartbeat *page;
	int ret;

	if (fd < 0 || ftruncate(fd, HEARTBEAT_BYTES))
		return error_set(error, errno, "memory of the heartbeat");
	page = mmap(NULL, HEARTBEAT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return error_set(error, errno, "mapping the heartbeat");
	page->magic = CHANNEL_MAGIC;
	page->version = CHANNEL_VERSION;
	/* An older kernel knows no such seal. There a program can feign our life to others of
	 * its own pod, which is no more than it can do by keeping us busy. */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return error_set(error, errno, "sealing the heartbeat");
	heartbeat->page = page;
	heartbeat->fd = take_fd(&fd);
	ret = heartbeat_thread(heartbeat);
	return ret ? error_set(error, ret, "the heartbeat's thread") : 0;
}

void heartbeat_watched(struct heartbeat *heartbeat, uint32_t count)
{
	if (!atomic_exchange(&heartbeat->watched, count) && count)
		wait_wake(&heartbeat->watched);
}
