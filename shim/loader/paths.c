/* SPDX-License-Identifier: Apache-2.0
 *
 * The same as buffers.c for functions that take files' names, and tell names and what files
 * are.
 */
#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/loader/loader.h"

static bool open_has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The mode behind the flags, if there is one, of a function that has it there. */
#define OPEN(call)                                                                             \
	({                                                                                     \
		mode_t mode = 0;                                                               \
		va_list rest;                                                                  \
                                                                                               \
		va_start(rest, flags);                                                         \
		if (open_has_mode(flags))                                                      \
			mode = va_arg(rest, mode_t);                                           \
		va_end(rest);                                                                  \
		loader_reach_text(path);                                                       \
		call;                                                                          \
	})

EXPORTED int open(const char *path, int flags, ...)
{
	return OPEN(NEXT(open)(path, flags, mode));
}

EXPORTED int open64(const char *path, int flags, ...)
{
	return OPEN(NEXT(open64)(path, flags, mode));
}

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
	return OPEN(NEXT(openat)(folder, path, flags, mode));
}

EXPORTED int openat64(int folder, const char *path, int flags, ...)
{
	return OPEN(NEXT(openat64)(folder, path, flags, mode));
}

EXPORTED char *getcwd(char *buf, size_t n)
{
	if (buf)
		loader_reach(buf, n, true);
	return NEXT(getcwd)(buf, n);
}

EXPORTED ssize_t readlink(const char *path, char *buf, size_t n)
{
	loader_reach_text(path);
	loader_reach(buf, n, true);
	return NEXT(readlink)(path, buf, n);
}

/* Programs that were linked with a glibc before 2.33 call those with two underscores, and that
 * one has no others; newer ones tell nobody of them. (stat: devices.c) */
#define STAT_VERSION 1

#define STAT_OF(suffix)                                                                        \
	int __fxstat##suffix(int version, int fd, struct stat##suffix *to);                    \
	int __lxstat##suffix(int version, const char *path, struct stat##suffix *to);          \
                                                                                               \
	EXPORTED int fstat##suffix(int fd, struct stat##suffix *to)                            \
	{                                                                                      \
		loader_reach(to, sizeof(*to), true);                                           \
		return NEXT(fstat##suffix) ? NEXT(fstat##suffix)(fd, to)                       \
					   : NEXT(__fxstat##suffix)(STAT_VERSION, fd, to);     \
	}                                                                                      \
	EXPORTED int __fxstat##suffix(int version, int fd, struct stat##suffix *to)            \
	{                                                                                      \
		(void)version;                                                                 \
		return fstat##suffix(fd, to);                                                  \
	}                                                                                      \
	EXPORTED int lstat##suffix(                                                            \
		const char *restrict path, struct stat##suffix *restrict to)                   \
	{                                                                                      \
		loader_reach_text(path);                                                       \
		loader_reach(to, sizeof(*to), true);                                           \
		return NEXT(lstat##suffix) ? NEXT(lstat##suffix)(path, to)                     \
					   : NEXT(__lxstat##suffix)(STAT_VERSION, path, to);   \
	}                                                                                      \
	EXPORTED int __lxstat##suffix(int version, const char *path, struct stat##suffix *to)  \
	{                                                                                      \
		(void)version;                                                                 \
		return lstat##suffix(path, to);                                                \
	}

STAT_OF()
STAT_OF(64)

/* What programs that are built with _FORTIFY_SOURCE call. */
EXPORTED int __open_2(const char *path, int flags);
EXPORTED int __open64_2(const char *path, int flags);
EXPORTED int __openat_2(int folder, const char *path, int flags);
EXPORTED int __openat64_2(int folder, const char *path, int flags);
EXPORTED char *__getcwd_chk(char *buf, size_t n, size_t room);
EXPORTED ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t room);

int __open_2(const char *path, int flags)
{
	loader_reach_text(path);
	return NEXT(__open_2)(path, flags);
}

int __open64_2(const char *path, int flags)
{
	loader_reach_text(path);
	return NEXT(__open64_2)(path, flags);
}

int __openat_2(int folder, const char *path, int flags)
{
	loader_reach_text(path);
	return NEXT(__openat_2)(folder, path, flags);
}

int __openat64_2(int folder, const char *path, int flags)
{
	loader_reach_text(path);
	return NEXT(__openat64_2)(folder, path, flags);
}

char *__getcwd_chk(char *buf, size_t n, size_t room)
{
	if (buf)
		loader_reach(buf, n, true);
	return NEXT(__getcwd_chk)(buf, n, room);
}

ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t room)
{
	loader_reach_text(path);
	loader_reach(buf, n, true);
	return NEXT(__readlink_chk)(path, buf, n, room);
}
