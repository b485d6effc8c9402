/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching by SIGSEGV, where the kernel lets us have no userfaultfd.  The pages lie in a memory
 * file that is mapped twice: for the program, protected, and for us.  The handler only asks the
 * thread of page_fault.c and waits: whatever the program was in the middle of, that thread is
 * not.
 *
 * Faults that are none of ours go to the program's own action, which libutilities.so keeps
 * behind ours (common/guard.h); without it, to the one that was set when we came.
 */
#include <errno.h>
#include <linux/memfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/guard.h"
#include "common/wait.h"
#include "shim/driver/memory/pages/page_fault.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/pages/pages.h"
#include "shim/engine/thread.h"

/* Threads that wait for a page at once; more wait for a slot. */
#define SIGNAL_SLOTS 256
/* A sleeper looks again that often, in case a wake-up got lost. */
#define SIGNAL_LOOK_NS 50000000u
#define SIGNAL_ERROR_WRITE 2 /* of the CPU's error code */

enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_POSTED, SLOT_SERVED, SLOT_MANAGED, SLOT_FOREIGN };

struct slot {
	_Atomic uint32_t state;
	uint64_t address;
	bool write, in_callback;
};

extern struct vcuda_guard vcuda_guard __attribute__((weak, visibility("default")));

static struct {
	struct slot slots[SIGNAL_SLOTS];
	_Atomic uint32_t posted; /* futex word */
	/* The program's action: written by one thread at a time, read by handlers. */
	_Atomic uint32_t version; /* odd: being written */
	struct sigaction app;
} faults;

/* ---- the program's own action ---- */

static struct sigaction app_read(void)
{
	struct sigaction action;
	uint32_t version;

	do {
		version = atomic_load(&faults.version);
		action = faults.app;
		atomic_thread_fence(memory_order_acquire);
	} while (version & 1 || version != atomic_load(&faults.version));
	return action;
}

static int app_action(const struct sigaction *set, struct sigaction *was)
{
	struct sigaction now = app_read();

	if (set) {
		uint32_t version = atomic_load(&faults.version) & ~1u;

		while (!atomic_compare_exchange_weak(&faults.version, &version, version + 1))
			version &= ~1u;
		faults.app = *set;
		atomic_store(&faults.version, version + 2);
	}
	if (was)
		*was = now;
	return 0;
}

/* By the kernel: libutilities.so's stand-in would set what is behind this one. */
static bool kernel_action(const struct sigaction *set, struct sigaction *was)
{
	int (*action)(const struct sigaction *, struct sigaction *) = NULL;
	bool set_now;

	if (&vcuda_guard)
		action = atomic_exchange(&vcuda_guard.action, NULL);
	set_now = !sigaction(SIGSEGV, set, was);
	if (action)
		atomic_store(&vcuda_guard.action, action);
	return set_now;
}

/* The default: the process ends by the signal, at the instruction that faulted. */
static void app_default(const siginfo_t *info)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	kernel_action(&action, NULL);
	if (info->si_code <= 0) /* somebody sent it: it does not come again by itself */
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGSEGV);
}

/* As the kernel would call it. */
static void app_call(int sig, siginfo_t *info, void *context)
{
	struct sigaction action = app_read();
	sigset_t mask = action.sa_mask, before;

	if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN &&
		info->si_code <= 0)
		return;
	if (!(action.sa_flags & SA_SIGINFO) &&
		(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
		app_default(info);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND)
		app_action(&(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	if (!(action.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	/* Straight to the kernel: the stand-in lets nobody block this signal. */
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &before, _NSIG / 8);
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(sig, info, context);
	else
		action.sa_handler(sig);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, _NSIG / 8);
}

/* ---- asking ---- */

static struct slot *slot_get(void)
{
	for (;;) {
		for (unsigned i = 0; i < SIGNAL_SLOTS; i++) {
			uint32_t state = SLOT_FREE;

			if (atomic_compare_exchange_strong(
				    &faults.slots[i].state, &state, SLOT_TAKEN))
				return &faults.slots[i];
		}
		wait_relax();
	}
}

/* False: it is no managed memory. */
static bool ask(uint64_t address, bool write)
{
	struct slot *slot = slot_get();
	uint32_t state;

	slot->address = address & ~(uint64_t)(PAGE_BYTES - 1);
	slot->write = write;
	slot->in_callback = thread_self.in_callback;
	atomic_store(&slot->state, SLOT_POSTED);
	atomic_fetch_add(&faults.posted, 1);
	wait_wake(&faults.posted);
	while ((state = atomic_load(&slot->state)) == SLOT_POSTED || state == SLOT_SERVED)
		wait_sleep(&slot->state, state, SIGNAL_LOOK_NS);
	atomic_store(&slot->state, SLOT_FREE);
	return state == SLOT_MANAGED;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *machine = context;
	uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
	int error = errno;

	/* In a child of fork nothing is mapped there, so it is another code. */
	if (info->si_code == SEGV_ACCERR && managed_near(address) &&
		ask(address, machine->uc_mcontext.gregs[REG_ERR] & SIGNAL_ERROR_WRITE))
		errno = error;
	else
		app_call(sig, info, context);
}

static bool way_open(void)
{
	struct sigaction ours = {.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};

	sigemptyset(&ours.sa_mask);
	if (sigaction(SIGSEGV, NULL, &faults.app) || sigaction(SIGSEGV, &ours, NULL))
		return false;
	if (&vcuda_guard) {
		atomic_store(&vcuda_guard.reach, managed_reach);
		atomic_store(&vcuda_guard.action, app_action);
	}
	return true;
}

/* ---- the pages ---- */

static void *address_of(uint64_t at)
{
	return (void *)(uintptr_t)at;
}

static void way_unmap(uint64_t at, void *view, size_t bytes, bool ours)
{
	munmap(view, bytes);
	if (ours)
		mmap(address_of(at), bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(address_of(at), bytes);
}

static void *map_file(int fd, uint64_t at, size_t bytes, bool ours)
{
	void *got = mmap(address_of(at), bytes, PROT_NONE,
		MAP_SHARED | (ours ? MAP_FIXED : MAP_FIXED_NOREPLACE), fd, 0);

	if (got == MAP_FAILED || got == address_of(at))
		return got;
	munmap(got, bytes); /* an old kernel takes the address for a wish */
	return MAP_FAILED;
}

static void *way_map(uint64_t at, size_t bytes, bool ours)
{
	int fd = (int)syscall(SYS_memfd_create, "vcuda-managed", MFD_CLOEXEC);
	void *view = MAP_FAILED, *got = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, (off_t)bytes))
		view = mmap(
			NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (view != MAP_FAILED)
		got = map_file(fd, at, bytes, ours);
	close(fd);
	/* A child of fork has none of it, as natively. */
	if (got != MAP_FAILED && !madvise(got, bytes, MADV_DONTFORK) &&
		!madvise(view, bytes, MADV_DONTFORK))
		return view;
	if (got != MAP_FAILED)
		way_unmap(at, view, bytes, ours);
	else if (view != MAP_FAILED)
		munmap(view, bytes);
	return NULL;
}

static bool protect(uint64_t at, size_t bytes, int protection)
{
	return !mprotect(address_of(at), bytes, protection);
}

static bool way_install(uint64_t at, void *view, const void *from, size_t bytes, bool write)
{
	/* Pages that the program has not are holes of the file: zeroes. */
	if (from)
		memcpy(view, from, bytes);
	return protect(at, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ);
}

static bool way_let_write(uint64_t at, size_t bytes)
{
	return protect(at, bytes, PROT_READ | PROT_WRITE);
}

static bool way_forbid_write(uint64_t at, size_t bytes)
{
	return protect(at, bytes, PROT_READ);
}

static bool way_evict(uint64_t at, void *view, size_t bytes)
{
	return protect(at, bytes, PROT_NONE) && !madvise(view, bytes, MADV_REMOVE);
}

static bool next_posted(struct fault *fault)
{
	for (unsigned i = 0; i < SIGNAL_SLOTS; i++) {
		struct slot *slot = &faults.slots[i];
		uint32_t state = SLOT_POSTED;

		if (!atomic_compare_exchange_strong(&slot->state, &state, SLOT_SERVED))
			continue;
		*fault = (struct fault){.address = slot->address,
			.write = slot->write,
			.in_callback = slot->in_callback,
			.asked = slot};
		return true;
	}
	return false;
}

static bool way_next(struct fault *fault)
{
	for (;;) {
		uint32_t posted = atomic_load(&faults.posted);

		if (next_posted(fault))
			return true;
		wait_sleep(&faults.posted, posted, SIGNAL_LOOK_NS);
	}
}

static void way_done(const struct fault *fault, bool managed)
{
	struct slot *slot = fault->asked;

	atomic_store(&slot->state, managed ? SLOT_MANAGED : SLOT_FOREIGN);
	wait_wake(&slot->state);
}

const bool fault_seen = true;
const struct fault_way fault_signal = {.open = way_open,
	.map = way_map,
	.unmap = way_unmap,
	.install = way_install,
	.let_write = way_let_write,
	.forbid_write = way_forbid_write,
	.evict = way_evict,
	.next = way_next,
	.done = way_done};
