/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with a tenant's code in it: what a worker must not be able to do is tried
 * when the driver starts (cuInit), and when the session's program loads a module, there by the
 * loop's thread and by one that was started before the worker was warm.
 *
 * A line a try, to its stdin, which the test opened for that (stack.py, reporting): "when name
 * errno", errno 0 where it was done.  The numbers of the processes to try it on are in the file
 * $VCUDA_SOFTGPU_VICTIMS, in a folder of libraries; $VCUDA_SOFTGPU_CACHE is the agent's.
 */
#include <arpa/inet.h>
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORBIDDEN(name, call) report(when, name, (call) == -1 ? errno : 0)

static pthread_t early;
static int early_go[2];

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "/nonexistent";
}

static void report(const char *when, const char *name, int number)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %s %d\n", when, name, number);

	if (write(STDIN_FILENO, line, (size_t)n) != n)
		abort();
}

static int opens(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int opens_of(int pid, const char *file, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return opens(path, flags);
}

static int reads_memory(int pid, int call)
{
	static char own[8];
	struct iovec here = {own, sizeof(own)}, there = {own, sizeof(own)};
	long n = syscall(call, pid, &here, 1, &there, 1, 0);

	/* Not mapped there: it would have been done. */
	return n == -1 && errno != EFAULT ? -1 : 0;
}

static int takes_descriptor(int pid)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, process >= 0 ? process : 0, 3, 0);

	return fd < 0 ? -1 : close(fd);
}

static int signals_group(void)
{
	return kill(-getpid(), 0);
}

/* A process of its own; *status is what it ended with. */
static int forks(void)
{
	int status = 0;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : waitpid(pid, &status, 0) < 0 ? -1 : 0;
}

/* Where it is allowed this process is another program from now on: in a copy then. */
static int runs_a_shell(void)
{
	static char name[] = "sh", flag[] = "-c", text[] = "exit 7";
	char *const argv[] = {name, flag, text, NULL};
	int status = 0;
	pid_t pid = fork();

	if (pid < 0) /* no copy can be had: that the call itself fails too is seen at once */
		return execve("/bin/sh", argv, NULL);
	if (pid == 0) {
		execve("/bin/sh", argv, NULL);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	errno = WEXITSTATUS(status);
	return errno == 7 ? 0 : -1;
}

static int connects(int fd)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1)};

	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 0;
	return errno == ECONNREFUSED ? 0 : -1; /* nobody listens: it was done */
}

static int opens_socket(int family)
{
	int fd = socket(family, SOCK_DGRAM, 0);

	return fd < 0 ? -1 : close(fd);
}

static int makes_connection(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), ret;

	if (fd < 0)
		return -1;
	ret = connects(fd);
	close(fd);
	return ret;
}

static int gets_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, sets))
		return -1;
	/* One that it has is enough; else it tries to get one. */
	if (sets[0].effective || sets[0].permitted || sets[1].permitted)
		return 0;
	sets[0].permitted = sets[0].effective = 1u << CAP_KILL;
	return (int)syscall(SYS_capset, &header, sets);
}

static int takes_shared_memory(void)
{
	int id = shmget(0x76637564, 4096, IPC_CREAT | 0600);

	return id < 0 ? -1 : shmctl(id, IPC_RMID, NULL);
}

/* Only one traces a process at a time: a worker that is started meanwhile may be at it. */
static int traces(int pid)
{
	int status;

	for (int i = 0; ptrace(PTRACE_SEIZE, pid, 0, 0); i++) {
		if (errno != EPERM || i == 20)
			return -1;
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, &status, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return 0;
}

static void try_on(const char *when, const char *who, int pid)
{
	struct rlimit limit;
	const struct {
		const char *name;
		int result;
	} tries[] = {
#define TRY(name, call) {name, (call) == -1 ? errno : 0}
		TRY("mem", opens_of(pid, "mem", O_RDWR)),
		TRY("maps", opens_of(pid, "maps", O_RDONLY)),
		TRY("environ", opens_of(pid, "environ", O_RDONLY)),
		TRY("cmdline", opens_of(pid, "cmdline", O_RDONLY)),
		TRY("descriptors", opens_of(pid, "fd", O_RDONLY | O_DIRECTORY)),
		TRY("process_vm_readv", reads_memory(pid, SYS_process_vm_readv)),
		TRY("process_vm_writev", reads_memory(pid, SYS_process_vm_writev)),
		TRY("ptrace", traces(pid)),
		TRY("pidfd_getfd", takes_descriptor(pid)),
		TRY("kill", kill(pid, 0)),
		TRY("tgkill", (int)syscall(SYS_tgkill, pid, pid, 0)),
		TRY("tkill", (int)syscall(SYS_tkill, pid, 0)),
		/* Without a change: where it is allowed it does no harm. */
		TRY("prlimit", prlimit((__pid_t)pid, RLIMIT_CPU, NULL, &limit)),
		TRY("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 0)),
	};
	char name[64];

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		snprintf(name, sizeof(name), "%s.%s", who, tries[i].name);
		report(when, name, tries[i].result);
	}
}

static void try_victims(const char *when)
{
	FILE *file = fopen(setting("VCUDA_SOFTGPU_VICTIMS"), "r");
	char who[32];
	int pid;

	while (file && fscanf(file, "%31s %d", who, &pid) == 2)
		try_on(when, who, pid);
	if (file)
		fclose(file);
}

static void try_files(const char *when)
{
	FORBIDDEN("token", opens(setting("VCUDA_SOFTGPU_TOKEN"), O_RDONLY));
	FORBIDDEN(
		"cache.listing", opens(setting("VCUDA_SOFTGPU_CACHE"), O_RDONLY | O_DIRECTORY));
	FORBIDDEN("cache.file", opens(setting("VCUDA_SOFTGPU_CACHE"), O_RDWR | O_TMPFILE));
	FORBIDDEN("own-memory", opens("/tmp", O_RDWR | O_TMPFILE));
	FORBIDDEN("listing", opens("/", O_RDONLY | O_DIRECTORY));
	FORBIDDEN("processes", opens("/proc", O_RDONLY | O_DIRECTORY));
	FORBIDDEN("init", opens_of(1, "status", O_RDONLY));
	FORBIDDEN("group", opens("/etc/group", O_RDONLY));
	FORBIDDEN("shared-memory", opens("/dev/shm", O_RDWR | O_TMPFILE));
}

static void try_calls(const char *when)
{
	FORBIDDEN("capability", gets_capability());
	FORBIDDEN("traceable", prctl(PR_SET_DUMPABLE, 1));
	FORBIDDEN("outlive", prctl(PR_SET_PDEATHSIG, 0));
	FORBIDDEN("unshare", unshare(CLONE_NEWUTS));
	FORBIDDEN("bpf", (int)syscall(SYS_bpf, 0, 0, 0) == -1 && errno == EPERM ? -1 : 0);
	FORBIDDEN(
		"x32", (int)syscall(0x40000000 | SYS_getpid) == -1 && errno == EPERM ? -1 : 0);
}

static void try_warm(const char *when)
{
	int pair[2] = {-1, -1};

	FORBIDDEN("fork", forks());
	FORBIDDEN("shell", runs_a_shell());
	FORBIDDEN("socket.inet", opens_socket(AF_INET));
	FORBIDDEN("socket.unix", opens_socket(AF_UNIX));
	FORBIDDEN("socket.netlink", opens_socket(AF_NETLINK));
	FORBIDDEN("connection", makes_connection());
	FORBIDDEN("group-kill", signals_group());
	FORBIDDEN("sysv", takes_shared_memory());
	report(when, "may.socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? errno : 0);
	FORBIDDEN("connect", connects(pair[0]));
	close(pair[0]);
	close(pair[1]);
	/* What stays allowed, beside socketpair. */
	report(when, "may.kill-self", kill(getpid(), 0) ? errno : 0);
	report(when, "may.own-status", opens("/proc/self/status", O_RDONLY) ? errno : 0);
	report(when, "may.thread-name",
		opens("/proc/thread-self/comm", O_WRONLY | O_TRUNC) ? errno : 0);
	report(when, "may.null", opens("/dev/null", O_RDWR) ? errno : 0);
}

static void try_all(const char *when)
{
	try_files(when);
	try_calls(when);
	try_victims(when);
	try_warm(when);
}

static void *early_thread(void *nothing)
{
	char byte;

	if (read(early_go[0], &byte, 1) == 1)
		try_all("early-thread");
	return nothing;
}

__attribute__((visibility("default"))) CUresult cuInit(unsigned int flags)
{
	__typeof__(&cuInit) init;

	*(void **)&init = dlsym(RTLD_NEXT, "cuInit");
	try_files("init");
	try_calls("init");
	try_victims("init");
	report("init", "connection", makes_connection() == -1 ? errno : 0);
	if (pipe2(early_go, O_CLOEXEC) || pthread_create(&early, NULL, early_thread, NULL))
		abort();
	return init(flags);
}

__attribute__((visibility("default"))) CUresult cuModuleLoadDataEx(CUmodule *module,
	const void *image, unsigned int n, CUjit_option *options, void **values)
{
	static bool tried;
	__typeof__(&cuModuleLoadDataEx) load;

	*(void **)&load = dlsym(RTLD_NEXT, "cuModuleLoadDataEx");
	if (!tried) {
		tried = true;
		try_all("session");
		if (write(early_go[1], "", 1) != 1 || pthread_join(early, NULL))
			abort();
		report("session", "done", 0);
	}
	return load(module, image, n, options, values);
}
