/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar of this process: its settings come from the environment (VCUDA_AGENT,
 * VCUDA_TOKEN_FILE … as of vcuda-client, or REMOTE_GPU_ADDRESS), or from a vcuda.exe -role
 * client that runs; its threads start with the first connection, which is the program's first
 * CUDA call.
 */
#ifndef VCUDA_WINDOWS_CLIENT_CLIENT_H
#define VCUDA_WINDOWS_CLIENT_CLIENT_H

/* The program has closed its end: until the agent has heard of it, two seconds at the most. */
void client_end(void);

#endif
