/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent that has a folder of networks, as `vcuda peer` sees it from outside: a lock that it
 * holds, and what it writes into agent.json (docs/PEERS.md).
 */
#ifndef VCUDA_COMMAND_PEER_AGENT_H
#define VCUDA_COMMAND_PEER_AGENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define PEER_PATH 1280 /* a folder, and a name in it */

/* The folder, where the command line names none. -errno with *error. */
int peer_folder(char folder[1024], struct error *error);
/* Made, with those above it, where it is not there. -errno with *error: others may write. */
int peer_folder_open(const char *folder, struct error *error);

/* Whether an agent has the folder now. */
bool peer_agent_runs(const char *folder);
/* What it says; NULL: nothing that can be read. cJSON_Delete is the caller's. */
cJSON *peer_agent_state(const char *folder);
/* Of that: the network of that name, or the refused file. NULL: there is none. */
const cJSON *peer_agent_network(const cJSON *state, const char *name);
const cJSON *peer_agent_refused(const cJSON *state, const char *file);
const char *peer_text(const cJSON *object, const char *name);
double peer_number(const cJSON *object, const char *name);

/* Starts one that ends with its last network; FLAGS are its own, NULL behind the last. It lives
 * on when this process ends. The pid, or -errno with *error. */
pid_t peer_agent_start(const char *folder, char *const *flags, struct error *error);
/* The last line that such an agent wrote, without what stands before it; "" = none. */
void peer_agent_last_words(const char *folder, char *out, size_t n);

#endif
