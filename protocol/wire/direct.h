/* SPDX-License-Identifier: Apache-2.0
 *
 * What two workers of one process' sessions say to each other, when the process has several
 * agents: copies between their devices, and events that the other one's streams wait for.
 *
 * The client gets a ticket from the one agent, for this pair of sessions and once, and gives it
 * to the other, whose front dials the first one's receive port with it (SESSION_PEER). Both
 * fronts hand the connection to their workers, and messages go both ways.
 *
 * A copy has a number of the client's.  READY: the place for it is known and its time has come;
 * before it no DATA is sent.  DATA: bytes of the box, which is packed row by row, from `offset`
 * on: whole rows of a slice, or a part of one row.  DONE: all of it is there.  FAILED, of
 * either end: it will never be, and `value` is the CUresult.  SIGNAL: what has that number is
 * done, and who waits for it may go on.
 */
#ifndef VCUDA_PROTOCOL_WIRE_DIRECT_H
#define VCUDA_PROTOCOL_WIRE_DIRECT_H

#include <stdint.h>

#define DIRECT_MAGIC 0xD14Cu
#define DIRECT_VERSION 1u
#define DIRECT_PIECE (512u * 1024) /* of DATA at most */

enum direct_what {
	DIRECT_HELLO = 1, /* first, both ways: value = DIRECT_VERSION */
	DIRECT_READY = 2,
	DIRECT_DATA = 3,
	DIRECT_DONE = 4,
	DIRECT_FAILED = 5,
	DIRECT_SIGNAL = 6,
	DIRECT_ALIVE = 7, /* each DIRECT_ALIVE_NS where nothing else is said */
};

struct direct_message {
	uint16_t magic;
	uint16_t what;	 /* enum direct_what */
	uint32_t length; /* DATA: of the bytes behind it; else 0 */
	uint64_t id;
	uint64_t value; /* DATA: offset; HELLO, FAILED: see there; else 0 */
};
_Static_assert(sizeof(struct direct_message) == 24, "");

/* vcudaDirectSend's and vcudaDirectReceive's `flags`. */
#define DIRECT_BEHIND 1u /* it begins when the stream has come to it … */
#define DIRECT_HOLDS 2u	 /* … and the stream goes on when it is done */

/* The side of a copy that is here, and the extent that both have: protocol/wire/graph.h's
 * words.
 */
struct direct_box {
	uint64_t array; /* 0: device memory */
	uint64_t at, pitch, slice;
	uint64_t width, height, depth;
};

#endif
