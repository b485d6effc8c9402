/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared with one app process: the channel's own segment (number 0) and the pinned ones.
 * `host`: a file of /dev/shm; `pod`: a sealed memfd.  Neither has a name, ever: the app gets
 * the descriptor, and whoever else runs under our user finds nothing that could be opened.
 * Memory is reserved before the app uses it, so a full tmpfs is an error here and not a SIGBUS
 * later.  The app can still shrink a `host` file under us: the guard turns the SIGBUS of the
 * thread that serves it into a broken segment, and only that session ends.
 */
#ifndef VCUDA_SIDECAR_MEMORY_SEGMENT_H
#define VCUDA_SIDECAR_MEMORY_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "transport/segments.h"

/* The most bytes that all segments of this process may have together; 0 = no limit. LABEL (the
 * pod's UID, or "host") is in what /proc/PID/maps says of `pod` memory. Before the first one.
 */
void segment_configure(uint64_t bytes, const char *label);

/* Reserves and maps `size` bytes (rounded up to pages). 0, or -errno with *error. Thread-safe.
 * A GiB takes 0.3 s: BETWEEN(ARGUMENT) is called now and then (NULL: not). */
int segment_create(enum channel_mode mode, uint64_t size, struct segment **segment,
	void (*between)(void *argument), void *argument, struct error *error);
/* The channel's own one, of LAYOUT. It counts in full against the limit, but of the arena and
 * of the bounce buffer only the first CHANNEL_FIRST bytes have memory: most programs need no
 * more, and 13 MiB are 6 ms of processor. */
int segment_create_own(enum channel_mode mode, const struct channel_page *layout,
	struct segment **segment, struct error *error);
/* All of it has memory from then on. 0, or -errno with *error. */
int segment_fill(struct segment *segment, void (*between)(void *argument), void *argument,
	struct error *error);
/* What another sidecar of this user made and a program brings back: FD, which it takes where it
 * returns 0, of SIZE bytes. A file that we could not have made, or that may shrink under a
 * `pod`, is -EPERM; else -errno; each with *error. */
int segment_adopt(enum channel_mode mode, int fd, uint64_t size, struct segment **segment,
	struct error *error);
void segment_free(struct segment *segment);
/* Frees its pages though a program may map it still: what that touches from then on is its own,
 * so what the budget says is free is free. Nobody reads it any more. */
void segment_empty(struct segment *segment);

/* Empties and frees what is on `closing`: no receive or send under way names it any more. */
void segments_reap(struct segments *segments);
/* EMPTY: the program is gone, or says so; else it may still read why its session ended. */
void segments_fini(struct segments *segments, bool empty);

#endif
