/* SPDX-License-Identifier: Apache-2.0
 *
 * While work is outstanding and something is active, this thread sends what the program writes,
 * and keeps a wait parked at the agent, which is answered when a kernel has written something:
 * so a kernel that waits for the program, and a program that waits for a kernel, both go on.
 * With nothing outstanding it sleeps.
 */
#include "shim/driver/memory/mirror/mirror_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "common/wait.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"

/* Between two looks at the program's memory: short while things change, then ever longer, and
 * so from one wait to the next. Kernels often name a page by chance (what a structure holds
 * where nothing was written), and nothing ever changes there that another thread waits for. */
#define THREAD_LOOK_NS 20000u
#define THREAD_LOOK_MOST_NS 1000000u
/* A look may take that part of the time. */
#define THREAD_PART 4
#define THREAD_IDLE_NS 1000000000u

static struct {
	pthread_mutex_t lock;
	bool running;
	_Atomic uint32_t work;	   /* futex word: bumped when work was posted */
	_Atomic uint32_t sleeping; /* the thread waits for that */
} thread = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(mirror_thread, thread.lock, LOCK_TEND);

void mirror_posted(uint16_t op)
{
	if (MIRROR_OP(op))
		return;
	atomic_fetch_add(&thread.work, 1);
	if (atomic_load(&thread.sleeping))
		wait_wake(&thread.work);
}

static bool ready(void)
{
	return atomic_load(&session_here()->phase) == SESSION_READY && !session_check();
}

struct parked {
	struct shim_call call;
	uint64_t bounce;
};

static CUresult park(struct parked *parked)
{
	struct wire_vcudaMirrorWait *body;

	body = shim_begin(&parked->call, OP_vcudaMirrorWait, sizeof(*body));
	body->destination.offset = parked->bounce;
	statistics_event(STATISTICS_ROUND_TRIPS);
	return shim_send(&parked->call);
}

/* The pause behind one look, or one answer. */
static void pause_adapt(uint64_t *pause, bool changed)
{
	*pause = changed ? *pause / 4 : *pause + *pause / 4;
	if (*pause < THREAD_LOOK_NS)
		*pause = THREAD_LOOK_NS;
	if (*pause > THREAD_LOOK_MOST_NS)
		*pause = THREAD_LOOK_MOST_NS;
}

/* Looks at the program's memory until the wait is answered. */
static CUresult tend(struct parked *parked, uint64_t *pause)
{
	for (;;) {
		uint64_t from = wait_now(), took;
		bool changed;
		CUresult status = mirror_send(&changed, NULL);

		if (status)
			return status;
		took = wait_now() - from;
		pause_adapt(pause, changed);
		if (shim_wait_for(&parked->call,
			    *pause > THREAD_PART * took ? *pause : THREAD_PART * took))
			return CUDA_SUCCESS;
		if (!ready())
			return CUDA_ERROR_NOT_READY;
	}
}

/* One wait, to its end. */
static CUresult follow(struct parked *parked, uint64_t *pause, bool *idle)
{
	struct mirror_answer answer = {0};
	CUresult status = park(parked), tended;

	tended = status ? status : tend(parked, pause);
	if (!status)
		shim_wait_sent(&parked->call, 0);
	if (!parked->call.status && parked->call.received <= MIRROR_FETCH_MAX)
		parked->call.status = mirror_take_over(
			shim_segment(parked->bounce), parked->call.received, &answer);
	if (answer.bytes)
		pause_adapt(pause, true);
	*idle = answer.idle;
	status = shim_end(&parked->call);
	return status ? status : tended;
}

static void *thread_main(void *unused)
{
	struct parked parked = {0};
	uint64_t pause = THREAD_LOOK_NS;
	uint32_t done = 0;

	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1000);
	if (shim_bounce_get(MIRROR_FETCH_MAX, &parked.bounce))
		return NULL;
	while (ready()) {
		uint32_t work = atomic_load(&thread.work);
		bool idle;

		if (work == done || !mirror_any()) {
			/* The next work is often near: until then no call has to wake us. */
			wait_sleep(&thread.work, work, pause);
			if (atomic_load(&thread.work) != work)
				continue;
			atomic_store(&thread.sleeping, 1);
			wait_sleep(&thread.work, work, THREAD_IDLE_NS);
			atomic_store(&thread.sleeping, 0);
			continue;
		}
		if (follow(&parked, &pause, &idle))
			break;
		if (idle)
			done = work;
	}
	return NULL;
}

/* The app's signals are not for this thread. */
CUresult mirror_thread_start(void)
{
	sigset_t all, old;
	pthread_t started;
	int ret = 0;

	pthread_mutex_lock(&thread.lock);
	if (!thread.running) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ret = pthread_create(&started, NULL, thread_main, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (!ret)
			pthread_detach(started);
		thread.running = !ret;
	}
	pthread_mutex_unlock(&thread.lock);
	return ret ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
