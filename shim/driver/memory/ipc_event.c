/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that processes share: one is always done on every side, so nothing has to travel.  A
 * handle is given away once what the event stands for is done, and recording one that is shared
 * first waits for what the stream has to do (shim/driver/stream/event.c): whoever learns of the
 * recording finds that work done.
 */
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/stream/stream.h"

static const char event_magic[8] = "vcudaEVT";

struct event_handle {
	char magic[8];
	uint64_t giver; /* share_process() */
	uint8_t unused[48];
};
_Static_assert(sizeof(struct event_handle) == sizeof(CUipcEventHandle), "");

CUresult hand_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct event_handle handle = {.unused = {0}};
	CUresult status;

	if (!pHandle || !event)
		return CUDA_ERROR_INVALID_VALUE;
	status = context_missing();
	if (!status)
		status = event_share(event);
	if (!status)
		status = event_done(event);
	if (status)
		return status;
	memcpy(handle.magic, event_magic, sizeof(event_magic));
	handle.giver = share_process();
	memcpy(pHandle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult hand_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct event_handle event;
	CUresult status;

	memcpy(&event, &handle, sizeof(event));
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(event.magic, event_magic, sizeof(event_magic)))
		return CUDA_ERROR_MAP_FAILED;
	/* A process does not open what it gave itself. */
	if (event.giver == share_process())
		return CUDA_ERROR_INVALID_CONTEXT;
	/* One that was never recorded is done. */
	status = hand_cuEventCreate(phEvent, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	return status ? status : event_share(*phEvent);
}
