/* SPDX-License-Identifier: Apache-2.0
 *
 * What `vcuda run` starts for one program: a sidecar and, with --software, an agent, in a
 * folder of their own.  A process of its own, the service manager, is their parent; it lives as
 * long as a pipe to `vcuda run` is open, so that however that ends, nothing stays behind.
 */
#ifndef VCUDA_COMMAND_SERVICE_MANAGER_H
#define VCUDA_COMMAND_SERVICE_MANAGER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

struct service_wish {
	bool software;		/* an agent on the software GPU */
	char agent[4096];	/* else its address, or several with + or , between; "": none */
	const char *token_file; /* NULL: none (software: one is made) */
	bool verbose;		/* their logs go to our stderr */
};

struct service_manager {
	pid_t pid;
	int pipe; /* closing it ends everything */
	char socket[100];
};

/* Beside the socket, for a program of the software GPU: what it may call, ptxas. */
#define SERVICE_TOOLS "bin"

/* Starts all and waits until the sidecar serves, or until SIGINT, SIGTERM, SIGHUP or SIGQUIT
 * comes through `signals` (a signalfd): -EINTR. 0, or -errno with *error. */
int service_manager_start(const struct service_wish *wish, int signals,
	struct service_manager *service_manager, struct error *error);

/* Ends all and waits for it. */
void service_manager_end(struct service_manager *service_manager);

#endif
