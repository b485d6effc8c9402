/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker that shim_memory.c plays, and what else the allocator asks: of that program alone.
 */
#ifndef VCUDA_TESTS_UNIT_SHIM_SHIM_MEMORY_WORKER_H
#define VCUDA_TESTS_UNIT_SHIM_SHIM_MEMORY_WORKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"
#include "shim/engine/completion.h"

#define WINDOW 0x200000000000ull
#define GRANULE (2ull << 20)
#define LEASE (64 * GRANULE)
#define GRANULES 4096

static bool mapped[GRANULES];
static uint64_t last_ticket, confirmed, mapped_bytes, lease, most_mapped;
static unsigned asked, posts, maps;
static bool confirm_at_once;
static bool grants;	 /* the front, as much as is asked for */
static bool outstanding; /* a host function */
static unsigned waited;
static struct {
	uint64_t address, bytes, ticket;
} waiting[100000];
static unsigned waiting_first, waiting_next;

static void confirm_before(unsigned next)
{
	for (; waiting_first < next; waiting_first++) {
		uint64_t first = (waiting[waiting_first].address - WINDOW) / GRANULE;

		for (uint64_t i = 0; i < waiting[waiting_first].bytes / GRANULE; i++) {
			assert_true(mapped[first + i]);
			mapped[first + i] = false;
			mapped_bytes -= GRANULE;
		}
		confirmed = waiting[waiting_first].ticket;
	}
}

static void confirm_all(void)
{
	confirm_before(waiting_next);
}

uint64_t completion_read(uint32_t counter)
{
	assert_int_equal(counter, COUNTER_UNMAPPED);
	return confirmed;
}

static unsigned char body[64];
static unsigned char reply[16];

void *shim_begin(struct shim_call *call, uint16_t op, size_t body_bytes)
{
	memset(call, 0, sizeof(*call));
	memset(body, 0, sizeof(body));
	assert_true(body_bytes <= sizeof(body));
	call->op = op;
	return body;
}

void shim_put(struct shim_call *call, struct wire_run *run, const void *bytes, size_t n)
{
	(void)call, (void)run, (void)bytes, (void)n;
	fail_msg("nothing here has bytes behind its body");
}

CUresult shim_post(struct shim_call *call)
{
	posts++;
	if (call->op == OP_vcudaMemMap) {
		const struct wire_vcudaMemMap *map = (const void *)body;
		uint64_t first = (map->address - WINDOW) / GRANULE;

		maps++;
		assert_int_equal(map->address % GRANULE, 0);
		assert_int_equal(map->bytes % GRANULE, 0);
		for (uint64_t i = 0; i < map->bytes / GRANULE; i++) {
			assert_true(first + i < GRANULES);
			assert_false(mapped[first + i]);
			mapped[first + i] = true;
			mapped_bytes += GRANULE;
		}
		assert_true(mapped_bytes <= lease);
		if (mapped_bytes > most_mapped)
			most_mapped = mapped_bytes;
		return CUDA_SUCCESS;
	}
	assert_int_equal(call->op, OP_vcudaMemUnmap);
	const struct wire_vcudaMemUnmap *unmap = (const void *)body;

	assert_int_equal(unmap->ticket, last_ticket + 1);
	last_ticket = unmap->ticket;
	waiting[waiting_next].address = unmap->bytes ? unmap->address : WINDOW;
	waiting[waiting_next].bytes = unmap->bytes;
	waiting[waiting_next++].ticket = unmap->ticket;
	if (confirm_at_once)
		confirm_all();
	return CUDA_SUCCESS;
}

const void *shim_wait(struct shim_call *call, size_t reply_bytes)
{
	struct wire_vcudaLease_reply *answer = (void *)reply;
	const struct wire_vcudaLease *ask = (const void *)body;

	(void)reply_bytes;
	assert_int_equal(call->op, OP_vcudaLease);
	asked++;
	if (grants)
		lease += ask->bytes;
	answer->granted = lease;
	return answer;
}

CUresult shim_end(struct shim_call *call)
{
	(void)call;
	return CUDA_SUCCESS;
}

CUresult shim_wait_until(bool (*done)(void *argument), void *argument)
{
	waited++;
	confirm_all();
	assert_true(done(argument));
	return CUDA_SUCCESS;
}

_Atomic uint32_t vmm_host_mappings; /* the machine's memory is mapped nowhere */

bool vmm_host_there(CUdeviceptr address)
{
	(void)address;
	return false;
}

/* Nothing here is mapped into a reservation. */
bool vmm_accessible(CUdeviceptr address, size_t bytes)
{
	(void)address, (void)bytes;
	return false;
}

bool function_outstanding(void)
{
	return outstanding;
}

unsigned shim_perf = ~0u;
struct devices devices = {.count = 1};
struct session session_first;
struct session *sessions[CHANNEL_AGENTS] = {&session_first};
unsigned session_count = 1;
_Thread_local struct thread thread_self = {.session = &session_first};

struct session_visit device_visit(int device)
{
	return session_visit(devices.at[device].session);
}

/* ---- tests ---- */

#endif
