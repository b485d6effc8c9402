/* SPDX-License-Identifier: Apache-2.0
 *
 * Mappings: see os.h.  Memory with a descriptor is a section of the paging file, of which each
 * mapping is a view, or shares one.  What is only reserved costs address space and nothing
 * else.
 */
#include <winsock2.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows/os/descriptor_object.h"

int os_memory_create(void)
{
	struct os_object *made = os_object_new(OS_MEMORY);

	return made ? os_install(made) : -1;
}

static struct os_object *memory_at(int fd)
{
	struct os_object *object = os_get(fd);

	if (!object || object->kind == OS_MEMORY)
		return object;
	os_put(object);
	errno = EINVAL;
	return NULL;
}

/* Once. */
int os_memory_resize(int fd, uint64_t size)
{
	struct os_object *object = memory_at(fd);
	int ret = -1;

	if (!object)
		return -1;
	if (!object->section && size) {
		object->section = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE,
			(DWORD)(size >> 32), (DWORD)size, NULL);
		object->size = object->section ? size : 0;
		ret = object->section ? 0 : -1;
		errno = ENOMEM;
	} else {
		errno = EINVAL;
	}
	os_put(object);
	return ret;
}

int64_t os_memory_size(int fd)
{
	struct os_object *object = memory_at(fd);
	int64_t size;

	if (!object)
		return -1;
	size = (int64_t)object->size;
	os_put(object);
	return size;
}

long long os_memory_transfer(int fd, void *bytes, size_t n, uint64_t at, bool write)
{
	struct os_object *object = memory_at(fd);
	char *view = NULL;

	if (!object)
		return -1;
	if (at < object->size && n <= object->size - at)
		view = MapViewOfFile(object->section, FILE_MAP_ALL_ACCESS, 0, 0, 0);
	if (view && write)
		memcpy(view + at, bytes, n);
	else if (view)
		memcpy(bytes, view + at, n);
	if (view)
		UnmapViewOfFile(view);
	os_put(object);
	errno = EIO;
	return view ? (long long)n : -1;
}

static DWORD page_access(unsigned access)
{
	return access & 2 ? PAGE_READWRITE : access & 1 ? PAGE_READONLY : PAGE_NOACCESS;
}

/* The view of all of it that whoever maps it anywhere shares: WaitOnAddress and WakeByAddress
 * meet at an address, not at the memory behind it. */
static struct view {
	struct view *next;
	struct os_object *object;
	void *at;
	unsigned users;
} *views;
static SRWLOCK views_lock = SRWLOCK_INIT;

/* OBJECT is taken where it is the first. */
static void *view_shared(struct os_object *object)
{
	struct view *view;
	void *at = NULL;

	AcquireSRWLockExclusive(&views_lock);
	for (view = views; view && view->object != object; view = view->next)
		;
	if (view) {
		view->users++;
		at = view->at;
		os_put(object);
	} else if ((view = calloc(1, sizeof(*view)))) {
		at = MapViewOfFile(object->section, FILE_MAP_ALL_ACCESS, 0, 0, 0);
		*view = (struct view){views, object, at, 1};
		if (at)
			views = view;
		else
			free(view);
	}
	if (!at)
		os_put(object);
	ReleaseSRWLockExclusive(&views_lock);
	return at;
}

/* 1: it was one and somebody else uses it; 0: it was one, and goes; -1: it is none. */
static int view_let_go(void *address)
{
	struct os_object *object = NULL;
	struct view **at, *view;
	int left = -1;

	AcquireSRWLockExclusive(&views_lock);
	for (at = &views; *at && (*at)->at != address; at = &(*at)->next)
		;
	view = *at;
	if (view)
		left = --view->users ? 1 : 0;
	if (!left) {
		*at = view->next;
		object = view->object;
		UnmapViewOfFile(address);
		free(view);
	}
	ReleaseSRWLockExclusive(&views_lock);
	if (object)
		os_put(object);
	return left;
}

static void *map_memory(void *address, uint64_t size, unsigned access, int fd)
{
	struct os_object *object = memory_at(fd);
	void *at = NULL;

	if (!object)
		return NULL;
	if (size <= object->size && !address)
		return view_shared(object);
	if (size <= object->size)
		at = MapViewOfFileEx(object->section,
			access & 2 ? FILE_MAP_ALL_ACCESS : FILE_MAP_READ, 0, 0, size, address);
	os_put(object);
	return at;
}

void *os_map(void *address, uint64_t size, unsigned access, int fd)
{
	void *at;

	if (fd >= 0)
		at = map_memory(address, size, access, fd);
	else
		at = VirtualAlloc(address, size,
			access ? MEM_RESERVE | MEM_COMMIT : MEM_RESERVE, page_access(access));
	if (at && (!address || at == address))
		return at;
	if (at)
		os_unmap(at, size);
	errno = ENOMEM;
	return NULL;
}

/* A whole mapping, whichever it is. */
int os_unmap(void *address, uint64_t size)
{
	MEMORY_BASIC_INFORMATION there;

	(void)size;
	if (view_let_go(address) >= 0)
		return 0;
	errno = EINVAL;
	if (!VirtualQuery(address, &there, sizeof(there)) || there.AllocationBase != address)
		return -1;
	if (there.Type == MEM_MAPPED)
		return UnmapViewOfFile(address) ? 0 : -1;
	return VirtualFree(address, 0, MEM_RELEASE) ? 0 : -1;
}

bool os_usable(uint64_t from, uint64_t to, bool write)
{
	const DWORD both = PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE |
			   PAGE_EXECUTE_WRITECOPY;
	const DWORD usable = both | (write ? 0 : PAGE_READONLY | PAGE_EXECUTE_READ);
	MEMORY_BASIC_INFORMATION there;

	while (from < to) {
		if (!VirtualQuery((void *)(uintptr_t)from, &there, sizeof(there)) ||
			there.State != MEM_COMMIT || !(there.Protect & usable) ||
			there.Protect & PAGE_GUARD)
			return false;
		from = (uint64_t)(uintptr_t)there.BaseAddress + there.RegionSize;
	}
	return true;
}
