/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's own state, for the files that make it up: worker.c (start, hand-off), loop.c
 * (frames in, the turn), stash.c (frames that are kept), reply.c (frames out), staging.c
 * (pinned memory between socket and GPU), fence.c (what waits for the GPU), handle.c (handles),
 * and the serve functions by subject.
 *
 * Everything belongs to the one loop thread, but for struct callbacks, which the driver's
 * callback thread shares under its lock, and what is on its way out (reply.c), which the thread
 * of watchdog.c sends while the loop is in a call that does not return.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_WORKER_STATE_H
#define VCUDA_GPU_AGENT_WORKER_WORKER_STATE_H

#include <pthread.h>

#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/handoff.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/wire/channel.h"
#include "gpu-agent/generated/cuda_driver.h"
#include "gpu-agent/generated/serve_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/open.h"
#include "transport/transport.h"

/* Pinned memory for payloads on their way, each direction. Sixteen chunks: enough that socket
 * and copy engine overlap, and 32 MiB of pinned memory a worker in all. */
#define STAGING_BYTES (16u << 20)
#define STAGING_ALIGN 256u
#define STAGING_RANGES 4096

/* A window a device: 1 TiB from WINDOW_BASE on. Above ASan's shadow, below where Linux maps
 * libraries and stacks; both worker and app can have it (DESIGN 4). */
#define WINDOW_BASE 0x200000000000ull
#define WINDOW_BYTES (1ull << 40)

#define RECEIVE_BYTES (256u * 1024)
#define SEND_BYTES (512u * 1024) /* headers and bodies on their way out */
#define SEND_SEGMENTS 1024

/* Acknowledge after so many frames or bytes; else when nothing has come for a while: an answer,
 * which acknowledges too, is mostly on its way, and a frame of its own costs its sender 4 us.
 */
#define ACK_IDLE_NS 100000u
#define ACK_FRAMES 64
#define ACK_BYTES (256u * 1024)

/* A ring of pinned memory, taken and released in order. */
struct staging_range {
	uint32_t end;	/* ring position behind it */
	uint32_t bytes; /* with the skipped tail of the ring, if any */
	CUevent event;	/* not NULL: busy until it is done */
	uint16_t context;
	_Atomic bool done; /* set by whoever sent its bytes */
};
/* One more connection, and the thread that receives from it. */
#define STRIPE_SLOTS 8
struct stripe {
	struct link *link;
	int wake; /* eventfd: a piece came while the loop slept for it */
	pthread_t thread;
	const struct cuda_driver *cuda;
	CUcontext context;
	unsigned char *base; /* STRIPE_SLOTS times FRAME_PAYLOAD_MAX, pinned */
	uint64_t spin_ns;
	uint32_t taken;		 /* the loop's: pieces that frames have claimed */
	_Atomic uint32_t filled; /* pieces received */
	_Atomic uint32_t freed;	 /* slots that the GPU has read; the thread sleeps on it */
	_Atomic uint32_t asleep, awaited;
	_Atomic bool over;   /* nothing more will come */
	_Atomic bool failed; /* since there is no pinned memory for it */
	struct stripe_slot {
		uint32_t length;
		struct staging_range range;
	} slots[STRIPE_SLOTS];
};
struct staging {
	unsigned char *base;
	uint32_t size;
	uint32_t head; /* next free byte */
	uint32_t used;
	struct staging_range *ranges; /* STAGING_RANGES, FIFO */
	uint32_t first, count;
};

/* A stream of the session: the legacy one of a context, or one minted by the shim. */
struct worker_stream {
	CUstream stream;
	uint16_t context;
	uint64_t work;		      /* times that work was put on it */
	uint64_t clean;		      /* `work` when it was last seen to be done */
	uint32_t flags;		      /* of vcudaStreamCreate */
	struct worker_graph *capture; /* that it began */
	CUevent before; /* while it captures: behind what it had to do until then */
	uint64_t before_work;
	CUevent mark; /* behind the first `marked` pieces of work (limits.c) */
	uint64_t marked;
	struct worker_stream *next, **link;
};

/* What waits for the GPU. */
enum pending_what {
	PENDING_REPLY,	  /* answers `tag` */
	PENDING_COPY_OUT, /* answers `tag`, or pushes FRAME_DATA, with the bytes in staging */
	PENDING_COUNTER,  /* sets counters[counter] = value */
	PENDING_STREAM,	  /* destroys the stream */
	PENDING_UNMAP,	  /* takes the memory away, then sets COUNTER_UNMAPPED */
	PENDING_LOOK,	  /* nothing: a fault before it is noticed though nobody asks */
};
struct pending_event {
	CUevent event;
	struct worker_stream *stream; /* NULL: not a stream's, or the stream is gone */
	uint16_t context;
	uint64_t work; /* stream->work when it was recorded */
	bool ours;     /* from the event pool, goes back there */
	bool adopted;  /* `ours`, but the app's once: another one may wait for it too */
};
struct pending {
	struct pending *next;
	enum pending_what what;
	uint16_t context;
	uint16_t tag;
	bool post;
	struct pending_event *events;
	struct pending_event one;	      /* the usual case: events == &one */
	uint32_t event_count;		      /* those not seen done yet are at the front */
	struct frame_destination destination; /* COPY_OUT */
	struct staging_range *range;
	unsigned char *bytes;
	uint32_t length;
	uint32_t counter; /* COUNTER */
	uint64_t value;	  /* WORD: value; UNMAP: ticket */
	uint32_t device;  /* UNMAP */
	uint64_t address, size;
	struct worker_stream *stream; /* STREAM */
};

struct vmm; /* memory with a name (vmm.c) */
struct mapping {
	CUmemGenericAllocationHandle memory;
	uint32_t granules; /* 0: nothing begins here */
	struct vmm *of;	   /* NULL: the memory goes with its mapping */
};
struct worker_device {
	CUdevice device;
	CUcontext primary;
	uint64_t window, window_bytes, granularity;
	uint64_t lease, used;
	uint64_t told;		  /* of the lease: what the shim knows of */
	uint64_t extra;		  /* what is the session's beside the lease (extra.c) */
	uint64_t others;	  /* what the pod's other sessions have of the limit */
	uint64_t *mapped;	  /* a bit a granule */
	struct mapping *mappings; /* by first granule */
	struct open_device open;  /* what vcudaOpen tells */
};

struct name {
	uint32_t generation;
	uint8_t kind;
	uint16_t context;
	uint64_t owner; /* a function: its module's handle; 0: none */
	void *object;
};

struct known_range { /* device memory that lies outside the windows: modules' globals */
	uint64_t address, bytes;
};

struct host_func;
struct closing;
struct worker_graph;

struct worker {
	const struct agent_config *config;
	struct cuda_driver cuda;
	int handoff;
	uint64_t spin_ns;

	uint32_t device_count;
	struct worker_device devices[HANDOFF_DEVICES];
	uint64_t memory_limit; /* of each GPU, for all sessions of the pod together; 0 = none */

	CUcontext contexts[CONTEXT_MAX];
	struct worker_stream legacy[CONTEXT_MAX];
	uint16_t current; /* the driver's current context, by number */
	struct worker_stream *streams;
	struct worker_stream *deep; /* has more work than it may, as far as is known */

	struct name *names;
	uint32_t name_count;

	uint32_t captures; /* open ones */
	int dot;	   /* the text of a graph, while it is fetched; 0: none */

	struct known_range *ranges;
	uint32_t range_count, range_room;

	struct link *link;
	const struct transport *transport;	     /* that made it */
	struct stripe *stripes[SESSION_STRIPES + 1]; /* by number */
	uint32_t stripe_count;
	bool ended;	     /* the loop leaves */
	CUresult end_status; /* what the app is told; SUCCESS: it ended the session itself */
	char end_text[192];

	/* receiving */
	unsigned char *receive;
	uint32_t receive_at, receive_end;
	bool receive_small; /* the last frame had a big payload: read just a header's worth */
	bool have_frame;    /* `frame` is complete but for `payload_missing` bytes */
	struct frame_header frame;
	unsigned char *frame_body;
	struct staging_range *frame_range;
	unsigned char *frame_payload;
	uint32_t payload_missing;
	uint32_t payload_stripe; /* which brings it; 0: the link itself */
	bool payload_waits;	 /* the next frame needs staging, and there is none */
	uint64_t taken;		 /* highest sequence number taken over */
	uint64_t acked;
	uint32_t unacked_bytes;

	/* sending: all of it under `send_lock`; what is _Atomic is looked at without */
	_Atomic uint32_t send_lock;
	unsigned char *send;
	uint32_t send_head;
	_Atomic uint32_t send_used;
	struct send_segment {
		const unsigned char *bytes;
		uint32_t length, done;
		uint32_t ring_bytes;	     /* of `send` that it holds */
		struct staging_range *range; /* released when it is sent */
	} *segments;
	uint32_t segment_first;
	_Atomic uint32_t segment_count;
	uint64_t send_seq; /* what the last frame acknowledged */
	_Atomic uint64_t sent_bytes;

	_Atomic uint64_t beat; /* of the loop; odd: it is in a call (watchdog.c) */

	uint64_t alive_frames, alive_at; /* frames sent, and when that was looked at (ns) */
	/* When the client was heard last, up to which byte; when it was asked to say something.
	 */
	uint64_t heard_at, heard_bytes, asked_at;

	struct staging in, out;
	struct pending *pending, **pending_tail;
	struct pending *pending_free;
	uint32_t pending_count;
	CUevent *event_pool[CONTEXT_MAX];
	uint32_t event_count[CONTEXT_MAX];

	CUresult deferred; /* first failed post since the last reply */
	CUresult sticky;   /* first error that ended a context */

	/* images on their way (module.c), the oldest first */
	struct upload *uploads;
	uint32_t upload_count;
	uint64_t upload_bytes;

	/* host functions (callback.c) */
	struct callbacks {
		pthread_mutex_t lock;
		pthread_cond_t done;
		struct host_func *waiting; /* in the driver's threads, the oldest first */
		int wake;		   /* eventfd: one more is waiting */
		bool behind;		   /* the loop's: the app has not been told of some */
		bool over;
	} callbacks;
	uint32_t host_funcs;			   /* issued, not done */
	struct closing *closings, **closings_tail; /* until none is outstanding (closing.c) */
	uint32_t issued_behind;			   /* frames issued while one was outstanding */
	struct stash {				   /* frames kept for later (stash.c) */
		unsigned char *bytes;
		size_t at, used, room;
	} stash, parked;	  /* parked: calls, which keep back nothing */
	unsigned char *kept_body; /* of the one being served, aligned */

	struct output_text { /* what kernels print, by enum output */
		int fd;	     /* memfd that stands for stdout, stderr */
		uint64_t told, fetched;
		uint64_t dropped; /* the app has not read so yet */
		uint64_t skipped; /* dropped ever, less the notices of it */
		uint64_t counter; /* what the app knows there is: told - skipped */
	} outputs[OUTPUTS];

	/* memory that other sessions may have, and what was asked of the front (ipc.c) */
	struct ipc_share {
		uint32_t device;
		uint64_t address, bytes;
		uint8_t name[16];
	} *shares;
	uint32_t share_count, share_room;
	struct ipc_wait {
		int tag; /* -1: nothing waits */
		bool import;
		uint32_t device;
		uint64_t address, bytes;
	} ipc;

	/* leases asked for and not granted yet: the tag that waits, by device */
	int lease_tag[HANDOFF_DEVICES];
#define LEASE_TAG_EXTRA CHANNEL_SLOTS /* nobody's: the worker's own wish */

	struct handoff stats;
	uint64_t stats_at;
};

/* worker.c */
CUresult worker_use(struct worker *w, uint16_t context); /* makes it current */
void worker_end(struct worker *w, CUresult status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void worker_note(struct worker *w, CUresult status); /* keeps sticky errors */
void worker_control(struct worker *w); /* one message of the front's, if there is one */
/* Tells the front why and ends the process. Whoever owns the link calls it. */
_Noreturn void worker_leave(struct worker *w);
bool worker_is_sticky(CUresult status);

/* extra.c: device memory of a session that no mapping shows. */
void extra_open(struct worker *w); /* after the driver */
CUresult extra_context(struct worker *w, uint16_t context, uint32_t device);
void extra_context_gone(struct worker *w, uint16_t context);

/* loop.c */
void loop_run(struct worker *w);
/* Whether the frame's call has the mark SERVE_SLOW or SERVE_WAITS. */
bool loop_marked(const struct serve_entry *entry, const struct frame_header *h, uint16_t mark);
/* There is room for what the frame at hand answers. */
bool loop_can_serve(struct worker *w);
/* Serves it and answers; loop_range_done: its payload is done with then. */
void loop_serve_frame(struct worker *w);
void loop_range_done(struct worker *w);

/* stash.c */
/* Whether the frame at hand has to be kept, or to wait for those that are. */
bool stash_behind(struct worker *w);
/* What a host function needs to end cannot wait behind it (STREAM_AHEAD). */
bool stash_overtakes(struct worker *w);
/* Keeps the frame at hand for later. false: it can wait where it is, since nothing has to come
 * through to here. */
bool stash_keep(struct worker *w);
/* Serves those that can be served now, while what the socket has brought of another stays as it
 * is. false: there was none. */
bool stash_serve(struct worker *w);

/* watchdog.c: what looks after the session while the loop is in a call of the driver or of a
 * library. Each such call, but for those that surely return at once, stands between the two. */
void watchdog_start(struct worker *w);
static inline void watchdog_beat(struct worker *w)
{
	atomic_store_explicit(&w->beat,
		atomic_load_explicit(&w->beat, memory_order_relaxed) + 1, memory_order_release);
}
static inline void watchdog_enter(struct worker *w)
{
	watchdog_beat(w);
}
static inline void watchdog_leave(struct worker *w)
{
	watchdog_beat(w);
}

/* reply.c */
bool reply_room(const struct worker *w);
void reply_send(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n);
void reply_payload(struct worker *w, enum frame_kind kind, uint16_t tag, CUresult status,
	const struct frame_destination *destination, const void *bytes, uint32_t n,
	struct staging_range *range);
void reply_update(struct worker *w, uint32_t counter, uint64_t value);
void reply_upcall(struct worker *w, uint32_t what, uint64_t value);
void reply_plain(struct worker *w, enum frame_kind kind, CUresult status, const char *text);
bool reply_flush(struct worker *w);	  /* true: something went out */
bool reply_waits(const struct worker *w); /* something has not gone out yet */
/* For another thread than the loop's: sends what waits, or where nothing does and `pong`, a
 * PONG. 0 or -errno: the link is dead. */
int reply_flush_beside(struct worker *w, bool pong);

/* staging.c */
int staging_open(struct worker *w, struct staging *s);
/* NULL: no room now. */
struct staging_range *staging_take(
	struct worker *w, struct staging *s, uint32_t n, unsigned char **bytes);
void staging_done(struct staging_range *range);
/* Busy until what was put on `stream` so far is done. */
CUresult staging_busy(
	struct worker *w, struct staging_range *range, uint16_t context, CUstream stream);
void staging_reap(struct worker *w, struct staging *s);
/* The context is done with, and so are its events. */
void staging_forget(struct worker *w, struct staging *s, uint16_t context);
void staging_range_forget(struct worker *w, struct staging_range *range, uint16_t context);
/* Nobody reads it any more. */
bool staging_free(struct worker *w, struct staging_range *range);

/* stripe.c. stripe_open: owns the connection from then on; ends the session where it cannot. */
void stripe_open(struct worker *w, uint32_t number, int fd);
/* The next piece, which must have N bytes; its range is the loop's until it is done. -EAGAIN:
 * not there yet; -ECONNRESET: it never will be; -ENOMEM: nor ever could; -EPROTO: another
 * length. */
int stripe_take(
	struct stripe *stripe, uint32_t n, unsigned char **bytes, struct staging_range **range);
/* Before sleeping on stripe->wake: false where there is no need to. stripe_awake: afterwards.
 */
bool stripe_sleep(struct stripe *stripe);
void stripe_awake(struct stripe *stripe);
bool stripes_busy(const struct worker *w); /* the GPU still reads from some */
void stripes_reap(struct worker *w);
void stripes_forget(struct worker *w, uint16_t context);

/* fence.c */
/* An event without timing, from the pool or made; the driver's error where there is none. */
CUresult fence_event(struct worker *w, uint16_t context, CUevent *event);
void fence_event_give(struct worker *w, uint16_t context, CUevent event);
struct pending *fence_new(struct worker *w, enum pending_what what, uint16_t context);
CUresult fence_stream(struct worker *w, struct pending *p, struct worker_stream *stream);
/* context 0: the streams of all contexts */
CUresult fence_context(struct worker *w, struct pending *p, uint16_t context);
void fence_push(struct worker *w, struct pending *p);
void fence_free(struct worker *w, struct pending *p);
bool fence_poll(struct worker *w); /* true: something was done */
/* Sends every finished copy to the host: after an event was seen done, before that is told.
 * false: there was no room for all of them, so it must not be told yet. */
bool fence_flush_copies(struct worker *w);
/* An event that the app destroys: true where somebody waits for it, who keeps it. */
bool fence_adopt(struct worker *w, CUevent event);
/* The context is done with: nothing waits for it, and its events are not looked at again. */
void fence_forget(struct worker *w, uint16_t context);

/* handle.c */
struct name *names_find(struct worker *w, uint64_t handle, enum handle_kind kind);
void names_drop_context(struct worker *w, uint16_t context);
void names_drop_owned(
	struct worker *w, uint64_t owner); /* what belongs to a module that goes */
void names_own(struct worker *w, uint64_t handle, uint64_t owner);
struct worker_stream *worker_stream_object(
	struct worker *w, struct request *r, uint64_t handle);
bool worker_owns(const struct worker *w, uint64_t address, uint64_t bytes);
void worker_know_range(struct worker *w, uint64_t address, uint64_t bytes);

/* stream.c */
/* Destroys it; nobody waits on it any more. */
CUresult stream_drop(struct worker *w, struct worker_stream *stream);

/* capture.c */
/* Nothing can be recorded in it now: it is part of a capture, or would be drawn into one. */
bool capture_of(struct worker *w, const struct worker_stream *stream);
void worker_capture_stream_gone(struct worker *w, struct worker_stream *stream);

/* graph.c: a graph or an executable graph whose context goes */
void graph_forget(struct worker *w, enum handle_kind kind, void *object);

/* closing.c: closes the object, at once or when no host function is outstanding; its name must
 * be gone. Errors of those that had to wait are deferred. */
CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object);
void closing_poll(struct worker *w);

/* callback.c */
int callback_open(struct worker *w);
bool callback_poll(struct worker *w);
void callback_over(struct worker *w);

/* output.c */
/* From then on stdout and stderr are the kernels'; what the process itself has to say goes to
 * where output_log() put it. */
int output_open(struct worker *w);
/* Before anything is opened: our log lines go to a copy of stderr. */
void output_log(void);
/* Tells the app how much there is, where that has grown. */
void output_tell(struct worker *w);

/* Drops the oldest where more is there than a program may leave unread; any thread. */
void output_limit(struct worker *w);

/* limits.c: how much of the machine a session may take. */
/* No frame that makes work is to be served now. */
bool limits_full(struct worker *w);
/* One more piece of work is put on the stream. */
void limits_work(struct worker *w, struct worker_stream *stream);
void limits_stream_gone(struct worker *w, struct worker_stream *stream);
/* Ends the session where it has too much memory; once a second. */
void limits_look(struct worker *w);

/* nvml.c */
/* Looks at the software GPU's load; once a second. */
void nvml_sample(struct worker *w, uint64_t now);

/* ipc.c */
/* The memory that begins there is unmapped: nobody can have it any more. */
void ipc_forget(struct worker *w, uint32_t device, uint64_t address);
/* SHARED and GIVEN; FD is -1 or taken over. */
void ipc_told(struct worker *w, const struct handoff *h, int fd);

/* memory.c */
/* First granule and count of [address, address + bytes); false where it is not granules of the
 * window. */
bool memory_granules(const struct worker_device *d, uint64_t address, uint64_t bytes,
	uint64_t *first, uint64_t *count);
/* It is granules of the window, and nothing is mapped there. */
bool memory_vacant(const struct worker_device *d, uint64_t address, uint64_t bytes);
/* Maps memory there, which is vacant, for its own device; takes it over where it returns
 * SUCCESS. `of`: the app's own piece, else NULL. The caller counts it as used. */
CUresult memory_put(struct worker *w, uint32_t device, uint64_t address, uint64_t bytes,
	CUmemGenericAllocationHandle memory, struct vmm *of);
uint32_t memory_unmapped(struct worker *w, uint32_t device, uint64_t first);
void vmm_unmapped(struct worker *w, struct vmm *m);
void memory_unmap(struct worker *w, struct pending *p);
void memory_granted(struct worker *w, uint32_t device, uint64_t lease, CUresult status);
/* Where the pod has a limit: what is left of it and how much it is, from what the driver says
 * of the device. */
void memory_limited(
	const struct worker *w, uint32_t device, uint64_t *free_bytes, uint64_t *total);

/* module.c */
#define MODULE_JIT_OPTIONS 24
static inline bool module_jit_right(uint32_t bytes)
{
	return bytes % sizeof(struct image_option) == 0 &&
	       bytes / sizeof(struct image_option) <= MODULE_JIT_OPTIONS;
}
/* The image of an uploaded or cached input, malloc'ed, NUL behind it; NULL: *status, or where
 * that is SUCCESS nobody has it. */
unsigned char *module_image(
	struct worker *w, const uint8_t *digest, uint64_t size, CUresult *status);
/* Those options whose value is a number, taken apart; how many. */
unsigned module_jit(
	const struct image_option *jit, uint32_t bytes, CUjit_option *options, void **values);
/* The JIT's text, if there is one, into a run of the answer. */
void module_log(struct request *r, struct wire_run *run, char *log, size_t room);

/* context.c */
void context_stream_init(struct worker *w, uint16_t context);

/* cache.c: images by their SHA-256, on disk. */
/* The image's bytes (malloc, NUL behind them), or NULL where it is not there or not whole. */
unsigned char *cache_read(const char *folder, const uint8_t digest[32], uint64_t size);
/* Best effort: a full or read-only disk only means that it is not kept. */
void cache_write(const char *folder, const uint8_t digest[32], const void *bytes, uint64_t size,
	uint64_t limit);

#endif
