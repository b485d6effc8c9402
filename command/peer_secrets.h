/* SPDX-License-Identifier: Apache-2.0
 *
 * Token and password of a network for an agent of another user: root joins for a service, which
 * reads nothing of root's.
 */
#ifndef VCUDA_COMMAND_PEER_SECRETS_H
#define VCUDA_COMMAND_PEER_SECRETS_H

#include "common/error.h"
#include "common/network.h"

/* Where this is root and the folder is another user's: copies of the network's files in
 * FOLDER/.NAME, that user's, which NETWORK names from here on. Else the files must be readable.
 * 0, or -errno with *error. */
int peer_secrets_open(const char *folder, struct network *network, struct error *error);
/* Takes such copies away again. */
void peer_secrets_close(const char *folder, const char *name);

#endif
