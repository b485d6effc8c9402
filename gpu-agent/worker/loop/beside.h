/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs beside the loop: what a library prepares for long, and may wait for the GPU with, runs
 * on another thread, so that the session's other streams and threads go on.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_BESIDE_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_BESIDE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;

/* At once: one for each thread of a program (ranks of NCCL that wait for one another), and no
 * more for a hostile one. */
#define BESIDE_JOBS 32

struct beside_job {
	/* On the thread, in the context; it touches nothing of the loop's. */
	void (*run)(struct beside_job *job);
	/* On the loop, when there is room for an answer; it frees the job. */
	void (*done)(struct worker *w, struct beside_job *job);
	/* On the loop, in the context, which is going: gives back what `run` made. Then `done`.
	 * NULL: there is nothing. */
	void (*drop)(struct beside_job *job);
	/* On the loop, once `until` (wait_now()) is over and it still runs; NULL: there is no
	 * end. */
	void (*late)(struct worker *w, struct beside_job *job);
	uint64_t until;
	bool lasting; /* nobody waits for it where a context goes: it may wait for others */
	uint64_t seq; /* of the frame that it is for */
	uint16_t context;
	bool dropped;
	/* The rest is beside.c's. */
	const struct worker *w;
	const struct profiler *profiler; /* when it began */
	CUcontext current;
	struct beside_thread *thread;
	_Atomic bool ended;
	struct beside_job *next;
};

/* Starts it in the context of that number. False: there are as many as there may be, or no
 * thread is to be had, and the caller does it itself. */
bool beside_start(struct worker *w, struct beside_job *job, uint16_t context);
/* What has ended is told; true: something was. */
bool beside_poll(struct worker *w);
/* Waits for the jobs of a context that is going, and current, and drops them. */
void beside_forget(struct worker *w, uint16_t context);
/* A descriptor that is readable when a job has ended; -1: there was never one. */
int beside_wake(void);
/* Makes it so. Any thread of a job. */
void beside_awake(void);
/* It was: it is not readable any more until the next one. */
void beside_heard(void);

#endif
