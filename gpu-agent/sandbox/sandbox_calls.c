/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls that a worker is refused, by two seccomp filters: at its start what no
 * driver needs, and once the driver is warm also programs, processes and connections, which
 * NVIDIA's makes while it starts.  A refused call fails with EPERM; nothing is killed for it.
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu-agent/sandbox/sandbox.h"

#ifdef __x86_64__

#define PROGRAM_MAX 512
#define X32_CALLS 0x40000000u

/* Other processes, the kernel's own things, and ways around the rules for files. */
static const int never[] = {
#if !SANDBOX_SANITIZER
	SYS_ptrace,
#endif
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_kcmp,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	SYS_tkill,
	SYS_get_robust_list,
	SYS_migrate_pages,
	SYS_unshare,
	SYS_setns,
	SYS_mount,
	SYS_umount2,
	SYS_mount_setattr,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_chroot,
	SYS_pivot_root,
	SYS_swapon,
	SYS_swapoff,
	SYS_reboot,
	SYS_kexec_load,
	SYS_kexec_file_load,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_name_to_handle_at,
	SYS_open_by_handle_at,
	SYS_fanotify_init,
	SYS_quotactl,
	SYS_quotactl_fd,
	SYS_acct,
	SYS_syslog,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_iopl,
	SYS_ioperm,
	SYS_modify_ldt,
	SYS_vhangup,
};

/* What NCCL makes for each communicator: its ranks talk by sockets. */
static const int connections[] = {
	SYS_socket,
	SYS_bind,
	SYS_connect,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
};

/* Programs, and memory that all processes of a user share. */
static const int never_warm[] = {
#if !SANDBOX_SANITIZER
	SYS_execve,
	SYS_execveat,
	SYS_fork,
	SYS_vfork,
#endif
	SYS_shmget,
	SYS_shmat,
	SYS_shmctl,
	SYS_semget,
	SYS_semop,
	SYS_semtimedop,
	SYS_semctl,
	SYS_msgget,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_msgctl,
	SYS_mq_open,
	SYS_mq_unlink,
};

/* Calls that name a process: only with this one's number, or 0 where `zero` (itself). */
static const struct {
	int call, argument;
	bool own, zero;
} of_process[] = {
	{SYS_kill, 0, true, false},
	{SYS_tgkill, 0, true, false},
	{SYS_rt_sigqueueinfo, 0, true, false},
	{SYS_rt_tgsigqueueinfo, 0, true, false},
	{SYS_prlimit64, 0, true, true},
	{SYS_sched_setparam, 0, false, true},
	{SYS_sched_setscheduler, 0, false, true},
	{SYS_sched_setattr, 0, false, true},
	{SYS_setpriority, 1, false, true},
	{SYS_ioprio_set, 1, false, true},
};

struct program {
	struct sock_filter at[PROGRAM_MAX];
	unsigned short n;
};

static void say(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	/* A filter that is cut short must not be one that allows: see calls_install. */
	if (p->n < PROGRAM_MAX)
		p->at[p->n] = (struct sock_filter){code, yes, no, k};
	p->n++;
}

static void say_result(struct program *p, int error)
{
	say(p, BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW,
		0, 0);
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

static void say_refuse(struct program *p, int call, int error)
{
	say(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
	say_result(p, error);
}

static void say_head(struct program *p)
{
	say_load(p, offsetof(struct seccomp_data, arch));
	say(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	say_result(p, EPERM);
	say_load(p, offsetof(struct seccomp_data, nr));
	say(p, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
	say_result(p, EPERM);
}

static void say_of_process(struct program *p)
{
	const uint32_t own = (uint32_t)getpid();

	for (size_t i = 0; i < sizeof(of_process) / sizeof(of_process[0]); i++) {
		say(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)of_process[i].call, 0, 5);
		say_load_argument(p, of_process[i].argument);
		say(p, BPF_JMP | BPF_JEQ | BPF_K, of_process[i].own ? own : 0, 1, 0);
		say(p, BPF_JMP | BPF_JEQ | BPF_K, of_process[i].zero ? 0 : own, 0, 1);
		say_result(p, 0);
		say_result(p, EPERM);
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
	say_result(p, 0);
	say_result(p, EPERM);
}

/* Threads only. clone3's flags lie in memory, where a filter cannot look: the C library falls
 * back to clone. */
static void say_clone(struct program *p)
{
	if (SANDBOX_SANITIZER)
		return;
	say_refuse(p, SYS_clone3, ENOSYS);
	say(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	say_load_argument(p, 0);
	say(p, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	say_result(p, 0);
	say_result(p, EPERM);
}

static int calls_install(struct program *p, unsigned flags)
{
	struct sock_fprog program = {.len = p->n, .filter = p->at};
	/* Older kernels slow a process with a filter down unless told not to. */
	const unsigned tries[] = {flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, flags};
	long ret = -1;

	if (p->n > PROGRAM_MAX)
		return -E2BIG;
	for (int i = 0; i < 2 && ret; i++)
		ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, tries[i], &program);
	/* Above 0: a thread that could not be brought along. */
	return !ret ? 0 : ret < 0 ? -errno : -ESRCH;
}

int sandbox_calls_start(void)
{
	static struct program p;

	say_head(&p);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		say_refuse(&p, never[i], EPERM);
	say_of_process(&p);
	say_prctl(&p);
	say_result(&p, 0);
	return calls_install(&p, 0);
}

int sandbox_calls_warm(bool connects)
{
	static struct program p;

	say_head(&p);
	for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]) && !connects; i++)
		say_refuse(&p, connections[i], EPERM);
	for (size_t i = 0; i < sizeof(never_warm) / sizeof(never_warm[0]); i++)
		say_refuse(&p, never_warm[i], EPERM);
	say_clone(&p);
	say_result(&p, 0);
	return calls_install(&p, SECCOMP_FILTER_FLAG_TSYNC);
}

#else

int sandbox_calls_start(void)
{
	return -ENOSYS;
}

int sandbox_calls_warm(bool connects)
{
	(void)connects;
	return -ENOSYS;
}

#endif
