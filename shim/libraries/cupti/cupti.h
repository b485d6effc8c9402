/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CUPTI front share.  A program's thread records a call in `leave` of
 * trace.h, under the store's lock; what the agents recorded of their GPUs is fetched when the
 * records are handed out (deliver.c), which is where CUPTI's own structs are made.
 *
 * Locks: `deliver` first (one thread hands out at a time, the program's buffer functions run
 * under it), then `store` (held for a few stores, never while the program's code runs).
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUPTI_CUPTI_H
#define VCUDA_SHIM_LIBRARIES_CUPTI_CUPTI_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/generated/cupti_api.h"
#include "protocol/libraries/cupti_records.h"
#include "shim/driver/profile.h"
#include "shim/engine/trace.h"
#include "shim/generated/cuda_calls.h"
#include "shim/libraries/common/plain.h"
#include "shim/libraries/cupti/callbacks.h"

#define EXPORT __attribute__((visibility("default")))
#define COUNT(name) vcuda_count(CALL_##name)

extern const struct library_front cupti_front;

#define EXTERNAL_KINDS 8 /* CUpti_ExternalCorrelationKind: 1 to 6, and some to come */
#define EXTERNAL_DEEP 64 /* ids that one thread pushes of one kind */

/* Ids that were on top of a thread's stacks, a bit of `which` a kind. */
struct external_ids {
	uint32_t which;
	uint64_t id[EXTERNAL_KINDS];
};

/* --- kernel_names.c ----------------------------------------------------------------------- */

/* As what CALL_… is recorded. */
struct callback recorded_as(unsigned call);
/* The kernel's name that the launch CALL_… names first among its parameters; NULL: none. */
const char *cupti_kernel_name(unsigned call, const void *first);
#define CUPTI_CALLS 1024 /* numbers of a domain's calls are below */

/* --- activity.c: what is enabled ---------------------------------------------------------- */

bool cupti_enabled(int kind);
bool cupti_api_enabled(struct callback place);
bool activity_any(void);
/* On stderr, once: what an agent lacks. */
void activity_told(CUresult status);
/* Whether it was enabled while what is handed out was recorded. */
bool activity_was(int kind);
void activity_over(void);
/* Once for each time that devices' records are enabled. */
bool activity_devices_due(void);
void activity_devices_told(void);

/* --- recorded.c: what is recorded -----------------------------------------------------------
 */

/* CUPTI's time: nanoseconds of CLOCK_REALTIME, or what the program's function says. */
uint64_t cupti_time(void);
/* A time of CLOCK_REALTIME as cupti_time() has it. */
uint64_t cupti_time_of(uint64_t realtime);
/* Both clocks are looked at: times between two looks are turned by them. */
void cupti_time_look(void);

/* One record on this side, until it is handed out; of a call, of an id pushed beside it … */
struct recorded {
	uint8_t kind;	/* CUPTI_ACTIVITY_KIND_… */
	uint8_t detail; /* EXTERNAL_CORRELATION: its kind; SYNCHRONIZATION: its type */
	uint16_t number;
	uint32_t correlation;
	uint32_t thread;
	uint32_t result;
	uint64_t start, end;
	uint64_t id; /* EXTERNAL_CORRELATION; which recording of the event */
	uint32_t event;
	uint32_t context, stream; /* as records name them */
};

/* What deliver.c takes out of the store; the lists are its own then. */
struct recorded_list {
	struct recorded *at;
	size_t count, room;
};
void record_take(struct recorded_list *list);
uint32_t record_correlation(void); /* the next one */
uint64_t record_dropped(void);	   /* records that there was no memory for, so far */
void record_add(const struct recorded *one);
/* Room for one more of SIZE bytes, up to MOST; AT, or what it was moved to. NULL: none. */
void *record_room(void *at, size_t count, size_t *room, size_t size, size_t most);
uint32_t record_thread(void);			 /* as records name it */
void record_externals(struct external_ids *ids); /* what is on top of the thread's stacks */
void record_add_externals(const struct external_ids *ids, uint32_t correlation);
/* What the call answered; 0 where it has no answer. */
static inline uint32_t call_result(const struct trace_call *call)
{
	return call->result ? *(const uint32_t *)call->result : 0;
}
/* The recorder of trace.h is there while something is enabled, or somebody subscribed. */
void record_watch(void);

/* --- frames.c: which frame went to an agent by which call --------------------------------- */

/* A frame that went to an agent. */
struct sent_frame {
	uint64_t seq;
	uint32_t correlation; /* of the call; 0: of a library's, which `library` tells */
	uint32_t library;     /* place in the libraries' calls, or UINT32_MAX */
};

/* A library's call: its kernels get calls of the runtime that launched them, as natively. */
struct library_call_seen {
	uint64_t time;
	uint32_t thread;
	struct external_ids ids;
};

/* The program saw that all frames of an agent before that one are done: nothing of them ends
 * later. */
struct finish {
	uint64_t seq, time;
};

/* Of agent AGENT: the frame of that number. False: nobody profiled it. */
bool frame_find(unsigned agent, uint64_t seq, struct sent_frame *frame,
	struct library_call_seen *library);
/* When the program knew that the frame was done, or UINT64_MAX. */
uint64_t frame_done(unsigned agent, uint64_t seq);
/* A batch was handed out: frames of long ago are forgotten. ALL: no more records come. */
void frames_end_batch(bool all);
void frame_sent(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op);
/* The call is over. */
void frame_finished(const struct trace_call *call, uint64_t end);

/* --- derive.c: records of other kinds that a call is -------------------------------------- */

void derive_records(const struct trace_call *call, uint64_t end);
/* Whether the call, once it is over, has seen all work of its context done. */
bool derive_is_finish(const struct trace_call *call);
/* What a call says of the agents' record of a copy or fill: `detail` source | target << 4, in
 * CUPTI's kinds of memory, 0: as the agent says; `number` 1 where it is asynchronous. */
bool derive_is_hint(const struct recorded *one);
void derive_put(const struct recorded *one);

/* --- callback.c --------------------------------------------------------------------------- */

bool callback_wanted(uint32_t domain, uint32_t number);
void callback_call(bool leaving, struct callback place, struct trace_call *call);
/* After a call: contexts and streams that came into being, what was waited for. */
void callback_resources(const struct trace_call *call);
bool callback_any(void);
void callback_end(void);

/* --- deliver.c: records on their way to the program ------------------------------------- */

/* Hands out what there is. FLAG is cuptiActivityFlushAll's. */
void deliver(uint32_t flag);
/* The agents' records come here, where they wait until they are handed out. */
void deliver_fetch(void);
/* There is much: the front's own thread hands it out. */
void deliver_soon(void);
void deliver_to(
	CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
/* There is a first record, in a thread of the program's. */
void deliver_prepare(void);
void deliver_period(uint32_t milliseconds); /* 0: none */
uint64_t deliver_dropped(void);
/* One record into the program's buffer. While it is handed out. */
void deliver_record(const void *record, size_t bytes);

/* --- assemble.c: the agents' records, and all of them in the form of CUPTI's; under the lock
 * of deliver.c --------------------------------------------------------------------------------
 */

void assemble_fetch(uint32_t flag);
void assemble_records(void);
uint64_t assemble_dropped(void);

/* --- gpu_record.c ------------------------------------------------------------------------- */

struct gpu_record {
	struct profile_record r;
	const char *name;
	unsigned agent;
	uint32_t correlation; /* 0: no frame of the program caused it */
	uint64_t done;	      /* when it was seen to be; UINT64_MAX: not yet (frame_done) */
	uint32_t span;	      /* assemble.c's, from 1 on; 0: of none */
	bool of_library;
};

/* Hands it out. HINT, or NULL: what its call says of it. */
void gpu_put(struct gpu_record *one, const struct recorded *hint);

/* --- device.c ----------------------------------------------------------------------------- */

/* Hands out the devices' records, where they are due and there are devices. */
void device_records(void);

/* --- numbers.c ---------------------------------------------------------------------------- */

/* The number by which records name CONTEXT (NULL: the current one), and a stream of it; asked
 * of the agent once for each. 0: none. */
uint32_t number_context(CUcontext context);
uint32_t number_stream(CUcontext context, CUstream stream);
/* The thread's current context, or NULL. */
CUcontext number_current(void);
/* The process' events by number; RECORDS: it is recorded anew, else the last time's is told. */
uint32_t number_event(CUevent event, bool records, uint64_t *recording);

/* What the front itself asks is no call of the program's. */
extern __thread unsigned cupti_own __attribute__((tls_model("initial-exec")));

/* The thread's last error, for cuptiGetLastError. */
CUptiResult cupti_result(CUptiResult result);

#endif
