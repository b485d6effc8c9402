/* SPDX-License-Identifier: Apache-2.0
 *
 * What the front knows of a network: for the supervisor, which shows it to people, and for the
 * process that has the network's directory.  It goes as a memfd with CONTROL_NETWORK.
 */
#ifndef VCUDA_GPU_AGENT_NETWORK_H
#define VCUDA_GPU_AGENT_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/network.h"

enum network_state {
	NETWORK_STARTING, /* no worker has told what GPUs there are */
	NETWORK_OPEN,	  /* in the directory; in all other states it is not there */
	NETWORK_CLOSED,	  /* outside of its hours */
	NETWORK_REFUSED,  /* it cannot be served; text: why */
	NETWORK_LEAVING,  /* and no session of it begins */
	NETWORK_STATES
};

struct network_report {
	char name[NETWORK_NAME];
	uint32_t state; /* enum network_state */
	uint32_t sessions;
	uint32_t gpu_count;
	uint32_t reserved;
	struct network_gpu {
		uint8_t uuid[16];
		uint64_t total; /* bytes that its sessions may have together */
		uint64_t free;	/* of that, what is left */
	} gpus[NETWORK_GPUS];
	char driver[64];
	char text[192];
};

/* A CLOEXEC memfd with it, or -1. */
static inline int network_report_write(const struct network_report *report)
{
	int fd = memfd_create("vcuda-network", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, report, sizeof(*report), 0) != (ssize_t)sizeof(*report)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* What FD has, its numbers and texts within bounds; false: that is none. */
static inline bool network_report_read(int fd, struct network_report *report)
{
	if (fd < 0 || pread(fd, report, sizeof(*report), 0) != (ssize_t)sizeof(*report) ||
		report->state >= NETWORK_STATES || report->gpu_count > NETWORK_GPUS)
		return false;
	report->name[sizeof(report->name) - 1] = 0;
	report->driver[sizeof(report->driver) - 1] = 0;
	report->text[sizeof(report->text) - 1] = 0;
	return true;
}

#endif
