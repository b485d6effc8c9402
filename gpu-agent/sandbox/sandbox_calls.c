/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls that a worker is refused: at its start what no driver needs, and once the
 * driver is warm also programs, processes and connections, which NVIDIA's makes while it
 * starts.  A refused call fails with EPERM; nothing is killed for it.
 *
 * One seccomp filter hands all of them to the front, which counts what it refuses, and lets the
 * latter go on until the worker is READY (front/session/refusals.c).  Where it does not listen
 * any more the kernel refuses them (ENOSYS).  A kernel before 5.7 has two filters that refuse
 * by themselves, and nothing is counted.
 *
 * Calls that are not listed are looked up by number alone, which the kernel remembers: what a
 * worker does all day costs as little as before.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu-agent/sandbox/sandbox.h"

#ifdef __x86_64__

#define PROGRAM_MAX 512
#define X32_CALLS 0x40000000u

struct named {
	int call;
	const char *name;
};
#define CALL(call) {SYS_##call, #call}

/* Other processes, the kernel's own things, and ways around the rules for files. */
static const struct named never[] = {
#if !SANDBOX_SANITIZER
	CALL(ptrace),
#endif
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(process_madvise),
	CALL(kcmp),
	CALL(pidfd_open),
	CALL(pidfd_getfd),
	CALL(pidfd_send_signal),
	CALL(tkill),
	CALL(get_robust_list),
	CALL(migrate_pages),
	CALL(unshare),
	CALL(setns),
	CALL(mount),
	CALL(umount2),
	CALL(mount_setattr),
	CALL(move_mount),
	CALL(open_tree),
	CALL(fsopen),
	CALL(fsconfig),
	CALL(fsmount),
	CALL(fspick),
	CALL(chroot),
	CALL(pivot_root),
	CALL(swapon),
	CALL(swapoff),
	CALL(reboot),
	CALL(kexec_load),
	CALL(kexec_file_load),
	CALL(init_module),
	CALL(finit_module),
	CALL(delete_module),
	CALL(bpf),
	CALL(perf_event_open),
	CALL(userfaultfd),
	CALL(io_uring_setup),
	CALL(io_uring_enter),
	CALL(io_uring_register),
	CALL(add_key),
	CALL(request_key),
	CALL(keyctl),
	CALL(name_to_handle_at),
	CALL(open_by_handle_at),
	CALL(fanotify_init),
	CALL(quotactl),
	CALL(quotactl_fd),
	CALL(acct),
	CALL(syslog),
	CALL(settimeofday),
	CALL(clock_settime),
	CALL(clock_adjtime),
	CALL(adjtimex),
	CALL(sethostname),
	CALL(setdomainname),
	CALL(iopl),
	CALL(ioperm),
	CALL(modify_ldt),
	CALL(vhangup),
};

/* What NCCL makes for each communicator: its ranks talk by sockets. */
static const struct named connections[] = {
	CALL(socket),
	CALL(bind),
	CALL(connect),
	CALL(listen),
	CALL(accept),
	CALL(accept4),
};

/* Programs, and memory that all processes of a user share. */
static const struct named never_warm[] = {
#if !SANDBOX_SANITIZER
	CALL(execve),
	CALL(execveat),
	CALL(fork),
	CALL(vfork),
#endif
	CALL(shmget),
	CALL(shmat),
	CALL(shmctl),
	CALL(semget),
	CALL(semop),
	CALL(semtimedop),
	CALL(semctl),
	CALL(msgget),
	CALL(msgsnd),
	CALL(msgrcv),
	CALL(msgctl),
	CALL(mq_open),
	CALL(mq_unlink),
};

/* Calls that name a process: only with this one's number, or 0 where `zero` (itself). */
static const struct {
	struct named call;
	int argument;
	bool own, zero;
} of_process[] = {
	{CALL(kill), 0, true, false},
	{CALL(tgkill), 0, true, false},
	{CALL(rt_sigqueueinfo), 0, true, false},
	{CALL(rt_tgsigqueueinfo), 0, true, false},
	{CALL(prlimit64), 0, true, true},
	{CALL(sched_setparam), 0, false, true},
	{CALL(sched_setscheduler), 0, false, true},
	{CALL(sched_setattr), 0, false, true},
	{CALL(setpriority), 1, false, true},
	{CALL(ioprio_set), 1, false, true},
};

struct program {
	struct sock_filter at[PROGRAM_MAX];
	unsigned short n;
	uint32_t refusal; /* what a refused call comes to: SECCOMP_RET_… */
};

#define REFUSED (SECCOMP_RET_ERRNO | EPERM)

static void say(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	/* A filter that is cut short must not be one that allows: see calls_install. */
	if (p->n < PROGRAM_MAX)
		p->at[p->n] = (struct sock_filter){code, yes, no, k};
	p->n++;
}

static void say_allowed(struct program *p)
{
	say(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void say_refused(struct program *p)
{
	say(p, BPF_RET | BPF_K, p->refusal, 0, 0);
}

static void say_load(struct program *p, size_t offset)
{
	say(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The kernel takes the low half of numbers of processes, options and flags (little-endian). */
static void say_load_argument(struct program *p, int argument)
{
	say_load(p, offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t));
}

static void say_refuse(struct program *p, const struct named *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		say(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].call, 0, 1);
		say_refused(p);
	}
}
#define SAY_REFUSE(p, list) say_refuse(p, list, sizeof(list) / sizeof((list)[0]))

static void say_head(struct program *p)
{
	say_load(p, offsetof(struct seccomp_data, arch));
	say(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	say_refused(p);
	say_load(p, offsetof(struct seccomp_data, nr));
	say(p, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
	say_refused(p);
}

static void say_of_process(struct program *p)
{
	const uint32_t own = (uint32_t)getpid();

	for (size_t i = 0; i < sizeof(of_process) / sizeof(of_process[0]); i++) {
		say(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)of_process[i].call.call, 0, 5);
		say_load_argument(p, of_process[i].argument);
		say(p, BPF_JMP | BPF_JEQ | BPF_K, of_process[i].own ? own : 0, 1, 0);
		say(p, BPF_JMP | BPF_JEQ | BPF_K, of_process[i].zero ? 0 : own, 0, 1);
		say_allowed(p);
		say_refused(p);
	}
}

/* It ends with its parent, and stays hidden. */
static void say_prctl(struct program *p)
{
	if (SANDBOX_SANITIZER)
		return;
	say(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 6);
	say_load_argument(p, 0);
	say(p, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 3, 0);
	say(p, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_DUMPABLE, 2, 0);
	say(p, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 1, 0);
	say_allowed(p);
	say_refused(p);
}

/* Threads only. clone3's flags lie in memory, where a filter cannot look: the C library falls
 * back to clone. */
static void say_clone(struct program *p)
{
	if (SANDBOX_SANITIZER)
		return;
	say(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	say(p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
	say(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	say_load_argument(p, 0);
	say(p, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	say_allowed(p);
	say_refused(p);
}

/* 0, or with SECCOMP_FILTER_FLAG_NEW_LISTENER a descriptor; -errno. */
static int calls_install(struct program *p, unsigned flags)
{
	struct sock_fprog program = {.len = p->n, .filter = p->at};
	/* Older kernels slow a process with a filter down unless told not to. */
	const unsigned tries[] = {flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, flags};
	long ret = -1;

	if (p->n > PROGRAM_MAX)
		return -E2BIG;
	for (int i = 0; i < 2 && ret < 0; i++)
		ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, tries[i], &program);
	if (ret < 0)
		return -errno;
	/* Else: a thread that could not be brought along. */
	return !ret || flags & SECCOMP_FILTER_FLAG_NEW_LISTENER ? (int)ret : -ESRCH;
}

static void say_start(struct program *p, bool watches)
{
	if (watches) {
		say(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1);
		say_allowed(p);
	}
	SAY_REFUSE(p, never);
	say_of_process(p);
	say_prctl(p);
}

static void say_warm(struct program *p, bool connects)
{
	if (!connects)
		SAY_REFUSE(p, connections);
	SAY_REFUSE(p, never_warm);
	say_clone(p);
}

int sandbox_calls_start(bool connects, bool watches, int *listener)
{
	static struct program all = {.refusal = SECCOMP_RET_USER_NOTIF},
			      p = {.refusal = REFUSED};

	if (listener)
		*listener = -1;
	say_head(&all);
	say_start(&all, watches);
	say_warm(&all, connects);
	say_allowed(&all);
	if (listener && !SANDBOX_SANITIZER)
		*listener = calls_install(&all, SECCOMP_FILTER_FLAG_NEW_LISTENER |
							SECCOMP_FILTER_FLAG_TSYNC |
							SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
	if (listener && *listener >= 0)
		return 0;
	say_head(&p);
	say_start(&p, watches);
	say_allowed(&p);
	return calls_install(&p, 0);
}

int sandbox_calls_warm(bool connects)
{
	static struct program p = {.refusal = REFUSED};

	say_head(&p);
	say_warm(&p, connects);
	say_allowed(&p);
	return calls_install(&p, SECCOMP_FILTER_FLAG_TSYNC);
}

/* --- the front ---------------------------------------------------------------------------- */

static bool is_in(const struct named *list, size_t count, int call)
{
	while (count-- && list[count].call != call)
		;
	return count != SIZE_MAX;
}
#define IS_IN(list, call) is_in(list, sizeof(list) / sizeof((list)[0]), call)

bool sandbox_call_warms(uint32_t arch, int call)
{
	return arch == AUDIT_ARCH_X86_64 &&
	       (IS_IN(connections, call) || IS_IN(never_warm, call) || call == SYS_clone);
}

/* All that a filter refuses, in one order; NULL behind the last. */
static const struct named *call_at(unsigned index)
{
	static const struct named others[] = {CALL(prctl), CALL(clone)};
#define PART(list, field)                                                                      \
	if (index < sizeof(list) / sizeof((list)[0]))                                          \
		return &list[index] field;                                                     \
	index -= (unsigned)(sizeof(list) / sizeof((list)[0]))
	PART(never, );
	PART(connections, );
	PART(never_warm, );
	PART(of_process, .call);
	PART(others, );
#undef PART
	return NULL;
}

unsigned sandbox_call(uint32_t arch, int call)
{
	const struct named *named;

	for (unsigned i = 0; arch == AUDIT_ARCH_X86_64 && (named = call_at(i)); i++)
		if (named->call == call)
			return i + 1;
	return 0;
}

const char *sandbox_call_name(unsigned index)
{
	const struct named *named = index ? call_at(index - 1) : NULL;

	return index ? named ? named->name : NULL : "other";
}

_Static_assert(1 + sizeof(never) / sizeof(never[0]) +
			       sizeof(connections) / sizeof(connections[0]) +
			       sizeof(never_warm) / sizeof(never_warm[0]) +
			       sizeof(of_process) / sizeof(of_process[0]) + 2 <=
		       SANDBOX_CALLS_MOST,
	"a counter for each");

#else

int sandbox_calls_start(bool connects, bool watches, int *listener)
{
	(void)connects;
	(void)watches;
	if (listener)
		*listener = -1;
	return -ENOSYS;
}

int sandbox_calls_warm(bool connects)
{
	(void)connects;
	return -ENOSYS;
}

bool sandbox_call_warms(uint32_t arch, int call)
{
	(void)arch;
	(void)call;
	return false;
}

unsigned sandbox_call(uint32_t arch, int call)
{
	(void)arch;
	(void)call;
	return 0;
}

const char *sandbox_call_name(unsigned index)
{
	return index ? NULL : "other";
}

#endif
