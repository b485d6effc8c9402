/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches.  The blocks of a launch (by clusters) are claimed one by one by the threads of a
 * pool and by the launching thread itself.  Whoever runs a block that only waits takes up
 * another one beside it, so that blocks that wait for each other (a grid-wide barrier) all come
 * to run.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "softgpu/ptx/internal.h"

/* Blocks that one thread keeps going at once where the launch is not cooperative; more only
 * costs memory. */
#define MAX_RESIDENT 64
/* GPUs give out shared memory in such pieces (compute capability 8.0), and what a kernel reads
 * within its last one is no fault: Dr.Jit's reductions do. */
#define SHARED_UNIT 128u
/* Turns that a block takes before the next one is taken up beside it. */
#define TURNS_ALONE 32

struct ptx_window ptx_device_window;
const atomic_uchar *ptx_denied_map;
_Thread_local struct ptx_worker *ptx_current;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, left;
	struct ptx_run_state *runs;
	unsigned threads;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.left = PTHREAD_COND_INITIALIZER};

static atomic_uint_fast64_t instructions, grids;
static struct sigaction old_segv, old_bus;

uint64_t ptx_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ptx_instructions(void)
{
	return atomic_load(&instructions);
}

/* ---- Faults ---- */

void ptx_fault(struct ptx_warp *w, const struct ptx_ins *i, enum ptx_status status,
	const char *format, ...)
{
	struct ptx_worker *worker = ptx_current;
	const struct ptx_module *module = w->block->run->module;
	struct ptx_error *error = &worker->error;
	va_list ap;

	va_start(ap, format);
	error->status = status;
	error->line = i ? module->lines[i - module->code] : 0;
	vsnprintf(error->text, sizeof(error->text), format, ap);
	va_end(ap);
	siglongjmp(worker->fault, 1);
}

/* A page of the device window that is not mapped.  Everything else is somebody else's fault. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	struct ptx_worker *worker = ptx_current;
	uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
	struct sigaction *old = number == SIGBUS ? &old_bus : &old_segv;

	if (worker && worker->armed &&
		address - ptx_device_window.base < ptx_device_window.span) {
		const struct ptx_warp *w = worker->warp;
		const struct ptx_module *module = worker->run->module;

		worker->error.status = PTX_ILLEGAL_ADDRESS;
		worker->error.line = w && w->at ? module->lines[w->at - module->code] : 0;
		worker->fault_address = address;
		siglongjmp(worker->fault, 2);
	}
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(number, info, context);
	} else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
		signal(number, SIG_DFL); /* the access is tried again, and ends the process */
	} else {
		old->sa_handler(number);
	}
}

/* ---- Memory ---- */

void *ptx_generic(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t address,
	size_t size)
{
	uint64_t at = address & ((UINT64_C(1) << 48) - 1);
	uint64_t space = address - at;

	w->at = i;
	if (address & (size - 1))
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS, "misaligned address 0x%llx",
			(unsigned long long)address);
	if (address - w->window_base < w->window_span &&
		w->window_span - (address - w->window_base) >= size && !ptx_denied(w, address))
		return (void *)(uintptr_t)address;
	if (!space && ptx_outside(address, size))
		return (void *)(uintptr_t)address;
	if (space == PTX_SHARED_BASE && at < (UINT64_C(1) << 32)) {
		const struct ptx_group *group = w->block->group;
		uint32_t rank = (uint32_t)(at >> PTX_RANK_SHIFT);
		unsigned char *shared = w->shared;

		at &= (1u << PTX_RANK_SHIFT) - 1;
		if (rank && rank <= group->nblocks)
			shared = group->blocks[rank - 1].shared;
		if (rank <= group->nblocks && at < w->shared_bytes &&
			w->shared_bytes - at >= size)
			return shared + at;
	}
	if (space == PTX_LOCAL_BASE && at < w->local_bytes && w->local_bytes - at >= size)
		return ptx_local(w, lane) + at;
	if (space == PTX_PARAM_BASE && at < w->param_bytes && w->param_bytes - at >= size)
		return (void *)(uintptr_t)(w->params + at);
	ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "illegal address 0x%llx",
		(unsigned long long)address);
}

/* ---- Turns ---- */

static void run_failed(struct ptx_run_state *run, const struct ptx_error *error)
{
	int none = PTX_OK;

	if (!error->status)
		return;
	pthread_mutex_lock(&pool.lock);
	if (atomic_compare_exchange_strong(&run->status, &none, (int)error->status))
		run->error = *error;
	pthread_mutex_unlock(&pool.lock);
}

static void keep_going(struct ptx_worker *worker)
{
	struct ptx_run_state *run = worker->run;
	uint32_t cap = run->launch->cooperative ? UINT32_MAX : MAX_RESIDENT, resident = 0;
	bool left = true;

	while (!atomic_load_explicit(&run->status, memory_order_relaxed)) {
		struct ptx_group *group, **at;

		if (left && resident < cap) {
			uint64_t index = atomic_fetch_add(&run->next_group, 1);

			if (index >= run->ngroups) {
				left = false;
			} else {
				group = worker->spare;
				if (group)
					worker->spare = group->next;
				else
					group = ptx_group_new(run);
				if (!group || !ptx_group_start(group, index)) {
					ptx_group_free(group);
					worker->error = (struct ptx_error){PTX_NO_MEMORY, 0,
						"no host memory for the kernel's blocks"};
					return;
				}
				group->next = worker->resident;
				worker->resident = group;
				resident++;
			}
		}
		if (!worker->resident)
			return;
		for (at = &worker->resident; (group = *at);) {
			unsigned turns = run->launch->cooperative ? 1 : TURNS_ALONE;

			if (ptx_group_turn(worker, group, turns) == PTX_TURN_MORE) {
				at = &group->next;
				continue;
			}
			*at = group->next;
			group->next = worker->spare;
			worker->spare = group;
			resident--;
		}
	}
}

/* Claims groups until none are left.  Faults come back here. */
static void take_part(struct ptx_run_state *run)
{
	struct ptx_worker *worker = calloc(1, sizeof(*worker)), *before = ptx_current;
	unsigned mxcsr = _mm_getcsr();
	struct ptx_group *group;
	int how;

	if (!worker) {
		struct ptx_error error = {PTX_NO_MEMORY, 0, "no host memory"};

		run_failed(run, &error);
		return;
	}
	worker->run = run;
	ptx_current = worker;
	_mm_setcsr(PTX_MXCSR_DEFAULT);
	how = sigsetjmp(worker->fault, 0);
	if (!how) {
		worker->armed = true;
		keep_going(worker);
	} else if (how == 2) {
		snprintf(worker->error.text, sizeof(worker->error.text),
			"illegal address 0x%llx: no memory there",
			(unsigned long long)worker->fault_address);
	}
	worker->armed = false;
	_mm_setcsr(mxcsr);
	run_failed(run, &worker->error);
	while ((group = worker->resident)) {
		worker->resident = group->next;
		ptx_group_free(group);
	}
	while ((group = worker->spare)) {
		worker->spare = group->next;
		ptx_group_free(group);
	}
	atomic_fetch_add(&run->instructions, worker->count);
	ptx_current = before;
	free(worker);
}

/* ---- The pool ---- */

static struct ptx_run_state *find_work(void)
{
	for (struct ptx_run_state *run = pool.runs; run; run = run->next)
		if (atomic_load(&run->next_group) < run->ngroups && !atomic_load(&run->status))
			return run;
	return NULL;
}

static void *pool_thread(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct ptx_run_state *run;

		while (!(run = find_work()))
			pthread_cond_wait(&pool.work, &pool.lock);
		run->workers++;
		pthread_mutex_unlock(&pool.lock);
		take_part(run);
		pthread_mutex_lock(&pool.lock);
		if (!--run->workers)
			pthread_cond_broadcast(&pool.left);
	}
	return NULL;
}

void ptx_denied_set(const atomic_uchar *denied)
{
	ptx_denied_map = denied;
}

int ptx_init(const struct ptx_window *window, unsigned threads)
{
	struct sigaction action = {.sa_sigaction = on_fault};
	sigset_t all, old;
	cpu_set_t cpus;

	ptx_device_window = *window;
	ptx_op_init();
	action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, &old_segv) || sigaction(SIGBUS, &action, &old_bus))
		return -errno;
	if (!threads) {
		threads = 1;
		if (!sched_getaffinity(0, sizeof(cpus), &cpus))
			threads = (unsigned)CPU_COUNT(&cpus);
	}
	/* The launching thread takes part, so one fewer. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (pool.threads + 1 < threads) {
		pthread_t thread;
		int ret = pthread_create(&thread, NULL, pool_thread, NULL);

		if (ret)
			break; /* fewer threads are slower, not wrong */
		pthread_detach(thread);
		pool.threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return 0;
}

/* ---- Launch ---- */

static enum ptx_status refuse(struct ptx_error *error, enum ptx_status status, int line,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

static enum ptx_status refuse(
	struct ptx_error *error, enum ptx_status status, int line, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	error->status = status;
	error->line = line;
	vsnprintf(error->text, sizeof(error->text), format, ap);
	va_end(ap);
	return status;
}

enum ptx_status ptx_launch_check(const struct ptx_launch *launch, struct ptx_error *error)
{
	const struct ptx_function *f = launch->kernel->function;
	const uint32_t *g = launch->grid, *n = launch->block, *c = launch->cluster;
	uint64_t threads = (uint64_t)n[0] * n[1] * n[2], cluster = (uint64_t)c[0] * c[1] * c[2];

	if (!threads || n[0] > PTX_MAX_THREADS || n[1] > PTX_MAX_THREADS || n[2] > 64 ||
		threads > PTX_MAX_THREADS || (f->max_threads && threads > f->max_threads))
		return refuse(error, PTX_INVALID, 0, "%s: a block of %ux%ux%u threads", f->name,
			n[0], n[1], n[2]);
	if (f->required[0] &&
		(n[0] != f->required[0] || n[1] != f->required[1] || n[2] != f->required[2]))
		return refuse(error, PTX_INVALID, 0, "%s wants blocks of %ux%ux%u threads",
			f->name, f->required[0], f->required[1], f->required[2]);
	if (!g[0] || !g[1] || !g[2] || g[0] > INT32_MAX || g[1] > 65535 || g[2] > 65535)
		return refuse(error, PTX_INVALID, 0, "%s: a grid of %ux%ux%u blocks", f->name,
			g[0], g[1], g[2]);
	if (!c[0] || !c[1] || !c[2] || c[0] > PTX_MAX_CLUSTER || c[1] > PTX_MAX_CLUSTER ||
		c[2] > PTX_MAX_CLUSTER || cluster > PTX_MAX_CLUSTER || g[0] % c[0] ||
		g[1] % c[1] || g[2] % c[2])
		return refuse(error, PTX_INVALID, 0, "%s: a cluster of %ux%ux%u blocks",
			f->name, c[0], c[1], c[2]);
	if ((uint64_t)f->shared_bytes + launch->dynamic_shared > PTX_MAX_SHARED)
		return refuse(error, PTX_INVALID, 0, "%s: %u bytes of shared memory", f->name,
			launch->dynamic_shared);
	if (f->bad_line)
		return refuse(error, PTX_NOT_SUPPORTED, f->bad_line, "%s: not served: %s",
			f->name, f->bad_text ? f->bad_text : "an instruction");
	return PTX_OK;
}

/* One grid; what it launched comes to the head of `todo`. */
static enum ptx_status run_grid(const struct ptx_launch *launch, uint64_t deadline_ns,
	unsigned depth, atomic_uint *pending, struct ptx_children *todo,
	struct ptx_error *error)
{
	const struct ptx_module *module = launch->kernel->module;
	struct ptx_run_state run = {
		.launch = launch, .module = module, .depth = depth, .pending = pending};
	struct ptx_run_state **at;
	const uint32_t *g = launch->grid, *c = launch->cluster;
	uint32_t align = module->dynamic_align;

	if (ptx_launch_check(launch, error))
		return error->status;
	if (launch->kernel->function->param_bytes && !launch->params)
		return refuse(error, PTX_INVALID, 0, "%s: no parameters",
			launch->kernel->function->name);
	run.function = launch->kernel->function;
	run.static_shared = (run.function->shared_bytes + align - 1) & ~(align - 1);
	run.shared_bytes = (run.static_shared + launch->dynamic_shared + SHARED_UNIT - 1) &
			   ~(SHARED_UNIT - 1);
	run.ngroups = (uint64_t)(g[0] / c[0]) * (g[1] / c[1]) * (g[2] / c[2]);
	run.grid_id = atomic_fetch_add(&grids, 1) + 1;
	if (launch->cooperative && module->workspace) {
		run.workspace =
			module->workspace + PTX_WORKSPACE * (run.grid_id % PTX_WORKSPACES);
		memset((void *)(uintptr_t)run.workspace, 0, PTX_WORKSPACE);
	}
	run.deadline_ns = deadline_ns;

	if (run.ngroups > 1 && pool.threads) {
		pthread_mutex_lock(&pool.lock);
		run.next = pool.runs;
		pool.runs = &run;
		pthread_cond_broadcast(&pool.work);
		pthread_mutex_unlock(&pool.lock);
	}
	take_part(&run);
	if (run.ngroups > 1 && pool.threads) {
		pthread_mutex_lock(&pool.lock);
		for (at = &pool.runs; *at; at = &(*at)->next)
			if (*at == &run) {
				*at = run.next;
				break;
			}
		while (run.workers)
			pthread_cond_wait(&pool.left, &pool.lock);
		pthread_mutex_unlock(&pool.lock);
	}
	atomic_fetch_add(&instructions, atomic_load(&run.instructions));
	if (atomic_load(&run.status))
		*error = run.error;
	ptx_children_take(&run, todo);
	return error->status;
}

/* A copy or fill that a kernel asked for; its faults are a kernel's. */
static enum ptx_status run_move(
	const struct ptx_launch *launch, const struct ptx_child *child, struct ptx_error *error)
{
	struct ptx_run_state run = {.launch = launch, .module = launch->kernel->module};
	struct ptx_worker worker = {.run = &run}, *before = ptx_current;
	struct ptx_block block = {.run = &run};
	struct ptx_warp warp = {.block = &block,
		.window_base = ptx_device_window.base,
		.denied = ptx_denied_map,
		.device_bit = (unsigned char)(1u << launch->device)};
	int how;

	worker.warp = &warp;
	ptx_current = &worker;
	how = sigsetjmp(worker.fault, 0);
	if (!how) {
		worker.armed = true;
		ptx_child_move(child);
	} else if (how == 2) {
		snprintf(worker.error.text, sizeof(worker.error.text),
			"a copy at the illegal address 0x%llx: no memory there",
			(unsigned long long)worker.fault_address);
	}
	worker.armed = false;
	ptx_current = before;
	if (worker.error.status)
		*error = worker.error;
	return error->status;
}

static enum ptx_status run_child(const struct ptx_launch *launch, struct ptx_child *child,
	uint64_t deadline_ns, atomic_uint *pending, struct ptx_children *todo,
	struct ptx_error *error)
{
	struct ptx_kernel kernel = {
		launch->kernel->module, (struct ptx_function *)(uintptr_t)child->function};
	struct ptx_launch inner = *launch;

	if (launch->cancel && atomic_load(launch->cancel))
		return refuse(error, PTX_TIMEOUT, 0, "the launch was cancelled");
	if (deadline_ns && ptx_now_ns() > deadline_ns)
		return refuse(error, PTX_TIMEOUT, 0, "the kernel ran longer than %llu ms",
			(unsigned long long)(launch->timeout_ns / 1000000));
	if (!child->function)
		return run_move(launch, child, error);
	inner.kernel = &kernel;
	inner.params = child->params;
	inner.dynamic_shared = child->shared;
	inner.cooperative = false;
	memcpy(inner.grid, child->grid, sizeof(inner.grid));
	memcpy(inner.block, child->block, sizeof(inner.block));
	for (int axis = 0; axis < 3; axis++)
		inner.cluster[axis] =
			child->function->cluster[axis] ? child->function->cluster[axis] : 1;
	return run_grid(&inner, deadline_ns, child->depth, pending, todo, error);
}

enum ptx_status ptx_launch(const struct ptx_launch *launch, struct ptx_error *error)
{
	uint64_t deadline_ns = launch->timeout_ns ? ptx_now_ns() + launch->timeout_ns : 0;
	struct ptx_children todo = {0};
	struct ptx_child *child;
	atomic_uint pending = 0;

	memset(error, 0, sizeof(*error));
	(void)run_grid(launch, deadline_ns, 0, &pending, &todo, error);
	while (!error->status && (child = ptx_children_next(&todo))) {
		atomic_fetch_sub(&pending, 1);
		(void)run_child(launch, child, deadline_ns, &pending, &todo, error);
		free(child);
	}
	ptx_children_drop(&todo);
	return error->status;
}
