/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of the front's own, one for each context: for calls that take a stream and no handle.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/libraries/common/driver_front.h"
#include "shim/libraries/cudnn/cudnn.h"
#include "protocol/generated/cudnn_api.h"

/* The context's id is never given twice. */
struct own {
	struct own *next;
	unsigned long long context;
	cudnnHandle_t handle;
};

static struct {
	pthread_mutex_t lock;
	struct own *first;
} owns = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(owns, owns.lock, LOCK_OWN);

static cudnnHandle_t own_find(unsigned long long context)
{
	cudnnHandle_t handle = NULL;

	pthread_mutex_lock(&owns.lock);
	for (const struct own *o = owns.first; o; o = o->next)
		if (o->context == context)
			handle = o->handle;
	pthread_mutex_unlock(&owns.lock);
	return handle;
}

cudnnHandle_t cudnn_own(void)
{
	CUcontext current = NULL;
	unsigned long long id;
	cudnnHandle_t handle;
	struct own *o;

	if (vcuda_front_context() || cuCtxGetCurrent(&current) || !current ||
		cuCtxGetId(current, &id))
		return NULL;
	handle = own_find(id);
	if (handle)
		return handle;
	o = calloc(1, sizeof(*o));
	if (!o || cudnnCreate(&o->handle)) {
		free(o);
		return NULL;
	}
	o->context = id;
	/* Two threads may come here at once: the one that is last is found. */
	pthread_mutex_lock(&owns.lock);
	o->next = owns.first;
	owns.first = o;
	pthread_mutex_unlock(&owns.lock);
	return o->handle;
}
