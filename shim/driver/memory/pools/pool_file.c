/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory in files: see pool_file.h.  The first page has the pool's name.
 */
#include "shim/driver/memory/pools/pool_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/free_extents.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pools/pool_memory.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/driver/memory/sharing/sealed_file.h"
#include "shim/driver/memory/sharing/share.h"

#define PAGE 4096u
/* As many as there are addresses. */
#define PAGES ((1ull << 47) / PAGE)

struct pool_file {
	int fd;
	uint8_t name[16];
	struct free_extents free; /* pages; none of an imported one */
	unsigned users;		  /* the pool, and its pieces */
};

struct file_head {
	char magic[8];
	uint8_t name[16];
};

struct file_pointer {
	char magic[8];
	uint8_t name[16];
	uint64_t offset, bytes;
	uint8_t zero[24];
};
_Static_assert(sizeof(struct file_pointer) == sizeof(CUmemPoolPtrExportData), "");

static const char head_magic[8] = "vcudaPOH", pointer_magic[8] = "vcudaPTH";

static struct pool_file *file_new(int fd, const uint8_t name[16])
{
	struct pool_file *file = fd < 0 ? NULL : calloc(1, sizeof(*file));

	if (!file) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	file->fd = fd;
	file->users = 1;
	memcpy(file->name, name, sizeof(file->name));
	return file;
}

static void file_leave(struct pool_file *file)
{
	if (--file->users)
		return;
	close(file->fd);
	free(file->free.list);
	free(file);
}

bool pool_file_make(struct pool *pool)
{
	struct file_head head;
	int fd;

	memcpy(head.magic, head_magic, sizeof(head.magic));
	share_pool_name((CUmemoryPool)(uintptr_t)pool->handle, head.name);
	fd = sealed_file_make("vcuda-pool", &head, sizeof(head), PAGE, false, 0);
	pool->file = file_new(fd, head.name);
	return pool->file && free_extents_put(&pool->file->free, 1, PAGES - 1);
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

/* Maps what the piece has in the file, as pinned memory. */
static CUresult piece_map(struct pool_piece *piece)
{
	const size_t bytes = whole_pages(piece->bytes) * PAGE;
	void *wanted = mirror_place(bytes), *at;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	at = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | (wanted ? MAP_FIXED_NOREPLACE : 0), piece->pool->file->fd,
		(off_t)piece->offset);
	if (at == MAP_FAILED && wanted)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			piece->pool->file->fd, (off_t)piece->offset);
	if (wanted && at != wanted)
		mirror_unplace(wanted, bytes);
	if (at == MAP_FAILED)
		return status;
	piece->address = (uintptr_t)at;
	status = host_pool_adopt(at, piece->bytes, &piece->id);
	if (status) {
		munmap(at, bytes);
		mirror_unplace(at, bytes);
	}
	return status;
}

CUresult pool_file_get(struct pool_piece *piece)
{
	struct pool_file *file = piece->pool->file;
	const uint64_t count = whole_pages(piece->bytes);
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t page;

	pthread_mutex_lock(&pools.lock);
	page = free_extents_get(&file->free, count);
	if (page != FREE_EXTENTS_NONE)
		file->users++;
	pthread_mutex_unlock(&pools.lock);
	if (page == FREE_EXTENTS_NONE)
		return status;
	piece->offset = page * PAGE;
	/* Else a page that there is no memory for would end the program. */
	if (!posix_fallocate(file->fd, (off_t)piece->offset, (off_t)(count * PAGE)))
		status = piece_map(piece);
	if (status) {
		pthread_mutex_lock(&pools.lock);
		pool_file_put(piece);
		pthread_mutex_unlock(&pools.lock);
	}
	return status;
}

void pool_file_put(const struct pool_piece *piece)
{
	struct pool_file *file = piece->pool->file;
	const uint64_t count = whole_pages(piece->bytes);

	if (!piece->pool->imported) {
		(void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)piece->offset, (off_t)(count * PAGE));
		free_extents_put(&file->free, piece->offset / PAGE, count);
	}
	file_leave(file);
}

void pool_file_leave(struct pool *pool)
{
	if (pool->file)
		file_leave(pool->file);
}

/* ---- between processes ---- */

bool pool_file_is(CUmemoryPool pool)
{
	const struct pool *of = pool_of(pool);

	return of && of->file;
}

CUresult pool_file_export(CUmemoryPool pool, int *fd)
{
	*fd = fcntl(pool_of(pool)->file->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult pool_file_import(int fd, CUmemoryPool *pool)
{
	static const struct pool_place place = {
		POOL_HOST, {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
	struct file_head head;
	struct pool *made;
	CUresult status;

	if (!sealed_file_read(fd, head_magic, &head, sizeof(head)))
		return CUDA_ERROR_UNKNOWN;
	status = pool_import(&place, head.name, pool);
	if (status)
		return status;
	made = pool_of(*pool);
	pthread_mutex_lock(&pools.lock);
	if (!made->file)
		made->file = file_new(fcntl(fd, F_DUPFD_CLOEXEC, 0), head.name);
	pthread_mutex_unlock(&pools.lock);
	return made->file ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pool_file_tell(CUmemoryPool pool, CUdeviceptr address, void *out)
{
	struct file_pointer pointer = {0};
	struct pool_piece **at;

	memcpy(pointer.magic, pointer_magic, sizeof(pointer.magic));
	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(address);
	if (at) {
		memcpy(pointer.name, pool_of(pool)->file->name, sizeof(pointer.name));
		pointer.offset = (*at)->offset;
		pointer.bytes = (*at)->asked;
	}
	pthread_mutex_unlock(&pools.lock);
	if (at)
		memcpy(out, &pointer, sizeof(pointer));
	return at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Whether the file has all that, and it is as pool_file_tell() tells it. */
static bool pointer_fits(const struct file_pointer *pointer, const struct pool_file *file)
{
	struct stat status;
	uint64_t end;

	return !memcmp(pointer->magic, pointer_magic, sizeof(pointer->magic)) &&
	       !memcmp(pointer->name, file->name, sizeof(file->name)) && pointer->bytes &&
	       pointer->offset >= PAGE && !(pointer->offset % PAGE) &&
	       !__builtin_add_overflow(pointer->offset, pointer->bytes, &end) &&
	       !fstat(file->fd, &status) && end <= (uint64_t)status.st_size;
}

/* With the lock held: what was opened there is opened once more. */
static bool opened_again(
	const struct pool *pool, const struct file_pointer *pointer, CUdeviceptr *address)
{
	for (unsigned i = 0; i < POOL_BUCKETS; i++)
		for (struct pool_piece *piece = pools.live[i]; piece; piece = piece->next)
			if (piece->pool == pool && piece->offset == pointer->offset) {
				piece->opens++;
				*address = piece->address;
				return true;
			}
	return false;
}

CUresult pool_file_open(CUmemoryPool pool, const void *from, CUdeviceptr *address)
{
	struct pool *of = pool_of(pool);
	struct file_pointer pointer;
	struct pool_piece *piece;
	CUresult status;
	bool again;

	if (!context_current())
		return context_missing();
	memcpy(&pointer, from, sizeof(pointer));
	if (!pointer_fits(&pointer, of->file))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools.lock);
	again = opened_again(of, &pointer, address);
	if (!again)
		of->file->users++;
	pthread_mutex_unlock(&pools.lock);
	if (again)
		return CUDA_SUCCESS;
	piece = calloc(1, sizeof(*piece));
	status = piece ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (piece) {
		*piece = (struct pool_piece){
			.pool = of, .bytes = pointer.bytes, .offset = pointer.offset};
		status = piece_map(piece);
	}
	pthread_mutex_lock(&pools.lock);
	if (!status) {
		of->taken += piece->bytes;
		pool_piece_add(piece, piece->bytes);
		*address = piece->address;
	} else {
		file_leave(of->file);
	}
	pthread_mutex_unlock(&pools.lock);
	if (status)
		free(piece);
	return status;
}
