/* SPDX-License-Identifier: Apache-2.0
 *
 * cuInit: joins the sidecar, opens the session on the worker, learns the devices (nvmlInit does
 * so much too, and cuInit finishes it: nvml.h).  And the end: at exit everything that was
 * posted is on its way before the process goes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/profile.h"
#include "shim/driver/device/nvml.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/engine/lock.h"

/* At exit: how long posted work may take to be taken over by the agent. */
#define INIT_BYE_NS 1000000000ull

static struct {
	pthread_mutex_t lock;
	/* The first answer stays: a program that tries again gets the same at once. */
	bool joined;
	CUresult join_answer;
	bool shown;
	CUresult show_answer;
} init = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(init, init.lock, LOCK_INIT);

static void perf_open(void)
{
	static const struct {
		const char *word;
		unsigned bit;
	} words[] = {
		{"no_post", PERF_POST},
		{"no_cache", PERF_CACHE},
		{"no_learn", PERF_LEARN},
		{"no_batch", PERF_BATCH},
		{"no_slab", PERF_SLAB},
		{"no_push", PERF_PUSH},
		{"no_zerocopy", PERF_ZEROCOPY},
		{"no_module_cache", PERF_MODULE_CACHE},
		{"no_userfaultfd", PERF_USERFAULTFD},
		{"no_direct", PERF_DIRECT},
		{"no_zstd", PERF_ZSTD},
		{"no_upload_cache", PERF_UPLOAD_CACHE},
	};
	const char *perf = secure_getenv("VCUDA_PERF");
	const char *strict = secure_getenv("VCUDA_STRICT");
	const char *blocking = secure_getenv("CUDA_LAUNCH_BLOCKING");

	while (perf && *perf) {
		size_t n = strcspn(perf, ",");
		bool known = !n;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strlen(words[i].word) == n && !strncmp(perf, words[i].word, n)) {
				shim_perf &= ~words[i].bit;
				known = true;
			}
		if (!known)
			session_debug(
				"VCUDA_PERF: \"%.*s\" is none of no_post no_cache no_learn "
				"no_batch no_slab no_push no_zerocopy no_module_cache "
				"no_userfaultfd no_direct no_zstd no_upload_cache",
				(int)n, perf);
		perf += n + (perf[n] == ',');
	}
	if (strict && !strcmp(strict, "1"))
		shim_perf &= ~(unsigned)(PERF_POST | PERF_LEARN);
	if (blocking && !strcmp(blocking, "1"))
		shim_perf &= ~(unsigned)(PERF_POST | PERF_LEARN | PERF_ASYNC);
}

static bool all_sent(uint64_t tail)
{
	return atomic_load(&session_here()->page->head) >= tail;
}

static void bye(void)
{
	struct session *here = session_here();
	uint64_t deadline = wait_now() + INIT_BYE_NS;
	struct frame_header *header;
	uint64_t tail;
	uint32_t body = 0;
	uint64_t one = 1;

	ring_lock(&here->ring);
	tail = here->ring.tail;
	header = ring_begin(&here->ring, &body, false);
	if (header) {
		header->kind = FRAME_BYE;
		ring_publish(&here->ring);
	}
	ring_unlock(&here->ring);
	(void)!write(here->doorbell, &one, sizeof(one));
	while (!all_sent(tail) && wait_now() < deadline && !session_check()) {
		uint32_t progress = atomic_load(&here->page->progress);

		atomic_fetch_add(&here->page->want_progress, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (!all_sent(tail))
			wait_sleep(&here->page->progress, progress, 20000000u);
		atomic_fetch_sub(&here->page->want_progress, 1);
	}
}

static void bye_at(struct session *session)
{
	struct session_visit visit = session_visit(session);

	bye();
	session_leave(visit);
}

static void all_become(enum session_phase phase)
{
	for (unsigned i = 0; i < session_count; i++)
		atomic_store_explicit(&sessions[i]->phase, phase, memory_order_release);
}

/* A child of fork has the parent's memory but not its sessions: every call says so, and the
 * descriptors go, so that the sidecar notices when the parent ends. A session that only NVML
 * used leaves nothing behind: the child may attach anew, and use CUDA. */
static void in_child(void)
{
	uint32_t phase = atomic_load(&session_first.phase);

	if (phase == SESSION_NONE)
		return;
	for (unsigned i = 0; i < session_count; i++) {
		struct session *here = sessions[i];
		struct session_visit visit = session_visit(here);

		if (phase == SESSION_JOINED) {
			attach_drop();
			atomic_store(&here->lost, 0);
			atomic_store(&here->phase, SESSION_NONE);
			/* Only this thread came along; another may have held it. */
			here->socket_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		} else {
			atomic_store(&here->phase, SESSION_FORKED);
			thread_self.handle = 0;
			rejoin_drop();
			close(here->socket);
			close(here->doorbell);
			here->socket = here->doorbell = -1;
		}
		session_leave(visit);
	}
	if (phase == SESSION_JOINED) {
		init.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		init.joined = init.shown = false;
		session_count = 1;
	}
}

/* Something of the program's lies there. A limit on address space is not that. ThreadSanitizer
 * has its shadow there, and ends a program that asks for the place. */
static bool window_taken(uint64_t from, uint64_t bytes)
{
#ifdef __SANITIZE_THREAD__
	return false;
#endif
	void *at = mmap((void *)(uintptr_t)from, bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return errno == EEXIST;
	munmap(at, bytes);
	return at != (void *)(uintptr_t)from; /* a kernel that does not know the flag */
}

static uint64_t window_span(uint64_t from, uint64_t span)
{
	return from << OPEN_WINDOW_FROM_SHIFT | span << OPEN_WINDOW_SPAN_SHIFT;
}

/* Where one agent's windows are, unless something is there already, as Java's heap is if it is
 * large (ZGC): then the largest free span that is left. */
static uint64_t window_around(void)
{
	if (!window_taken(OPEN_WINDOW_LOW, OPEN_WINDOW_MOST))
		return 0;
	for (uint64_t span = 2 * OPEN_WINDOW_MOST; span >= OPEN_WINDOW_UNIT; span /= 2)
		for (uint64_t from = OPEN_WINDOW_LOW; from <= OPEN_WINDOW_HIGH - span;
			from += span)
			if (!window_taken(from, span))
				return window_span(
					from / OPEN_WINDOW_UNIT, span / OPEN_WINDOW_UNIT);
	return 0;
}

/* Where the agent is to have its windows (open.h): behind those of the agents before it, with
 * an equal part of what there is left for each one that comes. */
static uint64_t window_wish(void)
{
	const unsigned agents = session_first.agents;
	uint64_t from;

	if (agents == 1)
		return window_around();
	from = (device_windows_end() + OPEN_WINDOW_UNIT - 1) / OPEN_WINDOW_UNIT;
	return window_span(from, (OPEN_WINDOW_HIGH / OPEN_WINDOW_UNIT - from) /
					 (agents - session_here()->index));
}

static CUresult session_open(void)
{
	struct shim_call call;
	struct wire_vcudaOpen *body;
	const struct wire_vcudaOpen_reply *reply;
	size_t room = sizeof(struct open_info) + OPEN_DEVICES * sizeof(struct open_device) +
		      OPEN_DEVICES * OPEN_DEVICES * sizeof(struct open_peer);
	uint64_t bounce;
	CUresult status = shim_bounce_get(room, &bounce);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaOpen, sizeof(*body));
	body->version = OPEN_VERSION;
	body->features = OPEN_FEATURE_PEERS | OPEN_FEATURE_SYMBOLS | OPEN_FEATURE_TENSORS |
			 OPEN_FEATURE_KERNELS | OPEN_FEATURE_ACCESS | OPEN_FEATURE_UNNAMED |
			 OPEN_FEATURE_LINKED | OPEN_FEATURE_HOST_MEMORY | OPEN_FEATURE_WITHIN |
			 window_wish();
	body->capacity = room;
	body->destination.offset = bounce;
	shim_send(&call);
	rejoin_watch();
	statistics_event(STATISTICS_ROUND_TRIPS);
	reply = shim_wait_sent(&call, 0);
	if (reply)
		call.status = call.received > room
				      ? status_of(CAUSE_FOREIGN)
				      : device_fill(shim_segment(bounce), call.received);
	if (reply)
		shim_bounce_put(bounce, room);
	return shim_end(&call);
}

/* The thread's session. */
static CUresult join_one(void)
{
	CUresult status = attach();

	if (status)
		return status;
	status = session_open();
	if (status)
		session_because("the agent did not open the session");
	return status;
}

/* The thread's session, attached or not, is not to be. Nobody follows the sidecar when it hangs
 * up. */
static void take_back(void)
{
	rejoin_drop();
	if (session_here()->page)
		bye();
}

/* The other agents' sessions, in their order. Where one cannot be had, there is none. */
static CUresult join_others(void)
{
	CUresult status = CUDA_SUCCESS;

	while (!status && session_count < session_first.agents) {
		struct session *next = session_new();
		struct session_visit visit;

		if (!next)
			return CUDA_ERROR_OUT_OF_MEMORY;
		visit = session_visit(next);
		status = join_one();
		if (status)
			take_back();
		session_leave(visit);
		if (!status)
			continue;
		for (unsigned i = 0; i + 1 < session_count; i++) {
			visit = session_visit(sessions[i]);
			take_back();
			session_leave(visit);
		}
		session_count = 1;
		memcpy(session_first.text, next->text, sizeof(next->text));
		session_mark_lost(status, next->text);
	}
	return status;
}

static CUresult join_once(void)
{
	static bool forks_watched;
	CUresult status;

	devices.info.device_count = 0;
	status = join_one();
	if (!session_first.page)
		return status;
	if (status) {
		take_back(); /* attached, and then refused */
		attach_drop();
		return status;
	}
	if (!forks_watched)
		pthread_atfork(NULL, NULL, in_child);
	forks_watched = true;
	status = join_others();
	if (!status)
		all_become(SESSION_JOINED);
	return status;
}

/* With the lock held. */
static CUresult join(void)
{
	if (!init.joined) {
		perf_open();
		init.join_answer = join_once();
		init.joined = true;
		if (init.join_answer)
			session_complain(init.join_answer);
	}
	return init.join_answer;
}

CUresult vcuda_nvml_join(void)
{
	CUresult status;

	if (atomic_load(&session_here()->phase) != SESSION_NONE)
		return session_status();
	pthread_mutex_lock(&init.lock);
	status = join();
	pthread_mutex_unlock(&init.lock);
	return status;
}

CUresult hand_cuInit(unsigned int Flags)
{
	struct session *here = session_here();
	uint32_t phase = atomic_load(&here->phase);
	CUresult status;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (phase != SESSION_NONE && phase != SESSION_JOINED)
		return session_status();
	pthread_mutex_lock(&init.lock);
	status = join();
	if (!status)
		status = session_status();
	if (!status && atomic_load(&here->phase) == SESSION_JOINED) {
		if (!init.shown)
			init.show_answer = device_show();
		init.shown = true;
		status = init.show_answer;
	}
	if (!status && atomic_load(&here->phase) == SESSION_JOINED) {
		mirror_open();
		status = memory_open();
		if (!status)
			all_become(SESSION_READY);
		else
			init.join_answer = status;
	}
	pthread_mutex_unlock(&init.lock);
	if (!status)
		profile_ready();
	return status;
}

/* First thing in the life of the library: only what must be known before the first call. */
__attribute__((constructor)) static void init_library(void)
{
	statistics_open();
}

/* After the program's own exit handlers and the destructors of whatever links with us. */
__attribute__((destructor)) void driver_end(void)
{
	if (atomic_load(&session_first.phase) == SESSION_FORKED)
		return;
	statistics_close();
	for (unsigned i = 0; i < session_count; i++) {
		uint32_t ready = SESSION_READY, only_joined = SESSION_JOINED;
		_Atomic uint32_t *phase = &sessions[i]->phase;

		if (atomic_compare_exchange_strong(phase, &ready, SESSION_ENDED) ||
			atomic_compare_exchange_strong(phase, &only_joined, SESSION_ENDED))
			bye_at(sessions[i]);
	}
}
