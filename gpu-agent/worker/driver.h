/* SPDX-License-Identifier: Apache-2.0
 *
 * What the worker's core asks of the driver's subjects (worker/driver/), which implement these:
 * the core includes nothing of that room.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct handoff;
struct pending;
struct request;
struct worker;
struct worker_stream;

/* Whether the frame at hand is a kernel's first launch: the driver may bring its code to the
 * device, or make room there for a larger stack (also where the code has long been there), and
 * waits for all work of the context meanwhile (bench/held.cu, 580.159). */
bool launch_first(struct worker *w);

/* What later frames for other agents need of the driver is made, while no stream waits yet:
 * with one that waits the driver may wait in cuStreamCreate and cuMemHostAlloc (580.159). */
void direct_prepare(struct worker *w);
/* Whether the frame at hand, a copy with another agent, an AWAIT or a SIGNAL, would have the
 * driver make such a thing. */
bool direct_makes(const struct worker *w);

/* Streams. */
/* Destroys it; nobody waits on it any more. */
CUresult stream_drop(struct worker *w, struct worker_stream *stream);
/* What a stream of the worker's own is for. Streams share the GPU's few channels with others of
 * their priority, behind each other in the order of what they are given. The program's may be
 * held until another agent says something, and copies, which that may depend on, are given
 * their pieces later; what listens for an event may wait for such a stream, too. So each kind
 * has a priority of its own. */
enum own_stream { OWN_COPIES, OWN_LISTENS };
/* One of the worker's own, which waits for no other; NULL: none can be had. */
struct worker_stream *stream_own(struct worker *w, uint16_t context, enum own_stream what);
void context_stream_init(struct worker *w, uint16_t context);
/* Records what all streams of the context have. */
CUresult stream_record_context(struct worker *w, uint16_t context, CUevent event);
/* Whether a context with that number may be made. */
CUresult context_new_check(const struct worker *w, int32_t device, uint32_t number);
/* Nothing can be recorded in it now: it is part of a capture, or would be drawn into one. */
bool capture_of(struct worker *w, const struct worker_stream *stream);

/* Graphs: the driver's object of a name; refuses. */
CUgraph graph_object(struct worker *w, struct request *r, uint64_t handle);
CUgraphExec graph_exec_object(struct worker *w, struct request *r, uint64_t handle);

/* Memory. */
void memory_unmap(struct worker *w, struct pending *p);
void memory_granted(struct worker *w, uint32_t device, uint64_t lease, CUresult status);
/* DRAINED: memory of sessions that were over when those questions (bits) came is back. */
void memory_drained(struct worker *w, uint32_t questions);
void memory_ask_again(struct worker *w);
/* A session is on its way, with DEVICE among its GPUs: what memory_there has to ask the driver
 * for, some 75 us of the first call that the program waits for, is asked now. */
void memory_look(struct worker *w, uint32_t device);

/* Memory shared with other sessions: SHARED and GIVEN; FD is -1 or taken over. */
void ipc_answer(struct worker *w, const struct handoff *h, int fd);
/* What was asked and is not answered, once more. */
void ipc_ask_again(struct worker *w);

/* Events that processes share (ipc_event.c). The name of one goes. */
struct ipc_event;
void ipc_event_gone(struct ipc_event *event);
/* Whether its last recording is done, as a query tells it; or P waits for that: INVALID_HANDLE
 * where it is not shared. */
struct name;
CUresult ipc_event_look(struct name *name);
CUresult ipc_event_fence(struct name *name, struct pending *p);
/* What P waits for so is done; and P waits no more. */
bool ipc_event_passed(struct pending *p);
void ipc_event_put(struct pending *p);
/* Looks whether streams wait still, and whether who is to let them go lives: true where one of
 * them went on. */
bool ipc_event_turn(struct worker *w);
/* A stream waits for another process: as direct_busy(). */
bool ipc_event_busy(const struct worker *w);
/* Behind a fault: nobody looks at what waits any more. */
void ipc_event_give_up(struct worker *w);
void ipc_event_stream_gone(struct worker *w, const struct worker_stream *stream);

/* Tensors with names, likewise (driver/memory/tensor.h). */
struct tensor_message;
void tensor_answer(struct worker *w, const struct tensor_message *message, int fd);
void tensor_ask_again(struct worker *w);

/* Waiting (sync.c): SUCCESS: what vcudaSync would wait for is done; NOT_READY: P, which the
 * caller pushes, waits for it. */
CUresult sync_await(struct worker *w, struct request *r, struct pending *p, uint32_t scope,
	uint64_t handle);

/* Host memory that kernels reach. */
/* Reserves the window. */
void worker_mirror_open(struct worker *w);
/* [address, + bytes) is mapped. */
bool mirror_owns(const struct worker *w, uint64_t address, uint64_t bytes);
/* Of so many bytes, those that lie in the same registration as the first; elsewhere all. */
uint64_t mirror_part(const struct worker *w, uint64_t address, uint64_t bytes);
/* OUT_OF_MEMORY: the session has as much of it as it may have. */
CUresult mirror_room_for(const struct worker *w, uint64_t bytes);
/* Memory that is mapped there already, for the host too, is a mirror from now on: zero on the
 * program's side. Then it is none any more; INVALID_VALUE: what is there is one. */
CUresult mirror_adopt(struct worker *w, uint64_t address, uint64_t bytes);
void mirror_leave(struct worker *w, uint64_t address);
/* Answers a vcudaMirrorFetch whose fence is done. */
void mirror_finish(struct worker *w, struct pending *p);
/* Looks for the wait that is parked. True: it was answered. */
bool mirror_poll(struct worker *w);

/* Host functions. */
int host_function_open(struct worker *w);
bool host_function_poll(struct worker *w);
void host_function_over(struct worker *w);

/* Looks at the software GPU's load; once a second. */
void nvml_sample(struct worker *w, uint64_t now);

#endif
