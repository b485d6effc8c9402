/* SPDX-License-Identifier: Apache-2.0
 *
 * What is closed while a host function is outstanding, or a call is served beside the loop,
 * which may use it.  Inside, a library or the driver waits
 * for the whole context (cublasDestroy does), and the host function's end comes through the
 * loop: so the object's name goes at once, and it itself when no host function is outstanding.
 * What comes behind waits for nothing; as natively, an app cannot use what it closed.
 */
#include <stdlib.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/worker_state.h"

struct closing {
	CUresult (*close)(struct worker *w, void *object);
	void *object;
	struct closing *next;
};

bool closing_waits(const struct worker *w)
{
	/* Behind a fault host functions never run, and nothing waits for them. */
	return (w->callbacks.outstanding && !w->sticky) || beside_any(w);
}

CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object)
{
	struct closing *c;

	if (!closing_waits(w))
		return close(w, object);
	c = malloc(sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY; /* it stays until the session ends */
	*c = (struct closing){.close = close, .object = object};
	*w->kept.closings_tail = c;
	w->kept.closings_tail = &c->next;
	w->kept.closing_count++;
	return CUDA_SUCCESS;
}

bool closing_full(const struct worker *w)
{
	return w->kept.closing_count >= CLOSINGS_MOST;
}

void closing_poll(struct worker *w)
{
	if (!w->kept.closings || closing_waits(w))
		return;
	while (w->kept.closings) {
		struct closing *c = w->kept.closings;
		CUresult status = c->close(w, c->object);

		w->kept.closings = c->next;
		free(c);
		if (status && !w->deferred)
			w->deferred = status;
	}
	w->kept.closings_tail = &w->kept.closings;
	w->kept.closing_count = 0;
}
