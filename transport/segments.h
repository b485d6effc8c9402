/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that one program shares with who carries its frames: the channel's own segment
 * (number 0) and the pinned ones, by number.  Both the sidecar and, on the same machine, a
 * worker have such a table.  Nothing here makes memory or gives it back.
 */
#ifndef VCUDA_TRANSPORT_SEGMENTS_H
#define VCUDA_TRANSPORT_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/channel.h"

#define SEGMENTS_MAX                                                                           \
	4096 /* pinned ones a process: one mapping each, of 65530 a process has                \
	      */

struct segment {
	unsigned char *base;
	size_t size;
	int fd;
	struct segment *next; /* segments.closing */
};

/* The segments of one channel. Only the channel's thread touches it. */
struct segments {
	struct segment *at[SEGMENTS_MAX + 1]; /* [0]: the channel's own */
	uint64_t arena, arena_size;	      /* in segment 0; private copies */
	uint64_t bounce, bounce_size;
	uint32_t pinned;
	uint64_t pinned_bytes;
	struct segment *closing; /* given back, but bytes may still be on their way */
};

/* [offset, offset + length) of a segment, where the app may send from: the arena, or pinned
 * memory. NULL where it does not lie inside. */
void *segments_out(
	const struct segments *segments, uint32_t number, uint64_t offset, uint64_t length);
/* The same for where answers may land: the bounce buffer, or pinned memory. */
void *segments_in(
	const struct segments *segments, uint32_t number, uint64_t offset, uint64_t length);

/* A free number for SEGMENT, or -ENOSPC. */
int segments_add(struct segments *segments, struct segment *segment);
/* SEGMENT as NUMBER, which is free: 0, or -EINVAL. */
int segments_put(struct segments *segments, uint32_t number, struct segment *segment);
/* Takes NUMBER out of use and puts it on `closing`. -ENOENT. */
int segments_remove(struct segments *segments, uint32_t number);

/* The layout of segment 0 with a ring, an arena and a bounce buffer of these sizes: fills in
 * what the page says of it. Its size in bytes. */
uint64_t segments_layout(
	struct channel_page *page, uint64_t ring, uint64_t arena, uint64_t bounce);

/* Once a process. */
void segment_guard_install(void);
/* This thread serves these segments (NULL: none); a stripe's beside the channel's. */
void segment_guard(const struct segments *segments);
/* A page of them went away under this thread. */
bool segment_broken(void);

#endif
