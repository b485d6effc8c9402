/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's own state.  Each of its files has a header of its own: loop (frames in, the
 * turn), stash (frames that are kept), reply (frames out), staging (pinned memory between
 * socket and GPU), stripe (further connections), window (what was sent and may be asked for
 * again), park (a session whose connections are cut), fence (what waits for the GPU), handle
 * (handles), closing, limits, output, extra, watchdog; worker*.c have start and hand-off.
 * driver.h is what they ask of the serve functions by subject in driver/.
 *
 * Everything belongs to the one loop thread, but for struct callbacks, which the driver's
 * callback thread shares under its lock, and what is on its way out (reply.c), which the thread
 * of watchdog.c sends while the loop is in a call that does not return.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_WORKER_STATE_H
#define VCUDA_GPU_AGENT_WORKER_WORKER_STATE_H

#include <pthread.h>
#include <semaphore.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/generated/cuda_driver.h"
#include "gpu-agent/generated/serve_hand.h"
#include "gpu-agent/handoff.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/images.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/limits/metering.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/reply/send_window.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/green.h"
#include "protocol/wire/mirror.h"
#include "protocol/wire/open.h"
#include "transport/codec/piece.h"
#include "transport/transport.h"

/* A window a device: 2 TiB from WINDOW_BASE on, or less where that cannot be had: programs
 * reserve 1 TiB of addresses at once. Both worker and app can have it (DESIGN 4). A client of
 * several agents says otherwise (vcudaOpen). */
#define WINDOW_BASE OPEN_WINDOW_LOW
#define WINDOW_BYTES OPEN_WINDOW_MOST

#define RECEIVE_BYTES (256u * 1024)

/* Acknowledge after so many frames or bytes; else when nothing has come for a while: an answer,
 * which acknowledges too, is mostly on its way, and a frame of its own costs its sender 4 us.
 */
#define ACK_IDLE_NS 100000u
#define ACK_FRAMES 64
#define ACK_BYTES (256u * 1024)

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
	uint64_t metered; /* `work` that its GPU time is known of (metering.c) */
	uint32_t busy;	  /* its GPU time is being counted, as that of device busy - 1 */
	struct worker_stream *next, **link;
	struct {		 /* while a host function is outstanding (issued.c) */
		uint32_t pieces; /* of work that may wait behind it */
		uint32_t marked; /* so many are before `mark` */
		CUevent mark;	 /* NULL: none */
	} issued;
};

struct vmm; /* memory with a name (vmm.c) */
struct mapping {
	CUmemGenericAllocationHandle memory;
	uint32_t granules; /* 0: nothing begins here */
	uint32_t others;   /* without a name: devices that have it for itself, a bit each */
	struct vmm *of;	   /* NULL: the memory goes with its mapping */
};
struct worker_device {
	CUdevice device;
	CUcontext primary;
	uint64_t window, window_bytes, granularity;
	uint64_t lease, used;
	uint64_t seen_free; /* of the GPU's memory, at … */
	uint64_t seen_at;   /* … before the session came; 0: nobody looked (memory_look) */
	uint64_t granted;   /* of the lease: what the shim knows of */
	uint64_t extra;	    /* what is the session's beside the lease (extra.c) */
	uint64_t others;    /* what the pod's other sessions have of the limit */
	uint64_t *mapped;   /* a bit a granule */
	struct mapping *mappings; /* by first granule */
	/* How often each device was given access to what is mapped without a name (peer.c). */
	uint16_t reached[HANDOFF_DEVICES];
	uint32_t captured;	 /* devices that reach it for copies in graphs: a bit each */
	struct open_device open; /* what vcudaOpen tells */
};

struct known_range { /* device memory that lies outside the windows: modules' globals */
	uint64_t address, bytes;
};

struct host_func;
struct closing;
struct direct;
struct ipc_events;
struct worker_graph;

/* Frames from the app (loop_input.c). */
struct receiver {
	unsigned char *bytes; /* RECEIVE_BYTES, of which [at, end) is not looked at yet */
	uint32_t at, end;
	bool small;	 /* the last frame had a big payload: read just a header's worth */
	bool have_frame; /* `frame` is complete but for `payload_missing` bytes */
	struct frame_header frame;
	unsigned char *body;
	struct staging_range *range;
	unsigned char *payload;
	uint32_t payload_missing;
	uint32_t payload_stripe; /* which brings it; 0: the link itself */
	uint32_t
		fill; /* not 0: all of the payload is byte FILL - 1, which is not written yet */
	bool payload_waits; /* the next frame needs staging, and there is none */
	uint64_t taken;	    /* highest sequence number taken over */
	uint64_t acked;
	uint32_t unacked_bytes;
};

/* Frames to the app (reply.c): all of it under `lock`; what is _Atomic is looked at without. */
struct sender {
	_Atomic uint32_t lock;
	struct send_window window;
	uint64_t seq; /* what the last frame acknowledged */
	_Atomic uint64_t sent_bytes;
	uint32_t relieved;    /* what the client had counted when there was room last, … */
	uint64_t relieved_at; /* … and when that was; ns */
};

/* A session without connections (park.c). */
struct park {
	uint64_t grace; /* ns that it lasts; 0: it never is */
	_Atomic bool is;
	bool wanted;	/* from the next turn on; text: why */
	uint32_t asked; /* which PARK waits for its PARKED; 0: none */
	uint64_t since;
	uint32_t times; /* resumed */
	char text[128];
};

/* Whether both ends are there (loop.c, watchdog.c); times in ns. */
struct liveness {
	_Atomic uint64_t beat;		 /* of the loop; odd: it is in a call */
	uint64_t alive_frames, alive_at; /* frames sent, and when that was looked at */
	/* When the client was heard last, up to which byte; when it was asked to say something.
	 */
	uint64_t heard_at, heard_bytes, asked_at;
};

/* What waits for the GPU (fence.c). */
struct fences {
	struct pending *first, **tail;
	struct pending *free;
	uint32_t count;
	CUevent *event_pool[CONTEXT_MAX];
	uint32_t event_count[CONTEXT_MAX];
};

/* Images on their way (driver/module/module.c), the oldest first. */
struct uploads {
	struct upload *first;
	uint32_t count;
	uint64_t bytes;
};

/* Host functions (driver/host_function.c). */
struct callbacks {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct host_func *waiting; /* in the driver's threads, the oldest first */
	_Atomic bool more;	   /* one more is waiting … */
	int wake;		   /* … and the eventfd that says so to a loop that sleeps */
	bool behind;		   /* the loop's: the app has not been told of some */
	bool over;
	uint32_t outstanding; /* the loop's: issued, not done */
};

/* Calls that are served beside the loop (beside_call.c). */
struct beside_calls {
	struct beside_call *calls;
	sem_t turn; /* the loop's place is given back to it */
	bool ready; /* turn is */
};

/* What is kept while a host function is outstanding (stash.c, closing.c). */
struct kept {
	struct stash {
		unsigned char *bytes;
		size_t at, used, room;
	} stash, parked;     /* frames for later; parked: calls, which keep back nothing */
	unsigned char *body; /* of the one being served, aligned */
	struct issued {	     /* while one was outstanding (issued.c) */
		uint32_t count, look; /* pieces of work and frames; the streams are looked at */
		bool named;	      /* the frame at hand named a stream */
	} issued;
	bool reported;				   /* to the app, that much is kept */
	struct closing *closings, **closings_tail; /* until none is outstanding */
	uint32_t closing_count;
};

/* Green contexts, by number, and what they are made of, by name - 1 (driver/green.c). */
struct greens {
	CUgreenCtx contexts[CONTEXT_MAX];
	CUdevResource *resources;
	uint32_t resource_count;
	CUdevResourceDesc *descriptors;
	uint32_t descriptor_count;
};

/* Contexts that reach other contexts' memory (driver/peer.c). */
struct worker_peers {
	struct peer_pair {
		uint16_t context, peer;
		uint8_t device, owner; /* theirs */
	} *pairs;
	uint32_t count, room;
};

/* The mirror of the program's memory that kernels reach (driver/memory/mirror.c). */
struct worker_mirror {
	uint64_t window, window_bytes; /* addresses kept for it; 0: none, nothing is served */
	struct mirror_view *views;     /* what is mapped, by address */
	size_t count, room;
	uint64_t bytes;
	uint64_t answers;	     /* given so far */
	struct mirror_cursor cursor; /* where the next of them begins */
	unsigned char *spare;
	int tag; /* of the wait that is parked; -1: none */
	struct frame_destination destination;
	uint64_t parked_at, looked_at, asked_at; /* when */
	uint64_t look_ns;			 /* what a look cost */
	bool unwritten; /* a look found that nothing ran, and no frame but its own came since */
};

/* A module whose kernels graphs have (driver/graph/graph_modules.c); its name has it too. */
struct graph_module {
	CUmodule module; /* NULL: it went with its context */
	uint64_t handle, bytes;
	uint16_t context;
	bool unloaded;	/* by the app; it has no name any more */
	bool closing;	/* closing_do has it */
	uint32_t count; /* of sets that it is in */
	struct graph_module **link, *next;
};

/* Each of them once. */
struct graph_modules {
	struct graph_module **items;
	uint32_t count, room;
};

struct worker_streams {
	struct worker_stream *list;
	struct worker_stream legacy[CONTEXT_MAX]; /* by context */
	struct worker_stream *deep; /* has more work than it may, as far as is known */
	uint32_t depth;		    /* how much one may have beyond its mark (limits.c) */
};

/* Captures, and the modules that graphs have kernels of. */
struct worker_graphs {
	uint32_t captures;	       /* open ones */
	struct graph_modules captured; /* whose kernels were launched while one was */
	struct graph_module *modules;  /* all that graphs have kernels of */
	bool tells_kernels;	       /* GRAPH_RESULT_KERNELS */
	int dot;		       /* the text of a graph, while it is fetched; 0: none */
};

/* The connections for large payloads, and what may be on them. */
struct worker_stripes {
	struct stripe *at[SESSION_STRIPES + 1]; /* by number */
	int uploads[SESSION_STRIPES + 1][2];	/* lanes of those that come; 0: none */
	bool coded;				/* payloads may be */
	enum controller_mode compress;		/* ours: OFF where the client knows none */
	struct piece_counts received, sent;	/* of all that it had */
	uint32_t count, next;			/* next: whose turn it is to send */
	uint64_t last; /* when the last large payload was to be sent; ns */
};

struct worker_ending {
	bool ended;	 /* the loop leaves */
	CUresult status; /* what the app is told; SUCCESS: it ended the session itself */
	char text[192];
};

/* Leases asked for and not granted yet, by device. */
struct lease_wait {
	int tag[HANDOFF_DEVICES];	 /* which waits */
#define LEASE_TAG_EXTRA CHANNEL_SLOTS	 /* nobody's: the worker's own wish */
	uint64_t asked[HANDOFF_DEVICES]; /* how much, should another front want to hear it
					    again */
};

/* How much memory is free, asked and not answered yet (driver/memory/memory_info.c). */
struct memory_questions {
	uint32_t open; /* bit n: question n */
	struct memory_question {
		uint16_t tag, context;
	} questions[32];
};

/* What the session may have (limits/quotas.c); stats: what it has. */
struct worker_quotas {
	struct tally *tally; /* what its tenant's sessions have together; NULL: no quotas */
	uint32_t slot;	     /* in it */
	uint64_t most[QUOTAS];
};

struct worker {
	const struct agent_config *config;
	struct log_subject subject; /* its session */
	struct cuda_driver cuda;
	int handoff;
	uint64_t spin_ns;

	uint32_t device_count;
	struct worker_device devices[HANDOFF_DEVICES];
	uint64_t vram_limit; /* of each GPU, for all sessions of the pod together; 0 = none */

	CUcontext contexts[CONTEXT_MAX];
	struct greens greens;
	uint16_t current; /* the driver's current context, by number */
	struct worker_streams streams;
	struct metering metering;

	struct name *names;
	uint32_t name_count;

	struct worker_peers peers;

	struct worker_graphs graphs;
	struct module_library *libraries; /* module_library.c */

	struct known_range *ranges;
	uint32_t range_count, range_room;

	struct link *link;
	struct local local; /* the program is on this machine: it has the frames */
	const struct transport *transport; /* that made it */
	struct worker_stripes stripes;
	struct worker_ending end;

	struct receiver receiver;
	struct sender sender;
	struct park park;
	struct liveness liveness;
	struct staging in, out;
	struct fences fences;

	CUresult deferred; /* first failed post since the last reply */
	CUresult sticky;   /* first error that ended a context */

	struct uploads uploads;
	struct images_wait images;

	struct callbacks callbacks;
	struct kept kept;
	struct beside_calls beside;
	struct worker_mirror mirror;
	struct { /* the machine's memory by cuMemCreate (vmm_host.c) */
		struct vmm *first;
		uint64_t next; /* where the next one is wanted, from HOST_BASE */
	} hosts;
	const struct profiler *profiler; /* NULL: nobody records what runs (profiler.h) */
	struct direct *direct;		 /* to other agents' sessions; NULL: nothing yet */

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
		uint64_t memory; /* handle of memory with a name; 0: what is at address */
		uint64_t event;	 /* an event's; 0: it is memory */
		uint32_t number, recorded; /* of vcudaEventJoin, of vcudaEventShare */
		uint8_t name[16];
	} ipc;
	struct ipc_events *events; /* that processes share; NULL: none yet */

	struct lease_wait lease;
	struct memory_questions memory_info;

	struct worker_quotas quotas;
	struct handoff stats;
	uint64_t stats_at;
	uint64_t posts[LATENCY_CLASSES]; /* served (timing.h) */
};

CUresult worker_use(struct worker *w, uint16_t context); /* makes it current */
/* vcudaOpen is answered: sends the answer, since the program waits for nothing else, then waits
 * until what calls after it may need is there. */
void worker_opened(struct worker *w);
/* Bytes of a copy that are one frame's payload. */
static inline uint64_t worker_payload_most(const struct worker *w)
{
	return w->local.is ? FRAME_LENT_MAX : FRAME_PAYLOAD_MAX;
}
/* Asks the front for BYTES of device memory beyond the lease, for the slot TAG; the answer is
 * memory_granted. 0, or -1 where the front cannot be reached. */
int worker_ask_lease(struct worker *w, uint32_t device, uint64_t bytes, int tag);
void worker_end(struct worker *w, CUresult status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void worker_note(struct worker *w, CUresult status); /* keeps sticky errors */
/* For /v1/sessions: the driver's status, and in which call where that is known (NULL: not). */
void worker_last_error(struct worker *w, CUresult status, const char *call);
/* What the front said: figures (OTHERS, MORE) as far as there are, anything else alone. */
void worker_control(struct worker *w);
/* The same where a call waits for what the front says: false, from DEADLINE on (wait_now) or
 * where the session is over. */
bool worker_hear(struct worker *w, uint64_t deadline);
/* For another thread, while the loop is in a call: the front has said its last word, and the
 * session is over by that; what stood before it is of no use any more. */
bool worker_stopped(struct worker *w);
/* Tells the front why and ends the process. Whoever owns the link calls it. */
_Noreturn void worker_leave(struct worker *w);
bool worker_is_sticky(CUresult status);

/* Of worker*.c alone. */
const char *worker_error_name(struct worker *w, CUresult status);
/* To the front, as it is but for the version: 0 or -1. */
int worker_say(struct worker *w, struct handoff *message);
/* Everything that a session would otherwise wait for. 0, or -1 with ready->text filled in. */
int worker_prepare(struct worker *w, struct handoff *ready);

#endif
