/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks, with which a plan loads and stores: LTO-IR of the program's, which the agent's
 * library links with its own.  They are sent when they are set, in pieces, as a set with a
 * number of its own, which becomes a part of the plan's content; so no two plans are one.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/frame.h"
#include "shim/libraries/cufft/plan.h"

#define PIECE (32u * 1024)
_Static_assert(sizeof(struct wire_cufftXtSetJITCallback) + PIECE <= FRAME_BODY_MAX, "");

/* Device functions are linked with NVIDIA's static library only: its dynamic one answers so
 * whatever it is given. */
cufftResult hand_cufftXtSetCallback(
	cufftHandle number, void **routine, cufftXtCallbackType type, void **caller_info)
{
	(void)number, (void)routine, (void)type, (void)caller_info;
	return CUFFT_NOT_IMPLEMENTED;
}

cufftResult hand_cufftXtClearCallback(cufftHandle number, cufftXtCallbackType type)
{
	(void)number, (void)type;
	return CUFFT_NOT_IMPLEMENTED;
}

/* BYTES: head->total of them, name and LTO-IR. The first piece is awaited: an agent that does
 * not know the frame would make the session's error of one that is posted. */
static cufftResult pieces_send(
	struct wire_cufftXtSetJITCallback *head, const unsigned char *bytes)
{
	struct {
		struct wire_cufftXtSetJITCallback head;
		unsigned char piece[PIECE];
	} body;
	struct wire_cufftXtSetJITCallback_reply reply = {0};
	static int logged_once;
	uint16_t op = OP_cufftXtSetJITCallback;
	CUresult status = CUDA_SUCCESS;
	size_t size;

	for (uint64_t n; !status && !reply.plain.status && head->at < head->total;
		head->at += n) {
		n = head->total - head->at < PIECE ? head->total - head->at : PIECE;
		size = sizeof(body.head) + n;
		body.head = *head;
		memcpy(body.piece, bytes + head->at, n);
		status = head->at ? front_post(op, &body, size)
				  : front_ask(op, &body, size, &reply, sizeof(reply));
	}
	if (status == CUDA_ERROR_NOT_SUPPORTED)
		vcuda_front_older("cufftXtSetJITCallback", &logged_once);
	return status ? front_status(&cufft_front, status) : (cufftResult)reply.plain.status;
}

static cufftResult callback_send(struct plan *plan, struct wire_cufftXtSetJITCallback *head,
	const char *symbol, const void *code, size_t bytes)
{
	static _Atomic uint32_t sets;
	CUresult context = vcuda_front_context();
	unsigned char *both;
	cufftResult status;

	if (!context)
		context = cuCtxGetCurrent(&plan->context);
	if (context)
		return front_status(&cufft_front, context);
	both = malloc(head->total);
	if (!both)
		return CUFFT_ALLOC_FAILED;
	if (head->name)
		memcpy(both, symbol, head->name);
	memcpy(both + head->name, code, bytes);
	head->set = plan->content.extra.callbacks;
	while (!head->set)
		head->set = atomic_fetch_add(&sets, 1) + 1;
	status = pieces_send(head, both);
	if (!status)
		plan->content.extra.callbacks = head->set;
	free(both);
	return status;
}

static cufftResult callback_set(cufftHandle number, const char *symbol, const void *code,
	size_t bytes, cufftXtCallbackType type, void **info)
{
	struct plan *plan = fft_plan(number);
	struct wire_cufftXtSetJITCallback head = {
		.caller_info = info ? (uint64_t)(uintptr_t)info[0] : 0,
		.type = (uint32_t)type,
		.informed = info ? 1 : 0,
	};

	if (!plan || plan->made)
		return CUFFT_INVALID_PLAN;
	if (type < 0 || type >= CUFFT_CALLBACKS)
		return CUFFT_INVALID_TYPE;
	/* Without a name it is taken as well, natively. */
	if (!code || !bytes || (symbol && strlen(symbol) >= CUFFT_CALLBACK_NAME) ||
		bytes > CUFFT_CALLBACK_MOST - CUFFT_CALLBACK_NAME)
		return CUFFT_INVALID_VALUE;
	head.name = symbol ? (uint32_t)strlen(symbol) + 1 : 0;
	head.total = head.name + bytes;
	return callback_send(plan, &head, symbol, code, bytes);
}

/* In libcufft.so.11 this is a form without the function's name, which no header declares:
 * programs get the next one by it. */
cufftResult hand_cufftXtSetJITCallback(cufftHandle number, const char *symbol, const void *code,
	size_t bytes, cufftXtCallbackType type, void **info)
{
	return VCUDA_ABI == 11 ? CUFFT_NOT_SUPPORTED
			       : callback_set(number, symbol, code, bytes, type, info);
}

cufftResult hand___cufftXtSetJITCallback_12_7(cufftHandle number, const char *symbol,
	const void *code, size_t bytes, cufftXtCallbackType type, void **info)
{
	return callback_set(number, symbol, code, bytes, type, info);
}

cufftResult hand_cufftXtSetCallbackSharedSize(
	cufftHandle number, cufftXtCallbackType type, size_t bytes)
{
	const struct plan *plan = fft_plan(number);
	struct wire_cufftXtSetCallbackSharedSize body = {
		.bytes = bytes, .plan = number, .type = (uint32_t)type};
	struct wire_cufftXtSetCallbackSharedSize_reply reply = {0};
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = OP_cufftXtSetCallbackSharedSize,
		.body = &body,
		.body_bytes = sizeof(body),
		.stream_at = FRONT_NO_STREAM,
		.reply = &reply,
		.reply_bytes = sizeof(reply),
	};

	/* No other plan has a callback that could use it. */
	if (!plan || !plan->made || !plan->content.extra.callbacks)
		return CUFFT_INVALID_PLAN;
	return vcuda_library_frame(&cufft_front, &frame);
}
