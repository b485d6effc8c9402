/* SPDX-License-Identifier: Apache-2.0
 *
 * See heartbeat.h.
 */
#include "shim/engine/heartbeat.h"

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

static const struct channel_heartbeat *heartbeat;
static _Atomic bool looking; /* one thread at a time; it guards the three below */
static uint64_t seen, looked_at, silent_ns;

bool heartbeat_open(int fd)
{
	struct stat status;
	void *at;

	heartbeat_close();
	if (fd < 0 || fstat(fd, &status) || status.st_size < HEARTBEAT_BYTES)
		return false;
	at = mmap(NULL, HEARTBEAT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return false;
	heartbeat = at;
	seen = looked_at = silent_ns = 0;
	atomic_store(&looking, false);
	return true;
}

void heartbeat_close(void)
{
	if (heartbeat)
		munmap((void *)heartbeat, HEARTBEAT_BYTES);
	heartbeat = NULL;
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
	uint64_t beats = atomic_load_explicit(&heartbeat->beats, memory_order_relaxed);
	uint64_t since = now - looked_at;
	unsigned patience;

	looked_at = now;
	if (beats != seen) {
		seen = beats;
		silent_ns = 0;
		return false;
	}
	silent_ns += since < HEARTBEAT_LOOK_NS ? since : HEARTBEAT_LOOK_NS;
	if (silent_ns < HEARTBEAT_SECOND)
		return false;
	patience = heartbeat_patience();
	return patience && silent_ns > patience * HEARTBEAT_SECOND;
}

bool heartbeat_stopped(void)
{
	bool stopped;

	if (!heartbeat || atomic_exchange(&looking, true))
		return false;
	stopped = heartbeat_look(wait_now());
	atomic_store(&looking, false);
	return stopped;
}
