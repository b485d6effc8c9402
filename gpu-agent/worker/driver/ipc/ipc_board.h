/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory by which workers share events: a board.  Sealed, mapped by each worker that has an
 * event of it, and registered with its driver, so that streams wait for its words and write
 * them.  The front keeps its descriptor under a name, as it does with shared memory.
 *
 * A session that records puts a number, which grows, into a word of a track: behind the work of
 * one stream of its own, so that a track's numbers come in their order.  An event says which
 * track and number stand for its last recording, whoever made it.  Who waited for the one
 * before still waits for that.
 *
 * A session holds a lock on the byte of its number for as long as its process lives: the kernel
 * lets it go whatever ends the process, and the others see it.
 *
 * All words are a tenant's, as hostile as the other session: what is read is checked, and a
 * protocol violation makes those who share wait, or not wait, for their own event.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_BOARD_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_BOARD_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;
struct worker_stream;

#define BOARD_EVENTS 1024u
#define BOARD_TRACKS 2044u
#define BOARD_BYTES 65536u
#define BOARD_SESSIONS 127u /* numbered from 1: bits of two words */

/* A track's number, and above it the track, or the session whose track it is. */
#define BOARD_SHIFT 48
#define BOARD_NUMBERS ((1ull << BOARD_SHIFT) - 1)

/* A track of this session's own. */
struct board_own {
	uint32_t track;
	bool stale; /* its stream went with work that was not done: it is not used again */
	const struct worker_stream *stream; /* NULL: nobody's, any more */
	uint64_t number;		    /* the last one */
};

struct board {
	struct board *next;
	uint8_t name[16];
	uint32_t device; /* as the session numbers them */
	bool ours;	 /* it was made here */
	int fd;
	struct board_page *page;
	CUdeviceptr address;
	uint32_t session; /* this one's number */
	uint32_t uses;	  /* events and waits of this session's */
	uint32_t next_event;
	uint16_t has[BOARD_EVENTS]; /* how many names of ours stand for each */
	struct board_own *tracks;
	uint32_t track_count, track_room;
};

/* A new one, without a name, for that device. */
CUresult board_new(struct worker *w, uint32_t device, struct board **board);
/* Another session's; takes *FD (then -1) where it succeeds. */
CUresult board_open(struct worker *w, uint32_t device, int *fd, struct board **board);
/* Nothing of this session uses it, nor its driver. */
void board_close(struct worker *w, struct board *board);
/* This process is there, from now on, with a number of its own. Nobody else closes a descriptor
 * of the board here afterwards: that would let its locks go. */
CUresult board_join(struct board *board);

/* A free event; false: there is none. *NUMBER says which of those that were at that place, too.
 */
bool board_event_new(struct board *board, uint32_t *number);
/* This session has it as well; false: it is another one now. */
bool board_event_get(struct board *board, uint32_t number);
void board_event_put(struct board *board, uint32_t number);
/* What stands for its last recording; 0: there is none. */
uint64_t board_event(const struct board *board, uint32_t number);
void board_event_set(struct board *board, uint32_t number, uint64_t recording);

/* The recording is done, or whoever made it is gone. NULL, or when the latter was looked at
 * last (ns): it is so now and then. */
bool board_done(struct board *board, uint64_t recording, uint64_t *looked);
/* The device's address of the word that RECORDING is awaited at, and the host's. */
CUdeviceptr board_word(const struct board *board, uint64_t recording, uint64_t **host);

/* A recording behind what STREAM has: its track's next number, which the stream is to write. */
CUresult board_next(
	struct board *board, const struct worker_stream *stream, uint64_t *recording);
/* The stream has got it. */
void board_written(struct board *board, const struct worker_stream *stream, uint64_t recording);
void board_stream_gone(struct board *board, const struct worker_stream *stream);
/* What this session recorded will never be done: nobody waits for it. */
void board_give_up(struct board *board);

#endif
