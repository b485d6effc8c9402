/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name of the program's machine: see vmm_host.h.  The first page of its file says
 * what it is.
 */
#include "shim/driver/memory/virtual/vmm_host.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/driver/context/context.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/pinned/host_state.h"
#include "shim/driver/memory/sharing/sealed_file.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/generated/vcuda_send.h"

#define PAGE 4096u

struct file_head {
	char magic[8];
	uint64_t bytes;
	CUmemAllocationProp prop;
};
_Static_assert(sizeof(struct file_head) <= PAGE, "");

static const char head_magic[8] = "vcudaVMH";

_Atomic uint32_t vmm_host_mappings;

bool vmm_host_served(void)
{
	/* One agent, as with all that kernels reach. */
	return devices.info.features & OPEN_FEATURE_HOST_MEMORY && mirror_served();
}

static struct vmm_host *memory_new(int fd, size_t bytes)
{
	struct vmm_host *memory = calloc(1, sizeof(*memory));

	if (!memory) {
		close(fd);
		return NULL;
	}
	memory->fd = fd;
	memory->bytes = bytes;
	return memory;
}

struct vmm_host *vmm_host_new(size_t bytes, const CUmemAllocationProp *prop)
{
	struct file_head head = {.bytes = bytes, .prop = *prop};
	off_t whole;
	int fd;

	if (__builtin_add_overflow(bytes, PAGE, &whole))
		return NULL;
	memcpy(head.magic, head_magic, sizeof(head.magic));
	fd = sealed_file_make(
		"vcuda-memory", &head, sizeof(head), (uint64_t)whole, true, F_SEAL_GROW);
	return fd < 0 ? NULL : memory_new(fd, bytes);
}

CUresult vmm_host_import(
	int fd, struct vmm_host **memory, CUmemAllocationProp *prop, size_t *bytes)
{
	struct file_head head;
	struct stat status;

	if (!sealed_file_read(fd, head_magic, &head, sizeof(head)) || fstat(fd, &status) ||
		!head.bytes || head.bytes % devices.at[0].open.granularity ||
		head.bytes > (uint64_t)status.st_size - PAGE)
		return CUDA_ERROR_UNKNOWN;
	if (!vmm_host_served())
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	*memory = fd < 0 ? NULL : memory_new(fd, head.bytes);
	*bytes = head.bytes;
	*prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = head.prop.location};
	return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult vmm_host_export(const struct vmm_host *memory, int *fd)
{
	*fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
	return *fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

void vmm_host_free(struct vmm_host *memory)
{
	if (memory->mirror) {
		mirror_hidden_gone(memory->mirror);
		send_vcudaVmmRelease(memory->handle);
		munmap(memory->live, memory->bytes);
	}
	close(memory->fd);
	free(memory);
}

/* ---- where the program has it ---- */

/* The addresses alone. */
static void addresses_back(void *at, size_t bytes, int device)
{
	if (memory_window_kept(device))
		mmap(at, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(at, bytes);
}

CUresult vmm_host_map(struct vmm_host *memory, CUdeviceptr at, int device)
{
	const int fixed = memory_window_kept(device) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	void *wanted = (void *)(uintptr_t)at;
	void *mapped = mmap(wanted, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed,
		memory->fd, PAGE);
	CUresult status;

	if (mapped != wanted) {
		if (mapped != MAP_FAILED)
			munmap(mapped, memory->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	status = host_map(memory, at, device, (struct vmm_access){0});
	if (status)
		addresses_back(wanted, memory->bytes, device);
	else
		atomic_fetch_add(&vmm_host_mappings, 1);
	return status;
}

void vmm_host_unmap(const struct vmm_host *memory, CUdeviceptr at, int device)
{
	host_unmap(at);
	atomic_fetch_sub(&vmm_host_mappings, 1);
	addresses_back((void *)(uintptr_t)at, memory->bytes, device);
}

bool vmm_host_there(CUdeviceptr address)
{
	struct host_range range;

	return host_find((const void *)(uintptr_t)address, &range) && range.mapped;
}

/* ---- where kernels have it ---- */

/* The agent gets some, which is zero, as its shadow here is: what the program has there goes to
 * it with the next look. */
static CUresult agent_has(struct vmm_host *memory)
{
	uint64_t address = 0;
	CUresult status;
	void *live;

	if (memory->mirror)
		return CUDA_SUCCESS;
	live = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, PAGE);
	if (live == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = send_vcudaVmmCreateHost(memory->handle, memory->bytes, &address);
	if (!status) {
		status = mirror_hidden(live, address, memory->bytes);
		if (status)
			send_vcudaVmmRelease(memory->handle);
	}
	if (status) {
		session_debug("%zu bytes of memory of this machine for kernels: error %d",
			memory->bytes, (int)status);
		munmap(live, memory->bytes);
		return status;
	}
	memory->live = live;
	memory->mirror = address;
	return CUDA_SUCCESS;
}

static CUmemAccess_flags may(struct vmm_access access, CUdevice by)
{
	return access.writers >> by & 1	  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	       : access.readers >> by & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
					  : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* What differs between the two goes to the agent. */
static CUresult agent_lets(
	const struct host_piece *piece, struct vmm_access from, struct vmm_access to)
{
	CUresult status = CUDA_SUCCESS;

	for (int by = 0; by < devices.count && !status; by++)
		if (may(from, by) != may(to, by))
			status = peer_mapping(piece->device, (uintptr_t)piece->base,
				piece->bytes, by, may(to, by));
	return status;
}

static CUresult agent_unmap(const struct host_piece *piece)
{
	return send_vcudaVmmUnmap(
		device_wire(piece->device), (uintptr_t)piece->base, piece->bytes);
}

CUresult vmm_host_reach(const struct host_piece *piece)
{
	/* As the agent maps it. */
	const struct vmm_access begin = {
		.readers = 1ull << piece->device, .writers = 1ull << piece->device};
	CUresult status;

	if (!piece->access.readers)
		return CUDA_ERROR_INVALID_VALUE;
	status = agent_has(piece->mapped);
	if (!status)
		status = mirror_alias((uintptr_t)piece->base, piece->bytes);
	if (status)
		return status;
	status = send_vcudaVmmMap(piece->mapped->handle, (uintptr_t)piece->base, piece->bytes);
	if (!status)
		status = agent_lets(piece, begin, piece->access);
	if (status)
		mirror_alias_gone((uintptr_t)piece->base);
	return status;
}

CUresult vmm_host_let(const struct host_piece *piece, struct vmm_access access)
{
	return agent_lets(piece, piece->access, access);
}

void vmm_host_leave(const struct host_piece *piece)
{
	if (!piece->active)
		return;
	mirror_alias_gone((uintptr_t)piece->base);
	agent_unmap(piece);
}
