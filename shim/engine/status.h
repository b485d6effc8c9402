/* SPDX-License-Identifier: Apache-2.0
 *
 * How trouble outside of CUDA is told as a CUresult: the whole mapping.
 */
#ifndef VCUDA_SHIM_ENGINE_STATUS_H
#define VCUDA_SHIM_ENGINE_STATUS_H

#include <cuda.h>

enum status_cause {
	CAUSE_NOT_CONFIGURED, /* no socket there, no REMOTE_GPU_ADDRESS */
	CAUSE_UNREACHABLE,    /* a sidecar should be there but does not answer */
	CAUSE_FOREIGN,	      /* what answers speaks another version */
	CAUSE_LOST,	      /* the session is over and nobody said why */
	CAUSE_VIOLATION,      /* an answer that cannot be */
};

CUresult status_of(enum status_cause cause);

/* A CUresult that came over the wire: unknown numbers become CUDA_ERROR_UNKNOWN. */
CUresult status_wire(uint32_t status);

#endif
