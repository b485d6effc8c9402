/* SPDX-License-Identifier: Apache-2.0
 *
 * fault+X://ADDRESS?PLAN: a link of transport X that breaks by a plan.  Words, joined by `&`:
 *
 *     delay=TIME          bytes that arrive are held back for TIME (us, ms, s)
 *     cut-after=N         the link is dead once N frames have been sent
 *     cut-after-bytes=N   … once N bytes have been sent (frames cut in the middle)
 *     truncate=N          with a cut: the last frame goes out N bytes short
 *     rate=N              a wire of N bytes a second, each way, which all links to this very
 *                         address share; with it there are stripes, for which no other word
 *                         counts
 *     stall-after=N       after N frames sent nothing moves in either direction, no error comes
 *
 * It counts frames by their headers, so it wraps links that carry frames (frame.h) only.
 */
#ifndef VCUDA_TRANSPORT_FAULT_H
#define VCUDA_TRANSPORT_FAULT_H

#include "transport/transport.h"

#define FAULT_NONE UINT64_MAX

struct fault_plan {
	uint64_t delay;		  /* ns, 0 = none */
	uint64_t cut_after;	  /* frames, FAULT_NONE = never */
	uint64_t cut_after_bytes; /* bytes, FAULT_NONE = never */
	uint64_t stall_after;	  /* frames, FAULT_NONE = never */
	uint64_t truncate;	  /* bytes */
	uint64_t rate;		  /* bytes/s, 0 = any */
};

extern const struct transport transport_fault;

/* Parses the words of PLAN; -EINVAL with *error naming the word. */
int fault_parse(const char *text, struct fault_plan *plan, struct error *error);

#endif
