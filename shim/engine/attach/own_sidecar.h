/* SPDX-License-Identifier: Apache-2.0
 *
 * A sidecar of the user's own, for a program that finds none and knows an agent
 * (REMOTE_GPU_ADDRESS): programs of one user and agent share it.
 */
#ifndef VCUDA_SHIM_ENGINE_OWN_SIDECAR_H
#define VCUDA_SHIM_ENGINE_OWN_SIDECAR_H

#include <stdbool.h>
#include <stddef.h>

/* Where it listens for that agent, into N bytes at PATH; "": no folder is this user's alone. */
void own_sidecar_socket(char *path, size_t n, const char *agent);
/* vcuda-client: $VCUDA_CLIENT, or ../bin/ beside our library. False: its name is too long. */
bool own_sidecar_find(char *path, size_t n);
/* What is started gets the environment of the first call of this, which is to be made before
 * other threads can change it; of own_sidecar_start else. */
void own_sidecar_keep(void);
/* Starts it. It outlives us and must not load what we preload. False: errno says why. */
bool own_sidecar_start(const char *client, const char *agent, const char *path);

#endif
