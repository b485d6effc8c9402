/* SPDX-License-Identifier: Apache-2.0
 *
 * A group's operations of one communicator, as a task: ordered by streams, done by the
 * communicator's thread.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/nccl/nccl.h"

struct softnccl_task {
	struct ncclComm *comm;
	_Atomic unsigned owners; /* its stream, or its graph; the queue */
	bool started;		 /* the stream is there */
	bool captured;
	uint32_t *word; /* in memory that streams wait in: 1 when it is done */
	struct softnccl_task *next;
	int count;
	struct softnccl_operation operations[];
};

/* --- words -------------------------------------------------------------------------------- */

#define WORDS 1024
static struct words {
	uint32_t *at;
	uint64_t used[WORDS / 64];
	struct words *next;
} *words;
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t *word_alloc(struct words *w)
{
	for (unsigned i = 0; i < WORDS / 64; i++) {
		unsigned bit;

		if (!~w->used[i])
			continue;
		bit = (unsigned)__builtin_ctzll(~w->used[i]);
		w->used[i] |= 1ull << bit;
		return w->at + i * 64 + bit;
	}
	return NULL;
}

static uint32_t *word_get(void)
{
	uint32_t *word = NULL;
	struct words *w;
	void *at;

	pthread_mutex_lock(&words_lock);
	for (w = words; w && !word; w = w->next)
		word = word_alloc(w);
	if (!word && (w = calloc(1, sizeof(*w)))) {
		if (cuMemHostAlloc(&at, WORDS * sizeof(uint32_t), CU_MEMHOSTALLOC_PORTABLE)) {
			free(w);
		} else {
			w->at = at;
			w->next = words;
			words = w;
			word = word_alloc(w);
		}
	}
	pthread_mutex_unlock(&words_lock);
	if (word)
		__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	return word;
}

static void word_put(const uint32_t *word)
{
	pthread_mutex_lock(&words_lock);
	for (struct words *w = words; w; w = w->next)
		if (word >= w->at && word < w->at + WORDS)
			w->used[(word - w->at) / 64] &= ~(1ull << (word - w->at) % 64);
	pthread_mutex_unlock(&words_lock);
}

/* --- the queue ---------------------------------------------------------------------------- */

static void task_drop(void *argument)
{
	struct softnccl_task *task = argument;

	if (atomic_fetch_sub(&task->owners, 1) != 1)
		return;
	word_put(task->word);
	softnccl_comm_put(task->comm);
	free(task);
}

/* Under the communicator's lock. */
static void queue_push(struct softnccl_task *task)
{
	atomic_fetch_add(&task->owners, 1);
	task->next = NULL;
	*task->comm->last = task;
	task->comm->last = &task->next;
}

static void task_done(const struct softnccl_task *task)
{
	__atomic_store_n(task->word, 1, __ATOMIC_RELEASE);
}

/* In the stream: what came before is done. A graph's task is queued each time. */
static void task_start(void *argument)
{
	struct softnccl_task *task = argument;
	struct ncclComm *comm = task->comm;

	pthread_mutex_lock(&comm->lock);
	if (task->captured) {
		__atomic_store_n(task->word, 0, __ATOMIC_RELEASE);
		if (!comm->gone)
			queue_push(task);
	}
	task->started = true;
	if (comm->gone)
		task_done(task); /* nobody does it any more */
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
}

/* The first that is queued, once its stream is there; NULL: the communicator ends. */
static struct softnccl_task *queue_next(struct ncclComm *comm)
{
	struct softnccl_task *task;
	bool late = false;

	pthread_mutex_lock(&comm->lock);
	while (!late && !comm->aborted && !(comm->closing && !comm->first) &&
		!(comm->first && comm->first->started)) {
		if (comm->closing)
			late = !softnccl_comm_wait(comm, comm->close_by);
		else
			pthread_cond_wait(&comm->more, &comm->lock);
	}
	task = comm->aborted || late ? NULL : comm->first;
	if (!task) {
		comm->gone = true;
		for (task = comm->first; task; task = task->next)
			task_done(task);
		pthread_cond_broadcast(&comm->more);
		task = NULL;
	}
	pthread_mutex_unlock(&comm->lock);
	return task;
}

static void queue_drop(struct ncclComm *comm)
{
	struct softnccl_task *task;

	pthread_mutex_lock(&comm->lock);
	task = comm->first;
	comm->first = task->next;
	if (!comm->first)
		comm->last = &comm->first;
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
	task_drop(task);
}

void *softnccl_thread(void *argument)
{
	struct ncclComm *comm = argument;
	struct softnccl_task *task;

	cuCtxSetCurrent(comm->context);
	while ((task = queue_next(comm))) {
		if (!comm->error) {
			ncclResult_t status = softnccl_run(comm, task->operations, task->count);

			if (status)
				softnccl_comm_fail(comm, status);
		}
		/* Its stream may let it go at once: the queue has it until it is dropped. */
		task_done(task);
		queue_drop(comm);
	}
	while (comm->first)
		queue_drop(comm);
	softnccl_comm_put(comm);
	return NULL;
}

/* --- streams ------------------------------------------------------------------------------ */

/* FIRST waits for what each other stream of the task has, or each for FIRST. */
static bool streams_join(const struct softnccl_task *task, bool before)
{
	CUstream first = task->operations[0].stream;
	bool joined = true;

	for (int i = 1; i < task->count && joined; i++) {
		CUstream other = task->operations[i].stream;
		CUevent event;

		if (other == first)
			continue;
		if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
			return false;
		joined = !cuEventRecord(event, before ? other : first) &&
			 !cuStreamWaitEvent(before ? first : other, event, 0);
		cuEventDestroy(event);
	}
	return joined;
}

/* In a graph the task is the graph's, and runs as often as that does. */
static bool task_capture(struct softnccl_task *task, CUgraph graph)
{
	CUuserObject object;

	task->captured = true;
	if (cuUserObjectCreate(
		    &object, task, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		task_drop(task);
		return false;
	}
	if (!cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE))
		return true;
	cuUserObjectRelease(object, 1);
	return false;
}

static bool task_place(struct softnccl_task *task)
{
	CUstream stream = task->operations[0].stream;

	return streams_join(task, true) && !cuLaunchHostFunc(stream, task_start, task) &&
	       !cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)task->word, 1,
		       CU_STREAM_WAIT_VALUE_EQ) &&
	       (task->captured || !cuLaunchHostFunc(stream, task_drop, task)) &&
	       streams_join(task, false);
}

static struct softnccl_task *task_new(
	struct ncclComm *comm, const struct softnccl_operation *operations, int count)
{
	struct softnccl_task *task =
		calloc(1, sizeof(*task) + (size_t)count * sizeof(*operations));

	if (!task)
		return NULL;
	task->word = word_get();
	if (!task->word) {
		free(task);
		return NULL;
	}
	task->comm = comm;
	task->owners = 1;
	task->count = count;
	memcpy(task->operations, operations, (size_t)count * sizeof(*operations));
	atomic_fetch_add(&comm->refs, 1);
	return task;
}

static ncclResult_t submit(
	struct ncclComm *comm, const struct softnccl_operation *operations, int count)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	struct softnccl_task *task;
	CUgraph graph = NULL;

	if (cuStreamGetCaptureInfo(
		    operations->stream, &capturing, NULL, &graph, NULL, NULL, NULL) ||
		(capturing && capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE))
		return softnccl_fail(ncclUnhandledCudaError, "the stream cannot be used");
	task = task_new(comm, operations, count);
	if (!task)
		return softnccl_fail(ncclSystemError, "no memory");
	if (capturing && !task_capture(task, graph))
		return softnccl_fail(
			ncclUnhandledCudaError, "the stream's graph cannot be used");
	pthread_mutex_lock(&comm->lock);
	if (!capturing)
		queue_push(task); /* in the order of the calls, whatever streams do */
	pthread_mutex_unlock(&comm->lock);
	if (task_place(task))
		return ncclSuccess;
	/* Whatever of it is in the stream must not wait for ever. */
	softnccl_comm_fail(comm, ncclUnhandledCudaError);
	if (!capturing) {
		task_start(task);
		task_drop(task);
	}
	return softnccl_fail(ncclUnhandledCudaError, "the stream cannot be used");
}

ncclResult_t softnccl_submit(
	struct ncclComm *comm, const struct softnccl_operation *operations, int count)
{
	CUcontext popped;
	ncclResult_t status;

	if (comm->error)
		return softnccl_fail((ncclResult_t)comm->error, "the communicator has failed");
	if (cuCtxPushCurrent(comm->context))
		return softnccl_fail(ncclUnhandledCudaError, "the context is gone");
	status = submit(comm, operations, count);
	cuCtxPopCurrent(&popped);
	return status;
}
