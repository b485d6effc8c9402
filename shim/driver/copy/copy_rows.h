/* SPDX-License-Identifier: Apache-2.0
 *
 * One slice of a copy between the app's memory and the device: for copy.c.
 */
#ifndef VCUDA_SHIM_DRIVER_COPY_COPY_ROWS_H
#define VCUDA_SHIM_DRIVER_COPY_COPY_ROWS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct array;

/* One slice of a copy. */
struct rows {
	unsigned char *host;
	size_t host_pitch;
	CUdeviceptr device;
	size_t device_pitch;
	size_t width;
	size_t height;
	const struct array *array; /* not NULL: instead of device memory, from byte … */
	size_t x, y, z;		   /* … x of row y of slice z on */
	size_t piece;		   /* bytes of one at most: copy_rows.c's */
};

/* To the device: posts. LATER: not more than that; else work that comes later is ordered behind
 * it, as CUDA does with a copy that waits. */
CUresult copy_in(struct rows *r, uint64_t stream, bool later);
/* To the host: done when it returns. */
CUresult copy_out(struct rows *r, uint64_t stream);
/* To pinned memory, not awaited: it has arrived when a later synchronisation is answered.
 * False: not pinned, or not in one piece a row. */
bool copy_out_later(struct rows *r, uint64_t stream, CUresult *status);

#endif
