/* SPDX-License-Identifier: Apache-2.0
 *
 * LD_PRELOAD: the n-th call of what may fail (memory, descriptors, processes, input and output)
 * fails.  Calls are counted that stand in the program itself, not those of its libraries; with
 * $VCUDA_FAILPOINT_IN, those of the libraries whose file's name begins with that instead.
 *
 * The file $VCUDA_FAILPOINT is a struct point in shared memory, which the test writes: armed,
 * which call (of one name only, and all behind it, where that is wanted), and for which role of
 * gpu-agent (the agent gives its children no LD_PRELOAD: execve() here brings it to those of
 * that role; "*": to all).  It also moves the clock of the day, by `clock` seconds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define ROLE 16
#define TEXTS 64 /* libraries, at most */

struct point {
	_Atomic uint32_t armed, target, count, hit;
	_Atomic int32_t exempt; /* a process whose calls are not counted */
	_Atomic int32_t clock;
	char role[ROLE];	/* "": the process that was started with the library */
	char what[32];		/* which call failed last */
	_Atomic uint64_t where; /* and from where: an offset in the program */
	_Atomic uint32_t lasts; /* each one behind the n-th fails, too */
	char only[20];		/* calls of this name are counted; "": all */
};

static struct point *point;
static struct text {
	uintptr_t base, from, to;
	const char *name; /* "": the program */
} texts[TEXTS];
static size_t text_count;
static char itself[512], preload[600], control[600];

static int object(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *wanted = data, *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)size;
	if (wanted && strncmp(name, wanted, strlen(wanted)))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && text_count < TEXTS; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			struct text *text = &texts[text_count++];

			text->base = info->dlpi_addr;
			text->from = text->base + info->dlpi_phdr[i].p_vaddr;
			text->to = text->from + info->dlpi_phdr[i].p_memsz;
			text->name = wanted ? name : "";
		}
	return !wanted; /* the first one is the program */
}

static const struct text *text_of(void *at)
{
	for (size_t i = 0; i < text_count; i++)
		if ((uintptr_t)at >= texts[i].from && (uintptr_t)at < texts[i].to)
			return &texts[i];
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("VCUDA_FAILPOINT");
	long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	Dl_info me;
	void *at;

	if (fd < 0)
		return;
	at = (void *)syscall(
		SYS_mmap, NULL, sizeof(*point), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (at == MAP_FAILED)
		return;
	dl_iterate_phdr(object, getenv("VCUDA_FAILPOINT_IN"));
	if (dladdr((void *)begin, &me))
		snprintf(itself, sizeof(itself), "%s", me.dli_fname);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", itself);
	snprintf(control, sizeof(control), "VCUDA_FAILPOINT=%s", path);
	point = at;
}

/* Which role this process has: the one that execve() below let in, or the first. */
static bool counted(const struct text *text)
{
	if (!text || point->exempt == getpid())
		return false;
	return !point->role[0] || getenv("VCUDA_FAILPOINT_ROLE");
}

static bool fails(const char *what, void *from)
{
	const struct text *text = point && point->armed ? text_of(from) : NULL;
	uint32_t n;

	if (!counted(text) || (point->only[0] && strcmp(point->only, what)))
		return false;
	n = atomic_fetch_add(&point->count, 1) + 1;
	if (point->lasts ? n < point->target : n != point->target)
		return false;
	point->hit = 1;
	point->where = (uintptr_t)from - text->base;
	snprintf(point->what, sizeof(point->what), "%s %s", what, text->name);
	return true;
}

#define FAILS(name) fails(name, __builtin_return_address(0))
#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* RESULT of a call that fails with NUMBER. */
#define FAIL_IF(name, number, result)                                                          \
	do {                                                                                   \
		if (FAILS(name)) {                                                             \
			errno = number;                                                        \
			return result;                                                         \
		}                                                                              \
	} while (0)

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t n);

EXPORT void *malloc(size_t n)
{
	FAIL_IF("malloc", ENOMEM, NULL);
	return __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
	FAIL_IF("calloc", ENOMEM, NULL);
	return __libc_calloc(n, size);
}

EXPORT void *realloc(void *at, size_t n)
{
	FAIL_IF("realloc", ENOMEM, NULL);
	return __libc_realloc(at, n);
}

#define MADE(type, result, name, number, parameters, ...)                                      \
	EXPORT type name parameters                                                            \
	{                                                                                      \
		FAIL_IF(#name, number, result);                                                \
		return REAL(name)(__VA_ARGS__);                                                \
	}

MADE(void *, NULL, aligned_alloc, ENOMEM, (size_t a, size_t n), a, n)
MADE(char *, NULL, strdup, ENOMEM, (const char *s), s)
MADE(FILE *, NULL, fopen, EMFILE, (const char *path, const char *mode), path, mode)
MADE(FILE *, NULL, open_memstream, ENOMEM, (char **at, size_t *n), at, n)
MADE(void *, MAP_FAILED, mmap, ENOMEM, (void *at, size_t n, int p, int f, int fd, off_t o), at,
	n, p, f, fd, o)
MADE(int, -1, memfd_create, EMFILE, (const char *name, unsigned flags), name, flags)
MADE(int, -1, ftruncate, ENOSPC, (int fd, off_t n), fd, n)
MADE(int, -1, fallocate, ENOSPC, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
MADE(int, ENOSPC, posix_fallocate, ENOSPC, (int fd, off_t at, off_t n), fd, at, n)
MADE(int, -1, socket, EMFILE, (int d, int t, int p), d, t, p)
MADE(int, -1, socketpair, EMFILE, (int d, int t, int p, int fds[2]), d, t, p, fds)
MADE(int, -1, accept4, EMFILE, (int fd, struct sockaddr *at, socklen_t *n, int f), fd, at, n, f)
MADE(int, -1, connect, ECONNRESET, (int fd, const struct sockaddr *at, socklen_t n), fd, at, n)
MADE(int, -1, eventfd, EMFILE, (unsigned value, int flags), value, flags)
MADE(int, -1, signalfd, EMFILE, (int fd, const sigset_t *mask, int flags), fd, mask, flags)
MADE(int, -1, epoll_create1, EMFILE, (int flags), flags)
MADE(int, -1, epoll_ctl, ENOSPC, (int e, int op, int fd, struct epoll_event *ev), e, op, fd, ev)
MADE(int, -1, epoll_wait, EINTR, (int e, struct epoll_event *ev, int n, int ms), e, ev, n, ms)
MADE(int, -1, poll, EINTR, (struct pollfd * fds, nfds_t n, int ms), fds, n, ms)
MADE(int, -1, ppoll, EINTR,
	(struct pollfd * fds, nfds_t n, const struct timespec *t, const sigset_t *m), fds, n, t,
	m)
MADE(int, -1, dup, EMFILE, (int fd), fd)
MADE(pid_t, -1, fork, EAGAIN, (void))
MADE(int, EAGAIN, pthread_create, EAGAIN,
	(pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *x), t, a, f, x)
MADE(ssize_t, -1, read, EIO, (int fd, void *at, size_t n), fd, at, n)
MADE(ssize_t, -1, write, ENOSPC, (int fd, const void *at, size_t n), fd, at, n)
MADE(ssize_t, -1, pread, EIO, (int fd, void *at, size_t n, off_t o), fd, at, n, o)
MADE(ssize_t, -1, pwrite, ENOSPC, (int fd, const void *at, size_t n, off_t o), fd, at, n, o)
MADE(ssize_t, -1, send, ECONNRESET, (int fd, const void *at, size_t n, int f), fd, at, n, f)
MADE(ssize_t, -1, recvmsg, EINTR, (int fd, struct msghdr *m, int f), fd, m, f)
MADE(int, -1, rename, ENOSPC, (const char *from, const char *to), from, to)

static bool of_the_machine(int socket)
{
	socklen_t n = sizeof(int);
	int domain = 0;

	getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &n);
	return domain == AF_UNIX;
}

EXPORT ssize_t recv(int fd, void *at, size_t n, int flags)
{
	if (of_the_machine(fd))
		FAIL_IF("recv-unix", ECONNRESET, -1);
	else
		FAIL_IF("recv", ECONNRESET, -1);
	return REAL(recv)(fd, at, n, flags);
}

/* A socket of the machine does not lose its other end; the kernel may be short of memory. */
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (of_the_machine(fd))
		FAIL_IF("sendmsg-unix", ENOBUFS, -1);
	else
		FAIL_IF("sendmsg", ECONNRESET, -1);
	return REAL(sendmsg)(fd, message, flags);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	FAIL_IF("open", EMFILE, -1);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	FAIL_IF("openat", EMFILE, -1);
	return (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* The role's processes are followed; nobody else keeps the library. */
EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	static char role[] = "VCUDA_FAILPOINT_ROLE=1";
	char *more[128];
	size_t n = 0;

	FAIL_IF("execve", ENOMEM, -1);
	if (point && point->role[0] && argv[0] && argv[1] && argv[2] &&
		(!strcmp(argv[2], point->role) || !strcmp(point->role, "*"))) {
		while (env[n] && n < 120) {
			more[n] = env[n];
			n++;
		}
		more[n++] = preload;
		more[n++] = control;
		more[n++] = role;
		more[n] = NULL;
		env = more;
	}
	return REAL(execve)(path, argv, env);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, time);

	if (!ret && clock == CLOCK_REALTIME && point)
		time->tv_sec += point->clock;
	return ret;
}

EXPORT time_t time(time_t *at)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
