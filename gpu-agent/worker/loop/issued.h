/* SPDX-License-Identifier: Apache-2.0
 *
 * What was issued to the driver while a host function is outstanding, and may wait behind it.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_ISSUED_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_ISSUED_H

#include <stdbool.h>

struct worker;
struct worker_stream;

/* While a host function is outstanding: one more piece of work on STREAM, which is issued
 * behind this. */
void issued_work(struct worker *w, struct worker_stream *stream);
/* One more frame, which may have been for a stream or not. */
void issued_frame(struct worker *w);
/* No more is to be issued now. Makes the context of a stream current. */
bool issued_full(struct worker *w);
/* No host function is outstanding any more. */
void issued_over(struct worker *w);
void issued_stream_gone(struct worker *w, struct worker_stream *stream);

#endif
