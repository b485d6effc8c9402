/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim as the victim: a program that uses the driver's calls, joined to a hostile
 * sidecar. The program is a process of its own (forked.h); this one is the sidecar: it grants a
 * segment, takes the ring's frames and answers each call as well as it can.  The input's
 * records say what is different in the next answer, in the segment, or in what the socket says.
 *
 * The program may get any error from any call, but it must not be hurt: it writes where its
 * caller allowed, reads what is there, and it ends.
 */
#include <cuda.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/wait.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/open.h"
#include "tests/fuzz/conversation.h"
#include "tests/fuzz/forked.h"

#define SECOND 1000000000ull
#define SECONDS_MAX 60	/* a program that takes longer hangs */
#define SECONDS_SERVE 5 /* a program waits as long as a silent sidecar is there */
#define PART (1u << 20) /* ring, arena and bounce */
#define SLOTS_AT 4096u
#define COUNTERS_AT (SLOTS_AT + CHANNEL_SLOTS * (unsigned)sizeof(struct channel_slot))
#define UPCALLS_AT (COUNTERS_AT + CHANNEL_COUNTERS * 8u)
#define RING_AT (UPCALLS_AT + CHANNEL_UPCALLS * (unsigned)sizeof(struct channel_upcall))
#define SEGMENT (RING_AT + 3u * PART)
#define DEVICE_AT 0x200000000000ull
#define GRANULE (2u << 20)

enum record_kind {
	RECORD_ANSWER = 0, /* the body at `context` of the slot; stripe: what `op` stands for */
	RECORD_OPEN,	   /* of vcudaOpen: the body at `context` of what it brings */
	RECORD_ATTACH,	   /* the body at `context` of ATTACH's or PIN's answer */
	RECORD_SEGMENT,	   /* bytes at 16 x `context` of the segment */
	RECORD_PAGE,	   /* bytes at `context` of the page */
	RECORD_LOST,
	RECORD_GONE, /* the socket ends */
	RECORD_KINDS
};

static char folder[] = "/tmp/vcuda-fuzz-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};

struct hostile {
	int listener, socket, doorbell;
	unsigned char *base; /* the segment */
	struct channel_page *page;
	uint64_t head;
	const uint8_t *bytes; /* records to come */
	size_t n;
};

/* --- the program ---------------------------------------------------------------------------
 */

/* Guards beside what a call may write: a sanitizer sees the heap's, not the stack's whole. */
static void program(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n";
	CUdeviceptr memory = 0, other = 0;
	CUmodule module = NULL;
	CUfunction function = NULL;
	CUcontext context = NULL;
	CUstream stream = NULL;
	CUevent event = NULL;
	CUdevice device = 0;
	CUuuid uuid;
	size_t free_bytes, total, size;
	int number, *host = malloc(4096);
	char *name = malloc(16);
	float ms;
	void *pinned = NULL, *parameters[] = {&memory};

	if (!host || !name || cuInit(0))
		return;
	cuDeviceGetCount(&number);
	cuDeviceGet(&device, 0);
	cuDeviceGetName(name, 16, device);
	cuDeviceGetUuid(&uuid, device);
	cuDeviceTotalMem(&total, device);
	cuDeviceGetPCIBusId(name, 16, device);
	for (int a = 1; a < 140; a++)
		cuDeviceGetAttribute(&number, (CUdevice_attribute)a, device);
	cuDevicePrimaryCtxRetain(&context, device);
	cuCtxSetCurrent(context);
	cuMemGetInfo(&free_bytes, &total);
	cuMemAlloc(&memory, 4096);
	cuMemAlloc(&other, 1 << 20);
	cuMemcpyHtoD(memory, host, 4096);
	cuMemcpyDtoH(host, memory, 4096);
	cuMemcpyDtoD(other, memory, 4096);
	cuMemsetD32(memory, 1, 1024);
	cuStreamCreate(&stream, 0);
	cuEventCreate(&event, 0);
	cuEventRecord(event, stream);
	cuMemcpyDtoHAsync(host, memory, 1024, stream);
	cuStreamQuery(stream);
	cuStreamSynchronize(stream);
	cuEventQuery(event);
	cuEventSynchronize(event);
	cuEventElapsedTime(&ms, event, event);
	if (!cuModuleLoadData(&module, ptx)) {
		if (!cuModuleGetFunction(&function, module, "f")) {
			cuFuncGetAttribute(
				&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
			cuFuncGetParamInfo(function, 0, &size, &total);
			cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, 0);
			cuLaunchKernel(
				function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
		}
		cuModuleGetGlobal(&other, &size, module, "g");
		cuModuleUnload(module);
	}
	if (!cuMemAllocHost(&pinned, 8192)) {
		memset(pinned, 1, 8192);
		cuMemcpyDtoHAsync(pinned, memory, 4096, stream);
		cuMemFreeHost(pinned);
	}
	cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
	cuCtxSynchronize();
	cuMemFree(memory);
	cuEventDestroy(event);
	cuStreamDestroy(stream);
	cuCtxSynchronize();
	free(host);
	free(name);
}

/* --- the sidecar ---------------------------------------------------------------------------
 */

static void setup(void)
{
	forked_setup();
	must(mkdtemp(folder) != NULL, "mkdtemp");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
	setenv("VCUDA_SOCKET", address.sun_path, 1);
	unsetenv("REMOTE_GPU_ADDRESS");
}

static void page_make(struct hostile *l)
{
	*l->page = (struct channel_page){.magic = CHANNEL_MAGIC,
		.version = CHANNEL_VERSION,
		.size = SEGMENT,
		.slots = SLOTS_AT,
		.counters = COUNTERS_AT,
		.upcalls = UPCALLS_AT,
		.ring = RING_AT,
		.ring_size = PART,
		.arena = RING_AT + PART,
		.arena_size = PART,
		.bounce = RING_AT + 2 * PART,
		.bounce_size = PART,
		.state = CHANNEL_OPEN};
}

/* `n` bytes of the record at `at` of something of `size` bytes. */
static void overlay(void *to, size_t size, size_t at, const uint8_t *body, size_t n)
{
	if (at < size)
		memcpy((char *)to + at, body, n < size - at ? n : size - at);
}

static void lose(struct hostile *l)
{
	l->page->lost = CUDA_ERROR_UNKNOWN;
	atomic_store(&l->page->state, CHANNEL_LOST);
	atomic_fetch_add(&l->page->progress, 1);
	wait_wake(&l->page->progress);
}

/* The next record if it is of that kind. What comes before it is done at once, or, of calls
 * that are over, left out. */
static bool next_violation(
	struct hostile *l, uint8_t kind, struct record *r, const uint8_t **body)
{
	for (;;) {
		const uint8_t *bytes = l->bytes;
		size_t n = l->n;
		uint8_t is;

		if (!record_next(&bytes, &n, r))
			return false;
		is = r->kind % RECORD_KINDS;
		if (is == RECORD_ANSWER && kind != RECORD_ANSWER)
			return false; /* that is for later */
		*body = bytes;
		record_skip(&bytes, &n, r);
		l->bytes = bytes;
		l->n = n;
		if (is == kind)
			return true;
		if (is == RECORD_SEGMENT && l->base)
			overlay(l->base, SEGMENT, 16u * r->context, *body, r->body);
		else if (is == RECORD_PAGE && l->base)
			overlay(l->page, sizeof(*l->page), r->context, *body, r->body);
		else if (is == RECORD_LOST && l->base)
			lose(l);
		else if (is == RECORD_GONE)
			shutdown(l->socket, SHUT_RDWR);
	}
}

/* False: there will be no more. */
static bool answer_request(struct hostile *l)
{
	struct channel_request request;
	struct channel_answer answer = {.magic = CHANNEL_MAGIC,
		.version = CHANNEL_VERSION,
		.mode = CHANNEL_POD,
		.size = SEGMENT,
		.agent = "hostile:1"};
	const uint8_t *body;
	struct record r;
	int fds[2] = {-1, -1};

	if (recv(l->socket, &request, sizeof(request), MSG_DONTWAIT) != sizeof(request))
		return false;
	answer.op = request.op;
	if (request.op == CHANNEL_ATTACH) {
		fds[0] = dup(l->doorbell);
		fds[1] = memfd_create("fuzz", MFD_CLOEXEC);
		must(!ftruncate(fds[1], SEGMENT), "ftruncate");
		l->base = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
		must(l->base != MAP_FAILED, "mmap");
		l->page = (void *)l->base;
		page_make(l);
	} else if (request.op == CHANNEL_PIN) {
		answer.segment = 1;
		answer.size = request.size;
		fds[0] = memfd_create("fuzz", MFD_CLOEXEC);
		(void)!ftruncate(fds[0], request.size < 1 << 20 ? (off_t)request.size : 0);
	}
	if (next_violation(l, RECORD_ATTACH, &r, &body)) {
		overlay(&answer, sizeof(answer), r.context, body, r.body);
		if (r.stripe & 1) { /* less than it says */
			(void)!ftruncate(fds[1] >= 0 ? fds[1] : fds[0], 4096);
			l->base = NULL;
		}
	}
	(void)!descriptors_send(l->socket, &answer, sizeof(answer), fds,
		(unsigned)(fds[0] >= 0) + (fds[1] >= 0), MSG_DONTWAIT);
	shut(&fds[0]);
	shut(&fds[1]);
	return true;
}

static uint32_t open_answer(struct hostile *l, const struct wire_vcudaOpen *ask)
{
	struct {
		struct open_info info;
		struct open_device device;
	} open = {.info = {.version = OPEN_VERSION,
			  .driver_version = 13000,
			  .device_count = 1,
			  .device_bytes = sizeof(struct open_device)},
		.device = {.name = "hostile",
			.total_memory = 1ull << 34,
			.window = DEVICE_AT,
			.window_bytes = 1ull << 36,
			.granularity = GRANULE,
			.lease = 1ull << 30}};
	const uint8_t *body;
	struct record r;

	memset(open.device.attribute_known, 0xff, sizeof(open.device.attribute_known));
	if (next_violation(l, RECORD_OPEN, &r, &body))
		overlay(&open, sizeof(open), r.context, body, r.body);
	overlay(l->base, SEGMENT, ask->destination.offset, (const void *)&open, sizeof(open));
	return sizeof(open);
}

static void answer_call(struct hostile *l, const struct frame_header *h, const void *frame)
{
	struct channel_slot *slot = (void *)(l->base + SLOTS_AT);
	const struct wire_vcudaCopyOut *copy = frame;
	const uint8_t *body;
	struct record r;

	slot += h->tag % CHANNEL_SLOTS;
	memset(slot->data, 0, sizeof(slot->data));
	slot->status = slot->deferred = slot->payload = 0;
	slot->body = CHANNEL_SLOT_BODY;
	slot->seq = h->seq;
	if (h->op == OP_vcudaOpen)
		slot->payload = open_answer(l, frame);
	else if (h->op == OP_vcudaCopyOut)
		slot->payload = (uint32_t)(copy->width * copy->height * copy->depth);
	if (next_violation(l, RECORD_ANSWER, &r, &body)) {
		overlay(slot->data, sizeof(slot->data), r.context, body, r.body);
		if (r.stripe & 1)
			slot->status = r.op;
		if (r.stripe & 2)
			slot->deferred = r.op;
		if (r.stripe & 4)
			slot->body = r.op;
		if (r.stripe & 8)
			slot->payload = (uint32_t)r.op << (r.stripe >> 4);
	}
	atomic_store(&slot->answered, 1);
	wait_wake(&slot->answered);
}

/* What is in the ring; its own app is honest here. */
static void take_frames(struct hostile *l)
{
	uint64_t tail = atomic_load(&l->page->tail);

	while (l->head < tail) {
		uint64_t at = l->head % PART, left = PART - at;
		struct frame_header h;
		const unsigned char *frame = l->base + RING_AT + at;
		uint64_t bytes;

		if (left < sizeof(h)) {
			l->head += left;
			continue;
		}
		memcpy(&h, frame, sizeof(h));
		if (h.kind == FRAME_PAD) {
			l->head += left;
			continue;
		}
		bytes = sizeof(h) + h.body +
			(h.flags & FRAME_BULK ? sizeof(struct frame_bulk) : h.length - h.body);
		bytes = (bytes + 15) & ~15ull;
		frame += sizeof(h) + (h.flags & FRAME_BULK ? sizeof(struct frame_bulk) : 0);
		if (h.magic != FRAME_MAGIC || bytes > left) /* our own bytes came back */
			break;
		l->head += bytes;
		atomic_store(&l->page->head, l->head);
		if (h.kind == FRAME_CALL)
			answer_call(l, &h, frame);
	}
	atomic_fetch_add(&l->page->progress, 1);
	wait_wake(&l->page->progress);
}

/* False: the program has closed its end. */
static bool turn(struct hostile *l)
{
	struct pollfd p[2] = {
		{.fd = l->socket, .events = POLLIN}, {.fd = l->doorbell, .events = POLLIN}};
	uint64_t rung;

	poll(p, 2, 1);
	if (p[1].revents)
		(void)!read(l->doorbell, &rung, sizeof(rung));
	if (p[0].revents && !answer_request(l))
		return false;
	if (l->base)
		take_frames(l);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const uint64_t leaves = wait_now() + SECONDS_SERVE * SECOND;
	const uint64_t until = wait_now() + SECONDS_MAX * SECOND;
	struct hostile l = {.bytes = bytes, .n = n};
	struct pollfd p;
	pid_t child;
	int ready;

	if (!address.sun_path[0])
		setup();
	l.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unlink(address.sun_path);
	must(!bind(l.listener, (struct sockaddr *)&address, sizeof(address)) &&
			!listen(l.listener, 1),
		"listen");
	l.doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	child = forked_start();
	if (!child) {
		close(l.listener);
		program();
		_exit(0);
	}
	p = (struct pollfd){.fd = l.listener, .events = POLLIN};
	do
		ready = poll(&p, 1, SECONDS_MAX * 1000);
	while (ready < 0 && errno == EINTR);
	must(ready == 1, "the program does not come");
	l.socket = accept4(l.listener, NULL, NULL, SOCK_CLOEXEC);
	close(l.listener);
	unlink(address.sun_path);
	while (turn(&l) && wait_now() < leaves)
		;
	shutdown(l.socket, SHUT_RDWR);
	forked_end(child, until);
	if (l.page && l.page != MAP_FAILED)
		munmap(l.page, SEGMENT);
	close(l.socket);
	close(l.doorbell);
	return 0;
}

size_t make_record(uint8_t *out, size_t most)
{
	struct record r = {.op = (uint16_t)record_random(4096),
		.stripe = (uint8_t)record_random(256),
		.context = (uint16_t)(record_random(4) ? 8 * record_random(20)
						       : record_random(4096)),
		.body = (uint16_t)(8 * record_random(5))};

	r.kind = record_random(3) ? RECORD_ANSWER : (uint8_t)record_random(RECORD_KINDS);
	return record_write(out, most, &r);
}
