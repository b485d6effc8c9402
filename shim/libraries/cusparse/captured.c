/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of vectors whose result goes to the host while its stream captures.  cuSPARSE
 * captures a copy of the result, which runs with the graph.  At the agent that copy would go to
 * memory of the answer, so the call gets a place on the device, and the copy from there is
 * captured here, like the program's own.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "protocol/generated/cusparse_ops.h"
#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/cusparse/cusparse.h"

/* Graphs are launched long after the handle is gone, so a place stays. There is one for each
 * address that results go to: graphs that share it would share that memory natively. */
struct place {
	struct place *next;
	const void *host;
	unsigned long long context;
	CUdeviceptr device;
};

static struct {
	_Atomic(struct place *) first; /* two for one address do no harm */
} places;

enum { PLACE_BYTES = 16 };

static CUdeviceptr place_of(const void *host)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	unsigned long long context = 0;
	struct place *place;
	CUresult status;

	if (cuCtxGetId(NULL, &context))
		return 0;
	for (place = places.first; place; place = place->next)
		if (place->host == host && place->context == context)
			return place->device;
	place = malloc(sizeof(*place));
	if (!place)
		return 0;
	*place = (struct place){.host = host, .context = context};
	cuThreadExchangeStreamCaptureMode(&mode);
	status = cuMemAlloc(&place->device, PLACE_BYTES);
	cuThreadExchangeStreamCaptureMode(&mode);
	if (status) {
		free(place);
		return 0;
	}
	place->next = places.first;
	while (!atomic_compare_exchange_weak(&places.first, &place->next, place))
		;
	return place->device;
}

static bool captures(const struct library_items *items)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return !items->status && items->mode == LIBRARY_POINTERS_HOST &&
	       !cuStreamIsCapturing(items->stream, &status) &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

cusparseStatus_t hand_cusparseSpVV(cusparseHandle_t handle, cusparseOperation_t opX,
	cusparseConstSpVecDescr_t vecX, cusparseConstDnVecDescr_t vecY, void *result,
	cudaDataType computeType, void *externalBuffer)
{
	uint32_t bytes = cusparse_scalar_bytes(computeType);
	struct library_items items;
	CUdeviceptr at = 0;
	cusparseStatus_t status;

	library_begin(&items, &cusparse_front, FRONT_COUNTED, OP_cusparseSpVV, LIBRARY_LEARNED,
		handle);
	if (result && bytes && captures(&items)) {
		at = place_of(result);
		if (!at)
			return CUSPARSE_STATUS_ALLOC_FAILED;
		items.mode = LIBRARY_POINTERS_DEVICE;
		items.body.state.word[cusparse_front.pointer_mode] = LIBRARY_POINTERS_DEVICE;
	}
	PUT_INT(opX), PUT(descriptor, vecX, CUSPARSE_ITEM_SPVEC),
		PUT(descriptor, vecY, CUSPARSE_ITEM_DNVEC),
		PUT(result, at ? (void *)(uintptr_t)at : result, bytes), PUT_INT(computeType),
		PUT(device, externalBuffer);
	status = library_send(&items);
	if (!status && at && cuMemcpyDtoHAsync(result, at, bytes, items.stream))
		return CUSPARSE_STATUS_EXECUTION_FAILED;
	return status;
}
