/* SPDX-License-Identifier: Apache-2.0
 *
 * The end.  When a DLL is unloaded because its process ends, the threads of the sidecar are
 * gone already; so what Linux does in a destructor is done by exit(), while they run.  A
 * program that ends by ExitProcess or TerminateProcess is one that was killed.
 */
#include <unistd.h>

#include "shim/engine/driver.h"
#include "shim/engine/session.h"
#include "windows/client/client.h"
#include "windows/os/os.h"

static void all_end(void)
{
	driver_end();
	for (unsigned i = 0; i < session_count; i++)
		if (sessions[i]->socket >= 0) {
			close(sessions[i]->socket);
			sessions[i]->socket = -1;
		}
	client_end();
}

/* While the library is loaded: a word is set. */
__attribute__((constructor)) static void end_known(void)
{
	os_at_exit(all_end);
}
