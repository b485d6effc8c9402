/* SPDX-License-Identifier: Apache-2.0
 *
 * See heartbeat.h.
 */
#include "shim/engine/attach/heartbeat.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/wire/channel.h"

#define HEARTBEAT_BYTES 4096
#define HEARTBEAT_SECONDS 5
#define HEARTBEAT_LEAST_SECONDS 2 /* it beats once a second */
#define HEARTBEAT_MOST_SECONDS 86400
#define HEARTBEAT_SECOND 1000000000ull

/* One look counts for so much at the most: what lies between two may be time in which this
 * process did not run either, or did not wait. */
#define HEARTBEAT_LOOK_NS (HEARTBEAT_SECOND / 2)

static struct {
	const struct channel_heartbeat *heartbeat;
	_Atomic bool looking; /* one thread at a time; it guards the three below */
	uint64_t seen, looked_at, silent_ns;
} sidecar;

bool heartbeat_open(int fd)
{
	void *before = (void *)sidecar.heartbeat;
	struct stat status;
	void *at;

	if (fd < 0 || fstat(fd, &status) || status.st_size < HEARTBEAT_BYTES)
		return false;
	at = mmap(before, HEARTBEAT_BYTES, PROT_READ, MAP_SHARED | (before ? MAP_FIXED : 0), fd,
		0);
	if (at == MAP_FAILED)
		return false;
	while (atomic_exchange(&sidecar.looking, true))
		wait_relax();
	sidecar.heartbeat = at;
	sidecar.seen = sidecar.looked_at = sidecar.silent_ns = 0;
	atomic_store(&sidecar.looking, false);
	return true;
}

void heartbeat_close(void)
{
	if (sidecar.heartbeat)
		munmap((void *)sidecar.heartbeat, HEARTBEAT_BYTES);
	sidecar.heartbeat = NULL;
}

unsigned heartbeat_patience(void)
{
	const char *text = secure_getenv("VCUDA_SIDECAR_TIMEOUT");
	char *end;
	unsigned long seconds;

	if (!text || *text < '0' || *text > '9')
		return HEARTBEAT_SECONDS;
	seconds = strtoul(text, &end, 10);
	if (*end || seconds > HEARTBEAT_MOST_SECONDS)
		return HEARTBEAT_SECONDS;
	return seconds && seconds < HEARTBEAT_LEAST_SECONDS ? HEARTBEAT_LEAST_SECONDS
							    : (unsigned)seconds;
}

static bool heartbeat_look(uint64_t now)
{
	uint64_t beats = atomic_load_explicit(&sidecar.heartbeat->beats, memory_order_relaxed);
	uint64_t since = now - sidecar.looked_at;
	unsigned patience;

	sidecar.looked_at = now;
	if (beats != sidecar.seen) {
		sidecar.seen = beats;
		sidecar.silent_ns = 0;
		return false;
	}
	sidecar.silent_ns += since < HEARTBEAT_LOOK_NS ? since : HEARTBEAT_LOOK_NS;
	if (sidecar.silent_ns < HEARTBEAT_SECOND)
		return false;
	patience = heartbeat_patience();
	return patience && sidecar.silent_ns > patience * HEARTBEAT_SECOND;
}

bool heartbeat_stopped(void)
{
	bool stopped;

	if (!sidecar.heartbeat || atomic_exchange(&sidecar.looking, true))
		return false;
	stopped = heartbeat_look(wait_now());
	atomic_store(&sidecar.looking, false);
	return stopped;
}
