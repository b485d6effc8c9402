/* SPDX-License-Identifier: Apache-2.0
 *
 * What is closed while a host function is outstanding.  Inside, a library or the driver waits
 * for the whole context (cublasDestroy does), and the host function's end comes through the
 * loop: so the object's name goes at once, and it itself when no host function is outstanding.
 * What comes behind waits for nothing; as natively, an app cannot use what it closed.
 */
#include <stdlib.h>

#include "gpu-agent/worker/closing.h"
#include "gpu-agent/worker/worker_state.h"

struct closing {
	CUresult (*close)(struct worker *w, void *object);
	void *object;
	struct closing *next;
};

CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object)
{
	struct closing *c;

	/* Behind a fault host functions never run, and nothing waits. */
	if (!w->callbacks.outstanding || w->sticky)
		return close(w, object);
	c = malloc(sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY; /* it stays until the session ends */
	*c = (struct closing){.close = close, .object = object};
	*w->kept.closings_tail = c;
	w->kept.closings_tail = &c->next;
	return CUDA_SUCCESS;
}

void closing_poll(struct worker *w)
{
	if (!w->kept.closings || (w->callbacks.outstanding && !w->sticky))
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
}
