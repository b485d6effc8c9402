/* SPDX-License-Identifier: Apache-2.0
 *
 * NETWORK.yaml: a network of people who share GPUs, as a machine that lends its own sees it
 * (docs/PEERS.md).  Its users read the same file: name, directory, user, password_file and
 * token_file are theirs too, the other keys mean nothing to them.
 */
#ifndef VCUDA_COMMON_NETWORK_H
#define VCUDA_COMMON_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/config.h"
#include "common/error.h"

#define NETWORK_NAME 64 /* with its NUL */
#define NETWORK_PATH 1024
#define NETWORK_GPUS 16 /* of one machine */
#define NETWORK_HOURS 8
#define NETWORK_SESSIONS_MAX 4096u
#define NETWORK_BYTES_MAX (1ull << 50)
#define NETWORK_DAY (24 * 60) /* minutes */

/* From minute to minute of a day; where `until` is not later, over midnight. */
struct network_hours {
	uint16_t from, until;
};

struct network {
	char name[NETWORK_NAME];
	char directory[512]; /* a Redis: unix:///PATH or tcp://HOST:PORT */
	char user[128];	     /* of its ACL; "": the default user */
	char password_file[NETWORK_PATH];
	char token_file[NETWORK_PATH];
	char address[256]; /* how others reach this machine: HOST or HOST:PORT; "": not said */
	uint64_t memory;   /* bytes of each GPU for all its sessions; 0: no limit */
	uint32_t sessions; /* at once; 0: no limit */
	uint32_t gpus;	   /* bit i: GPU i of the agent; 0: all */
	uint32_t hour_count; /* 0: always */
	struct network_hours hours[NETWORK_HOURS];
	uint32_t keys; /* which were given, while it is read */
};

/* Whether TEXT is a Redis: unix:///PATH or tcp://HOST:PORT. */
bool network_is_redis(const char *text);

/* One key of it, KEY in the place of item->key. -EINVAL with *error naming the key. */
int network_set(struct network *network, const char *key, const struct config_item *item,
	struct error *error);

/* After all keys: what is missing, and paths that are relative to FOLDER. */
int network_complete(struct network *network, const char *folder, struct error *error);

/* The file, which its owner alone may read. 0, or -errno with *error "PATH: …" or
 * "PATH:LINE: …". */
int network_read(struct network *network, const char *path, struct error *error);

/* As network_read reads it. */
void network_write(FILE *out, const struct network *network);

/* Whether it is open at that minute of the day. */
int network_is_open(const struct network *network, unsigned minute);

/* "22:00-06:00, 12:00-13:00"; "" = always. */
void network_hours_text(char *out, size_t n, const struct network *network);

#endif
