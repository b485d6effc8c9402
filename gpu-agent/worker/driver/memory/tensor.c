/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names.  The front asks the store, which sends a descriptor; that is memory with
 * a name to the rest of the worker, but counts against nobody's lease.  It is imported when it
 * is mapped: NVIDIA's driver takes 36 us for each, which the program need not wait for.  A
 * session asks one thing at a time, of up to TENSOR_BATCH tensors; what it has closed is told
 * beside that, a few at a time.
 */
#include "gpu-agent/worker/driver/memory/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/tensor.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "gpu-agent/worker/reply/reply.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"

#define CLOSINGS_AT_ONCE 4u

_Static_assert(TENSOR_BATCH * sizeof(struct tensor_told) <= 1728, "vcuda.api says so");
_Static_assert(sizeof(struct tensor_entry) <= 680, "vcuda.api says so");

static struct {
	uint16_t op; /* what waits for answers; 0: nothing */
	uint16_t tag;
	uint32_t device, count, answered;
	struct tensor_message asked[TENSOR_BATCH];
	bool done[TENSOR_BATCH];
	uint64_t handles[TENSOR_BATCH];
	struct tensor_told told[TENSOR_BATCH];
	char text[TENSOR_TEXT]; /* why the first that failed did */
	uint64_t next;		/* tag of what is asked next */

	struct vmm *open; /* what the session has */
	uint32_t waiting; /* … and has not mapped yet */
	struct closing {
		uint8_t id[16];
		uint32_t device;
		uint64_t tag; /* 0: not told yet */
	} *closings;
	size_t closing_count, closing_room, closing_told;
} tensors;

static void say(struct worker *w, const struct tensor_message *message)
{
	int ret = descriptors_send(w->handoff, message, sizeof(*message), NULL, 0, 0);

	if (ret)
		log_warn("worker.tensor", "error=\"%s\"", strerror(-ret));
}

/* ---- what is closed ---- */

static bool is_open(const uint8_t id[16])
{
	for (const struct vmm *m = tensors.open; m; m = m->next_tensor)
		if (!memcmp(m->tensor, id, 16))
			return true;
	return false;
}

static void closing_say(struct worker *w, const struct closing *closing, bool again)
{
	struct tensor_message m = {.version = TENSOR_VERSION,
		.what = TENSOR_CLOSE,
		.tag = closing->tag,
		.again = again,
		.device = closing->device};

	memcpy(m.id, closing->id, sizeof(m.id));
	say(w, &m);
}

/* Tells the front of some. One that is being taken again may be open then: not now. */
static void closings_send(struct worker *w)
{
	size_t n = tensors.closing_told;

	if (tensors.op == OP_vcudaTensorTake)
		return;
	while (n < tensors.closing_count && n < CLOSINGS_AT_ONCE) {
		struct closing *c = &tensors.closings[n];

		if (is_open(c->id)) {
			*c = tensors.closings[--tensors.closing_count];
			continue;
		}
		c->tag = ++tensors.next;
		closing_say(w, c, false);
		n++;
	}
	tensors.closing_told = n;
}

static bool closing_answered(struct worker *w, uint64_t tag)
{
	for (size_t i = 0; i < tensors.closing_told; i++) {
		if (tensors.closings[i].tag != tag)
			continue;
		tensors.closings[i] = tensors.closings[--tensors.closing_told];
		tensors.closings[tensors.closing_told] =
			tensors.closings[--tensors.closing_count];
		closings_send(w);
		return true;
	}
	return false;
}

static void closing_add(struct worker *w, const uint8_t id[16], uint32_t device)
{
	if (tensors.closing_count == tensors.closing_room) {
		size_t room = tensors.closing_room ? 2 * tensors.closing_room : 16;
		struct closing *list = realloc(tensors.closings, room * sizeof(*list));

		if (!list)
			return; /* the session's end says so too */
		tensors.closings = list;
		tensors.closing_room = room;
	}
	tensors.closings[tensors.closing_count] = (struct closing){.device = device};
	memcpy(tensors.closings[tensors.closing_count++].id, id, 16);
	closings_send(w);
}

void tensor_closed(struct worker *w, struct vmm *m)
{
	struct vmm **at = &tensors.open;

	while (*at && *at != m)
		at = &(*at)->next_tensor;
	if (*at)
		*at = m->next_tensor;
	closing_add(w, m->tensor, m->device);
}

/* ---- asking ---- */

/* Asks what lies in `asked`; the answers come as datagrams. */
static CUresult ask(struct worker *w, struct request *r, uint32_t device, uint32_t count)
{
	tensors.op = r->header.op;
	tensors.tag = r->header.tag;
	tensors.device = device;
	tensors.count = count;
	tensors.answered = 0;
	tensors.text[0] = 0;
	memset(tensors.done, 0, sizeof(tensors.done));
	for (uint32_t i = 0; i < count; i++) {
		tensors.asked[i].version = TENSOR_VERSION;
		tensors.asked[i].device = device;
		tensors.asked[i].tag = ++tensors.next;
		say(w, &tensors.asked[i]);
	}
	r->later = true;
	return CUDA_SUCCESS;
}

void tensor_ask_again(struct worker *w)
{
	for (uint32_t i = 0; tensors.op && i < tensors.count; i++) {
		if (tensors.done[i])
			continue;
		tensors.asked[i].again = 1;
		say(w, &tensors.asked[i]);
	}
	for (size_t i = 0; i < tensors.closing_told; i++)
		closing_say(w, &tensors.closings[i], true);
}

/* The shim asks one thing at a time. */
static CUresult may_ask(const struct worker *w, int device)
{
	if (device < 0 || (uint32_t)device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	return tensors.op ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static bool put_name(char *to, size_t room, const char *name)
{
	size_t n = strlen(name);

	if (n >= room)
		return false;
	memcpy(to, name, n + 1);
	return true;
}

CUresult serve_vcudaTensorTake(struct worker *w, struct request *r)
{
	const struct wire_vcudaTensorTake *req = (const void *)r->body;
	const struct tensor_wish *wishes = worker_in(r, &req->wishes, req->bytes);
	CUresult status = may_ask(w, req->device);

	if (worker_refused(r))
		return r->refused;
	if (status)
		return status;
	if (!req->count || req->count > TENSOR_BATCH ||
		req->bytes != req->count * sizeof(*wishes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuMemImportFromShareableHandle)
		return worker_lacks(w, "cuMemImportFromShareableHandle");
	memset(tensors.asked, 0, sizeof(tensors.asked));
	for (uint32_t i = 0; i < req->count; i++) {
		struct tensor_message *m = &tensors.asked[i];
		struct tensor_wish wish;

		memcpy(&wish, (const char *)wishes + i * sizeof(wish), sizeof(wish));
		if (!memchr(wish.name, 0, sizeof(wish.name)) || wish.rank > TENSOR_RANK ||
			!wish.memory)
			return CUDA_ERROR_INVALID_VALUE;
		m->what = TENSOR_TAKE;
		m->about.flags = wish.flags;
		m->about.dtype = wish.dtype;
		m->about.rank = wish.rank;
		memcpy(m->about.shape, wish.shape, sizeof(wish.shape));
		memcpy(m->name, wish.name, sizeof(wish.name));
		tensors.handles[i] = wish.memory;
	}
	return ask(w, r, (uint32_t)req->device, req->count);
}

CUresult serve_vcudaTensorLook(struct worker *w, struct request *r)
{
	const struct wire_vcudaTensorLook *req = (const void *)r->body;
	const char *name = worker_string(r, &req->name);
	struct tensor_message *m = &tensors.asked[0];
	CUresult status = may_ask(w, req->device);

	if (worker_refused(r))
		return r->refused;
	if (status)
		return status;
	memset(m, 0, sizeof(*m));
	m->what = req->list ? TENSOR_LIST : TENSOR_STAT;
	m->cursor = req->cursor;
	if (!put_name(m->name, TENSOR_NAME, name))
		return CUDA_ERROR_INVALID_VALUE;
	return ask(w, r, (uint32_t)req->device, 1);
}

CUresult serve_vcudaTensorDo(struct worker *w, struct request *r)
{
	static const uint32_t whats[] = {[TENSOR_DO_SEAL] = TENSOR_SEAL,
		[TENSOR_DO_DELETE] = TENSOR_DELETE,
		[TENSOR_DO_TOUCH] = TENSOR_TOUCH,
		[TENSOR_DO_SHARE] = TENSOR_SHARE};
	const struct wire_vcudaTensorDo *req = (const void *)r->body;
	const char *name = worker_string(r, &req->name);
	const char *argument = worker_string(r, &req->argument);
	struct tensor_message *m = &tensors.asked[0];
	CUresult status = may_ask(w, req->device);
	struct vmm *tensor = NULL;

	if (req->memory)
		tensor = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	if (worker_refused(r))
		return r->refused;
	if (status)
		return status;
	if (!req->what || req->what >= sizeof(whats) / sizeof(whats[0]) ||
		(req->what == TENSOR_DO_SEAL) != (tensor && tensor->is_tensor))
		return CUDA_ERROR_INVALID_VALUE;
	memset(m, 0, sizeof(*m));
	m->what = whats[req->what];
	if (tensor)
		memcpy(m->id, tensor->tensor, sizeof(m->id));
	if (!put_name(m->name, TENSOR_NAME, name) ||
		!put_name(m->text, sizeof(m->text), argument))
		return CUDA_ERROR_INVALID_VALUE;
	return ask(w, r, (uint32_t)req->device, 1);
}

/* ---- answers ---- */

/* The session's GPU of that UUID, which the one that asked reaches; `device_count`: none. */
static uint32_t reached(const struct worker *w, const uint8_t gpu[16])
{
	CUdevice asked = w->devices[tensors.device].device;

	for (uint32_t i = 0; i < w->device_count; i++) {
		int can = 0;

		if (memcmp(w->devices[i].open.uuid, gpu, 16))
			continue;
		if (w->cuda.cuDeviceCanAccessPeer)
			w->cuda.cuDeviceCanAccessPeer(&can, asked, w->devices[i].device);
		return can ? i : w->device_count;
	}
	return w->device_count;
}

CUresult tensor_import(struct worker *w, struct vmm *m)
{
	CUresult status = worker_use(w, (uint16_t)CONTEXT_PRIMARY(m->device));

	if (!status)
		status = w->cuda.cuMemImportFromShareableHandle(&m->memory,
			(void *)(intptr_t)m->fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (!status)
		tensor_descriptor_close(m);
	return status;
}

void tensor_descriptor_close(struct vmm *m)
{
	m->waits = false;
	close(m->fd);
	tensors.waiting--;
}

/* The store's memory becomes the session's, under the handle that it was asked for. Takes *FD,
 * or leaves it. */
static CUresult adopt(
	struct worker *w, const struct tensor_message *m, uint64_t handle, int *fd)
{
	struct request r = {.refused = CUDA_SUCCESS};
	bool peer = m->about.flags & TENSOR_PEER;
	uint32_t device = peer ? reached(w, m->gpu) : tensors.device;
	struct worker_device *d = &w->devices[device];
	struct vmm *tensor;
	CUresult status;

	if (*fd < 0 || device == w->device_count || !m->about.room ||
		m->about.room % d->granularity)
		return CUDA_ERROR_UNKNOWN;
	if (tensors.waiting == TENSOR_WAITING)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = vmm_adopt(w, &r, handle, device, 0, m->about.room);
	if (status)
		return status;
	tensor = worker_handle(w, &r, handle, KIND_CUmemGenericAllocationHandle);
	d->used -= m->about.room; /* the store's account has it */
	tensor->is_tensor = true;
	tensor->read_only = !(m->about.flags & TENSOR_WRITABLE);
	memcpy(tensor->tensor, m->id, sizeof(tensor->tensor));
	tensor->next_tensor = tensors.open;
	tensors.open = tensor;
	tensor->waits = true;
	tensor->fd = *fd;
	*fd = -1;
	tensors.waiting++;
	return CUDA_SUCCESS;
}

static void reply_take(struct worker *w)
{
	struct {
		struct wire_vcudaTensorTake_reply fixed;
		unsigned char runs[sizeof(tensors.told) + TENSOR_TEXT];
	} reply = {0};
	uint32_t told = tensors.count * (uint32_t)sizeof(tensors.told[0]);

	reply.fixed.told = (struct wire_run){sizeof(reply.fixed), told};
	reply.fixed.text = (struct wire_run){(uint32_t)sizeof(reply.fixed) + told, TENSOR_TEXT};
	memcpy(reply.runs, tensors.told, told);
	memcpy(reply.runs + told, tensors.text, TENSOR_TEXT);
	reply_send(w, tensors.tag, CUDA_SUCCESS, &reply,
		(uint32_t)sizeof(reply.fixed) + told + TENSOR_TEXT);
}

static void reply_look(struct worker *w, const struct tensor_message *m)
{
	struct {
		struct wire_vcudaTensorLook_reply fixed;
		struct tensor_entry entry;
		char text[TENSOR_TEXT];
	} reply = {.fixed = {.status = m->status,
			   .entry = {sizeof(reply.fixed), sizeof(reply.entry)},
			   .text = {sizeof(reply.fixed) + sizeof(reply.entry), TENSOR_TEXT}},
		.entry = {.cursor = m->cursor, .about = m->about}};

	memcpy(reply.entry.name, m->name, sizeof(reply.entry.name));
	memcpy(reply.text, m->text, sizeof(reply.text));
	reply_send(w, tensors.tag, CUDA_SUCCESS, &reply, sizeof(reply));
}

static void reply_do(struct worker *w, const struct tensor_message *m)
{
	struct {
		struct wire_vcudaTensorDo_reply fixed;
		char text[TENSOR_TEXT];
	} reply = {.fixed = {.status = m->status, .text = {sizeof(reply.fixed), TENSOR_TEXT}}};

	memcpy(reply.text, m->text, sizeof(reply.text));
	reply_send(w, tensors.tag, CUDA_SUCCESS, &reply, sizeof(reply));
}

/* It lies on a GPU that the session's does not reach: a copy is asked for. */
static bool take_copy(struct worker *w, uint32_t i, const struct tensor_message *m)
{
	struct tensor_message *asked = &tensors.asked[i];

	if (m->status || !(m->about.flags & TENSOR_PEER) ||
		reached(w, m->gpu) != w->device_count)
		return false;
	closing_add(w, m->id, tensors.device); /* the store counts it as held */
	asked->about.flags &= ~TENSOR_PEER;
	asked->again = 0;
	asked->tag = ++tensors.next;
	say(w, asked);
	return true;
}

static void take_answer(struct worker *w, uint32_t i, const struct tensor_message *m, int *fd)
{
	struct tensor_told *told = &tensors.told[i];

	*told = (struct tensor_told){.status = m->status, .about = m->about};
	if (!told->status) {
		told->status = (uint32_t)adopt(w, m, tensors.handles[i], fd);
		/* The store counts it as held. */
		if (told->status)
			closing_add(w, m->id, tensors.device);
	}
	if (told->status && !tensors.text[0])
		memcpy(tensors.text, m->text, sizeof(tensors.text));
}

/* The seal is answered when all who wrote have said so. */
static void read_only(struct worker *w, const uint8_t id[16])
{
	struct tensor_message done = {.version = TENSOR_VERSION, .what = TENSOR_FOLLOWED};

	for (struct vmm *m = tensors.open; m; m = m->next_tensor)
		if (!memcmp(m->tensor, id, 16) && !m->read_only)
			vmm_protect(w, m);
	memcpy(done.id, id, sizeof(done.id));
	say(w, &done);
}

void tensor_answer(struct worker *w, const struct tensor_message *m, int fd)
{
	uint32_t i = 0;

	if (m->what == TENSOR_READ_ONLY) {
		read_only(w, m->id);
	} else if (m->what != TENSOR_CLOSE || !closing_answered(w, m->tag)) {
		while (i < tensors.count && (tensors.done[i] || tensors.asked[i].tag != m->tag))
			i++;
		if (tensors.op && i < tensors.count &&
			!(tensors.op == OP_vcudaTensorTake && take_copy(w, i, m))) {
			tensors.done[i] = true;
			if (tensors.op == OP_vcudaTensorTake)
				take_answer(w, i, m, &fd);
			if (++tensors.answered == tensors.count) {
				if (tensors.op == OP_vcudaTensorTake)
					reply_take(w);
				else if (tensors.op == OP_vcudaTensorLook)
					reply_look(w, m);
				else
					reply_do(w, m);
				tensors.op = 0;
				closings_send(w);
			}
		}
	}
	if (fd >= 0)
		close(fd);
}
