/* SPDX-License-Identifier: Apache-2.0
 *
 * See pulse.h.
 */
#include "shim/engine/heartbeat.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/wire/channel.h"

#define PULSE_BYTES 4096
#define PULSE_SECONDS 5
#define PULSE_LEAST_SECONDS 2 /* it beats once a second */
#define PULSE_MOST_SECONDS 86400
#define PULSE_SECOND 1000000000ull

/* One look counts for so much at the most: what lies between two may be time in which this
 * process did not run either, or did not wait. */
#define PULSE_LOOK_NS (PULSE_SECOND / 2)

static const struct channel_pulse *pulse;
static _Atomic bool looking; /* one thread at a time; it guards the three below */
static uint64_t seen, looked_at, silent_ns;

bool pulse_open(int fd)
{
	struct stat status;
	void *at;

	pulse_close();
	if (fd < 0 || fstat(fd, &status) || status.st_size < PULSE_BYTES)
		return false;
	at = mmap(NULL, PULSE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return false;
	pulse = at;
	seen = looked_at = silent_ns = 0;
	atomic_store(&looking, false);
	return true;
}

void pulse_close(void)
{
	if (pulse)
		munmap((void *)pulse, PULSE_BYTES);
	pulse = NULL;
}

unsigned pulse_patience(void)
{
	const char *text = secure_getenv("VCUDA_SIDECAR_TIMEOUT");
	char *end;
	unsigned long seconds;

	if (!text || *text < '0' || *text > '9')
		return PULSE_SECONDS;
	seconds = strtoul(text, &end, 10);
	if (*end || seconds > PULSE_MOST_SECONDS)
		return PULSE_SECONDS;
	return seconds && seconds < PULSE_LEAST_SECONDS ? PULSE_LEAST_SECONDS
							: (unsigned)seconds;
}

static bool pulse_look(uint64_t now)
{
	uint64_t beats = atomic_load_explicit(&pulse->beats, memory_order_relaxed);
	uint64_t since = now - looked_at;
	unsigned patience;

	looked_at = now;
	if (beats != seen) {
		seen = beats;
		silent_ns = 0;
		return false;
	}
	silent_ns += since < PULSE_LOOK_NS ? since : PULSE_LOOK_NS;
	if (silent_ns < PULSE_SECOND)
		return false;
	patience = pulse_patience();
	return patience && silent_ns > patience * PULSE_SECOND;
}

bool pulse_stopped(void)
{
	bool stopped;

	if (!pulse || atomic_exchange(&looking, true))
		return false;
	stopped = pulse_look(wait_now());
	atomic_store(&looking, false);
	return stopped;
}
