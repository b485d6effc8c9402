/* SPDX-License-Identifier: Apache-2.0
 *
 * The channel: one app process joined to the sidecar by a Unix socket and one shared segment.
 *
 *     struct channel_page     one page: who, sizes, ring indices, idle flag, end of session
 *     slots                   CHANNEL_SLOTS x struct channel_slot: answers to calls
 *     counters                   CHANNEL_COUNTERS x u64: values that the agent pushes
 *     upcalls                 CHANNEL_UPCALLS x struct channel_upcall: a ring, sidecar -> app
 *     ring                    commands, app -> sidecar: frames, 16-byte aligned
 *     arena                   payloads of frames that are in the ring, app -> sidecar
 *     bounce                 payloads of replies, sidecar -> app
 *
 * The sidecar creates the segment and gives it to one peer, whom it does not trust: it loads
 * each index once, copies a header before it looks at it, and checks every offset.  The shim
 * trusts the sidecar with its memory but bounds what it copies by what its caller allowed.
 *
 * Waiting, both ways: spin a little, publish that one sleeps, full fence, look again, sleep
 * with a deadline.  The other side publishes, full fence, wakes only who sleeps.
 */
#ifndef VCUDA_PROTOCOL_WIRE_CHANNEL_H
#define VCUDA_PROTOCOL_WIRE_CHANNEL_H

#include <stdint.h>
#include <stdatomic.h>

#define CHANNEL_MAGIC 0x6c6e6863u /* "chnl" */
#define CHANNEL_VERSION 2u
#define CHANNEL_SOCKET "/run/tensor-fusion/vcuda.sock" /* $VCUDA_SOCKET overrides */

#define CHANNEL_SLOTS 128
#define CHANNEL_SLOT_BODY 2016
#define CHANNEL_COUNTERS 8192
#define CHANNEL_UPCALLS 1024
/* Defaults; the page holds the real sizes (powers of two). */
#define CHANNEL_RING (512u * 1024)
#define CHANNEL_ARENA (8u << 20)
#define CHANNEL_BOUNCE (4u << 20)
/* Of either, over lines that are long: 1 Gb/s for 30 ms are 4 MB, and what a lost packet holds
 * up until it came again is as much two or three times. */
#define CHANNEL_FAR (32u << 20)
/* CHANNEL_FEATURE_RESERVE: of the arena and of the bounce buffer only so many bytes have memory
 * at first: what one frame may have, so a program gets on with them where there is no more. */
#define CHANNEL_FIRST (1u << 20)

/* counters[]: the first ones have a fixed meaning, the rest the shim gives out. */
enum channel_counter {
	COUNTER_ERROR = 0,    /* CUresult of the first sticky error, 0 = none */
	COUNTER_UNMAPPED = 1, /* highest ticket of vcudaMemUnmap that is done (done in order) */
	/* Bytes of text that kernels have printed so far, to stdout and to stderr (failed
	 * assertions): more than the shim has fetched means that vcudaOutput has some. Set
	 * before a sync is answered and before COUNTER_ERROR. COUNTER_OUTPUT + enum output. */
	COUNTER_OUTPUT = 2,
	COUNTER_OUTPUT_ERRORS = 3,
	/* Bytes of frames that the worker keeps behind host functions, where they are so many
	 * that the app's threads are to wait; else 0. */
	COUNTER_KEPT = 4,
	COUNTER_FIRST_FREE = 16,
};

/* vcudaOutput's `which`. */
enum output { OUTPUT_STDOUT = 0, OUTPUT_STDERR = 1, OUTPUTS };

enum upcall {
	UPCALL_HOST_FUNC =
		1, /* value: ticket of vcudaHostFunc; run it, then post vcudaHostFuncDone */
};

enum channel_state {
	CHANNEL_OPENING = 0,
	CHANNEL_OPEN = 1,
	CHANNEL_LOST = 2, /* `lost` and `text` say why; never left */
};

struct channel_slot {
	/* 0: the call is under way; 1: answered.  The shim sets it to 0 before it publishes the
	 * frame; the sidecar sets it to 1 after the rest of the slot. Futex word. */
	_Atomic uint32_t answered;
	_Atomic uint32_t
		sleeping; /* set by the waiting thread before it sleeps on `answered` */
	uint32_t status;
	uint32_t deferred;
	uint32_t body;	  /* bytes in data */
	uint32_t payload; /* bytes that arrived where the request said */
	uint64_t seq;	  /* what the agent had taken over when it answered */
	unsigned char data[CHANNEL_SLOT_BODY];
};
_Static_assert(sizeof(struct channel_slot) == 2048, "a slot is half a page");

struct channel_upcall {
	uint32_t what;
	uint32_t frame; /* number of the agent's frame that it came with, low 32 bits */
	uint64_t value;
};

#define CHANNEL_ADDRESS 272

/* What a sidecar must know that takes the place of this one (docs/RESUME.md).  Each word is
 * true at whatever instruction its writer dies.  The program could write here as well; the next
 * sidecar checks all of it, and goes to no agent that its own configuration does not name. */
struct channel_carry {
	uint32_t grace_ms; /* 0: the session ends with its sidecar */
	uint32_t uid;	   /* of the program */
	uint64_t features; /* of the session: SESSION_FEATURE_… */
	uint8_t session[16];
	_Atomic uint32_t serves; /* secrets[serves & 1] is the newest that the agent gave */
	uint32_t reserved;
	uint8_t secrets[2][16];
	/* Of the agent's numbered frames, those that did what they are for. The next one may
	 * have done it too. */
	_Atomic uint64_t counted;
	/* The frame whose answer is being given, and to which call: where another call, or
	 * none, waits in its slot, the program has it. */
	_Atomic uint64_t giving, giving_call;
	char address[CHANNEL_ADDRESS]; /* of the agent; NUL-terminated */
};

struct channel_page {
	uint32_t magic;
	uint32_t version;
	uint64_t size;	/* of the whole segment */
	uint64_t slots; /* offsets from the segment's start … */
	uint64_t counters;
	uint64_t upcalls;
	uint64_t ring;
	uint64_t ring_size; /* … and sizes, bytes */
	uint64_t arena;
	uint64_t arena_size;
	uint64_t bounce;
	uint64_t bounce_size;

	/* Written by the app. Free-running byte counts; position = count & (ring_size - 1). */
	_Alignas(64) _Atomic uint64_t tail;	   /* published */
	_Alignas(64) _Atomic uint64_t upcall_head; /* upcalls taken, a count */

	/* Written by the sidecar. */
	_Alignas(64) _Atomic uint64_t head; /* released: acknowledged by the agent */
	/* CHANNEL_FEATURE_CAPTURED: as `head`, but for the arena: nobody reads it any more. */
	_Atomic uint64_t captured;
	_Alignas(64) _Atomic uint32_t idle; /* 1: it sleeps, ring the doorbell (eventfd) */
	_Alignas(64) _Atomic uint64_t upcall_tail; /* upcalls published, a count */
	_Alignas(64) _Atomic uint32_t
		progress;		     /* futex word: bumped when head moves and
					      * `want_progress` is set, when a counter changes,
					      * an upcall comes, and when the state changes */
	_Alignas(64) _Atomic uint32_t state; /* enum channel_state */
	uint32_t lost;			     /* CUresult to answer from then on */
	char text[256];			     /* one line, NUL-terminated */
	/* Written by the app: number of threads that sleep on `progress`. */
	_Alignas(64) _Atomic uint32_t want_progress;
	/* Statistics of the wire, written by the sidecar (frames and bytes, headers included).
	 */
	_Alignas(64) _Atomic uint64_t frames_sent;
	_Atomic uint64_t bytes_sent;
	_Atomic uint64_t frames_received;
	_Atomic uint64_t bytes_received;
	_Alignas(64) struct channel_carry carry;
	/* Written by the app: the number of the frame whose answer slot TAG is for, before that
	 * is published; 0 before the slot is used again. */
	_Alignas(64) _Atomic uint64_t calls[CHANNEL_SLOTS];
	/* Written by the sidecar of a program that shares memory with its worker: how often it
	 * has said what a number of pinned memory is (transport/local.h). */
	_Alignas(64) _Atomic uint64_t named;
	/* Likewise, before the app is answered: the most bytes of a payload in pinned memory
	 * that the worker takes or gives in one frame, where that is more than FRAME_CHUNK;
	 * else 0. */
	_Atomic uint64_t lent_most;
	/* Likewise: over how many connections the payloads of one copy may travel at once, so
	 * that it is worth cutting into so many; 0: one. */
	_Atomic uint32_t streams;
};
_Static_assert(sizeof(struct channel_page) <= 4096, "one page");

/* A page of the sidecar's that apps can only read, the same for all: while `beats` changes,
 * each second, its process runs. */
struct channel_heartbeat {
	uint32_t magic;
	uint32_t version;
	_Atomic uint64_t beats;
};

/* The Unix socket: SOCK_SEQPACKET, one request and one answer at a time. */
enum channel_op {
	CHANNEL_ATTACH = 1, /* first; answer brings fds: [0] doorbell eventfd, [1] segment */
	/* 2 was HELD, of a version in which host memory had a name. */
	CHANNEL_PIN = 3, /* size = bytes of pinned memory wanted; answer: segment number, and
			  * the fd [0] */
	CHANNEL_UNPIN =
		4, /* segment; frames that name it must be acknowledged before. No answer */
	/* An answer, not a request: comes at once and before ATTACH's, which may take as long
	 * as the agent does. fd [0]: struct channel_heartbeat */
	CHANNEL_HEARTBEAT = 5,
	/* First, instead of ATTACH: the sidecar that made the segment is gone, and its session
	 * is to go on here. fd [0]: segment 0 of `size` bytes; `segment`: how many HOLDs come
	 * behind it; `away_ms`: for how long nobody has served. The answer comes behind them,
	 * as ATTACH's does; fd [0]: another doorbell. */
	CHANNEL_ADOPT = 6,
	CHANNEL_HOLD = 7, /* behind ADOPT: `segment` is fd [0] of `size` bytes. No answer */
	/* `relay`: the agents of two sessions of this process do not reach each other; the
	 * sidecar is to carry what their workers say to each other (direct.h). */
	CHANNEL_RELAY = 8,
	/* All of the arena and of the bounce buffer is to have memory; the answer: it has. */
	CHANNEL_RESERVE = 9,
	/* Instead of ATTACH, for `vcuda-client status|drain`: the answer, then the socket
	   closes. */
	CHANNEL_STATUS = 16,  /* fd [0]: a memfd with JSON, `size` bytes */
	CHANNEL_METRICS = 18, /* likewise Prometheus' text; segment 1: as OpenMetrics */
	CHANNEL_CALLS = 19,   /* likewise JSON: percentiles of each kind of call */
	CHANNEL_DRAIN = 17,   /* no new processes; root or the sidecar's own user only */
};

/* What the memory is made of. It has no name in either, and goes by descriptor: what is mounted
 * on the app's /dev/shm does not matter, and nobody else can open it. */
enum channel_mode {
	CHANNEL_HOST = 1, /* POSIX shm: a file of the sidecar's /dev/shm */
	CHANNEL_POD = 2,  /* sealed memfd */
};

/* ATTACH: the app writes `calls` and comes back with ADOPT; its answer: the sidecar writes
 * `carry`. */
#define CHANNEL_FEATURE_ADOPT (1ull << 0)
/* ATTACH: the app attaches once for each of the sidecar's agents: `segment` is the number of
 * the one that it wants now; the answer says how many there are. */
#define CHANNEL_FEATURE_AGENTS (1ull << 1)

/* ATTACH: the app takes its arena back by `captured`, not by `head`; its answer: it is to. */
#define CHANNEL_FEATURE_CAPTURED (1ull << 2)
/* ATTACH: the app's payloads are to travel as they are. */
#define CHANNEL_FEATURE_PLAIN (1ull << 5)
/* ATTACH, ADOPT: the app asks for RELAY; the answer: it may. */
#define CHANNEL_FEATURE_RELAY (1ull << 8)

/* ATTACH: the app's payloads are not to be told by their content. */
#define CHANNEL_FEATURE_UNNAMED (1ull << 9)

/* ATTACH, ADOPT: the app asks for RESERVE before it uses more than CHANNEL_FIRST; the answer:
 * it is to, and may. */
#define CHANNEL_FEATURE_RESERVE (1ull << 10)

#define CHANNEL_AGENTS 64 /* at most */

/* This channel's session and another of the process: the other one, and a ticket of each end's
 * agent for the two (SESSION_PEER), this one's first. */
struct channel_relay {
	uint8_t session[16];
	uint8_t tickets[2][16];
};

struct channel_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op;
	uint32_t segment;
	uint64_t size;
	uint64_t features;
	int32_t pid;	  /* as the app sees it; SO_PEERCRED is what counts */
	uint32_t away_ms; /* ADOPT */
	union {
		char program[64]; /* for logs and `status`; NUL-terminated */
		struct channel_relay relay;
	};
};
_Static_assert(sizeof(struct channel_request) == 104, "releases speak to each other");

struct channel_answer {
	uint32_t magic;
	uint32_t version;
	uint32_t op;
	uint32_t status; /* CUresult; 0 = granted */
	uint32_t mode;	 /* enum channel_mode */
	uint32_t segment;
	uint64_t size;
	uint64_t features;
	char session[36]; /* ATTACH: in hexadecimal, as in all logs; NUL-terminated */
	uint32_t agents;  /* ATTACH: how many there are; 0: one, says a sidecar that knows no
			     more */
	char reserved[24];
	char agent[128]; /* HOST:PORT, for messages */
	char text[256];	 /* what went wrong, one line */
};

#endif
