/* SPDX-License-Identifier: Apache-2.0
 *
 * Futexes, names and texts: see os.h.
 */
#include <winsock2.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "windows/os/os.h"
#include "windows/os/agent_address.h"

void os_futex_wait(volatile uint32_t *word, uint32_t value, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

	WaitOnAddress(word, &value, sizeof(value), ms > INT_MAX ? INT_MAX : (DWORD)ms);
}

void os_futex_wake(volatile uint32_t *word)
{
	WakeByAddressAll((void *)word);
}

uint32_t os_thread_id(void)
{
	return GetCurrentThreadId();
}

unsigned os_cores(void)
{
	DWORD_PTR process = 0, system = 0;

	GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
	return process ? (unsigned)__builtin_popcountll(process) : 1;
}

const char *os_program(void)
{
	static char name[64];
	char path[MAX_PATH], *from, *dot;

	if (name[0])
		return name;
	if (!GetModuleFileNameA(NULL, path, sizeof(path)))
		return "?";
	path[sizeof(path) - 1] = 0;
	from = strrchr(path, '\\');
	from = from ? from + 1 : path;
	dot = strrchr(from, '.');
	if (dot)
		*dot = 0;
	snprintf(name, sizeof(name), "%s", from);
	return name;
}

static void (*at_exit)(void);

void os_at_exit(void (*function)(void))
{
	at_exit = function;
}

static int end(void)
{
	if (at_exit)
		at_exit();
	at_exit = NULL;
	return 0;
}

/* Both C libraries may be there: one of them is the program's. Our threads run code of this
 * library until the process ends, so it is never unloaded. */
static BOOL CALLBACK arm(INIT_ONCE *once, void *argument, void **context)
{
	static const struct {
		const char *library, *function;
	} exits[] = {{"ucrtbase.dll", "_crt_atexit"}, {"msvcrt.dll", "_onexit"}};
	HMODULE module;

	(void)once, (void)argument, (void)context;
	GetModuleHandleExA(
		GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
		(const char *)arm, &module);
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
		void *(*to)(int (*)(void));

		module = GetModuleHandleA(exits[i].library);
		to = module ? (void *)GetProcAddress(module, exits[i].function) : NULL;
		if (to)
			to(end);
	}
	return TRUE;
}

void os_exit_arm(void)
{
	static INIT_ONCE once = INIT_ONCE_STATIC_INIT;

	InitOnceExecuteOnce(&once, arm, NULL, NULL);
}

int os_module_of(const void *address, char *path, size_t size)
{
	HMODULE module;
	DWORD n;

	if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
					GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
		    address, &module))
		return -1;
	n = GetModuleFileNameA(module, path, (DWORD)size);
	return n && n < size ? 0 : -1;
}

int os_hostname(char *name, size_t size)
{
	DWORD n = (DWORD)size;

	return GetComputerNameA(name, &n) ? 0 : -1;
}

const char *os_strerror(int code)
{
	switch (code) {
	case ECONNREFUSED: return "Connection refused";
	case ECONNRESET: return "Connection reset by peer";
	case ECONNABORTED: return "Software caused connection abort";
	case ETIMEDOUT: return "Connection timed out";
	case ENETUNREACH: return "Network is unreachable";
	case ENETDOWN: return "Network is down";
	case EHOSTUNREACH: return "No route to host";
	case EADDRINUSE: return "Address already in use";
	case EADDRNOTAVAIL: return "Cannot assign requested address";
	case EAFNOSUPPORT: return "Address family not supported by protocol";
	case EOPNOTSUPP: return "Operation not supported";
	case ENOTCONN: return "Transport endpoint is not connected";
	case EPROTO: return "Protocol error";
	case ENOBUFS: return "No buffer space available";
	case EINPROGRESS: return "Operation now in progress";
	case ECANCELED: return "Operation canceled";
	case 200: return "Host is down"; /* EHOSTDOWN of compat/errno.h */
	default: return strerror(code);
	}
}

/* Bytes are bytes, and nobody inherits it. */
int os_open(const char *path, int flags, int mode)
{
	return _open(path,
		(flags & (O_RDONLY | O_WRONLY | O_RDWR | O_APPEND | O_CREAT | O_TRUNC |
				 O_EXCL)) |
			O_BINARY | O_NOINHERIT,
		mode);
}

int os_status(const char *path, int fd, struct os_stat *status)
{
	int64_t size = path || fd < OS_FIRST ? 0 : os_memory_size(fd);
	struct _stat64 there = {.st_mode = S_IFREG, .st_size = size};

	/* Memory of the process is a file of it, as a memfd is. */
	if (size < 0 || (path && _stat64(path, &there)) ||
		(!path && fd < OS_FIRST && (fd < 0 || _fstat64(fd, &there))))
		return -1;
	*status = (struct os_stat){.st_mode = there.st_mode,
		.st_dev = there.st_dev,
		.st_ino = there.st_ino,
		.st_size = there.st_size,
		.st_mtim = {.tv_sec = there.st_mtime}};
	return 0;
}

bool os_place(char *agent, size_t size)
{
	HANDLE place = OpenFileMappingA(FILE_MAP_READ, FALSE, PLACE_NAME);
	const char *text =
		place ? MapViewOfFile(place, FILE_MAP_READ, 0, 0, PLACE_BYTES) : NULL;
	size_t n = text ? strnlen(text, PLACE_BYTES) : 0;
	bool fits = n && n < PLACE_BYTES && n < size;

	if (fits) {
		memcpy(agent, text, n);
		agent[n] = 0;
	}
	if (text)
		UnmapViewOfFile(text);
	if (place)
		CloseHandle(place);
	return fits;
}
