/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of before CUDA 4 (cublas.h), over that of today: no handle is passed, since
 * cublasInit makes one for the context; scalars and results are values; what went wrong is
 * asked for afterwards. The functions themselves are forms, as cublas.api says.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/libraries/common/driver_front.h"
#include "shim/libraries/cublas/forms.h"

/* The contexts that cublasInit was called in.  An id is never given twice. */
struct legacy {
	struct legacy *next;
	unsigned long long context;
	cublasHandle_t handle;
};

static struct {
	pthread_mutex_t lock;
	struct legacy *first;
} legacies = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(legacies, legacies.lock, LOCK_LEGACY);

static __thread cublasStatus_t legacy_status;
static __thread union cublas_legacy_answer legacy_answer;

/* Of the thread's context; false: it has none. */
static bool legacy_context(unsigned long long *id)
{
	CUcontext context = NULL;

	return !cuCtxGetCurrent(&context) && context && !cuCtxGetId(context, id);
}

cublasHandle_t cublas_legacy(void)
{
	cublasHandle_t handle = NULL;
	unsigned long long id;

	if (!legacy_context(&id))
		return NULL;
	pthread_mutex_lock(&legacies.lock);
	for (struct legacy *l = legacies.first; l; l = l->next)
		if (l->context == id)
			handle = l->handle;
	pthread_mutex_unlock(&legacies.lock);
	return handle;
}

cublasStatus_t cublas_legacy_init(void)
{
	unsigned long long id;
	cublasStatus_t status;
	struct legacy *l;

	if (vcuda_front_context() || !legacy_context(&id))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (cublas_legacy())
		return CUBLAS_STATUS_SUCCESS;
	l = calloc(1, sizeof(*l));
	if (!l)
		return CUBLAS_STATUS_ALLOC_FAILED;
	l->context = id;
	status = cublasCreate_v2(&l->handle);
	if (status) {
		free(l);
		return status;
	}
	/* Two threads may come here at once: the one that is last is found. */
	pthread_mutex_lock(&legacies.lock);
	l->next = legacies.first;
	legacies.first = l;
	pthread_mutex_unlock(&legacies.lock);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_legacy_shutdown(void)
{
	struct legacy *gone = NULL, **at;
	unsigned long long id;

	if (!legacy_context(&id))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	pthread_mutex_lock(&legacies.lock);
	for (at = &legacies.first; *at && (*at)->context != id; at = &(*at)->next)
		;
	gone = *at;
	if (gone)
		*at = gone->next;
	pthread_mutex_unlock(&legacies.lock);
	if (!gone)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	cublasDestroy_v2(gone->handle);
	free(gone);
	return CUBLAS_STATUS_SUCCESS;
}

/* The first failure stays until it is asked for. */
void cublas_legacy_done(cublasStatus_t status)
{
	if (!legacy_status)
		legacy_status = status;
}

cublasStatus_t cublas_legacy_error(void)
{
	cublasStatus_t status = legacy_status;

	legacy_status = CUBLAS_STATUS_SUCCESS;
	return status;
}

union cublas_legacy_answer *cublas_legacy_answer(void)
{
	legacy_answer = (union cublas_legacy_answer){.z = {0, 0}};
	return &legacy_answer;
}

float cublas_legacy_single(cublasStatus_t status)
{
	cublas_legacy_done(status);
	return legacy_answer.s;
}

double cublas_legacy_twice(cublasStatus_t status)
{
	cublas_legacy_done(status);
	return legacy_answer.d;
}

cuComplex cublas_legacy_complex(cublasStatus_t status)
{
	cublas_legacy_done(status);
	return legacy_answer.c;
}

cuDoubleComplex cublas_legacy_complex_twice(cublasStatus_t status)
{
	cublas_legacy_done(status);
	return legacy_answer.z;
}

int cublas_legacy_index(cublasStatus_t status)
{
	cublas_legacy_done(status);
	return legacy_answer.i;
}

cublasStatus_t cublas_legacy_alloc(int n, int elemSize, void **devicePtr)
{
	CUdeviceptr address = 0;
	CUresult status;

	if (!cublas_legacy())
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (n <= 0 || elemSize <= 0 || !devicePtr)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = cuMemAlloc(&address, (size_t)n * (size_t)elemSize);
	*devicePtr = (void *)(uintptr_t)address;
	return status ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_legacy_free(void *devicePtr)
{
	if (!cublas_legacy())
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return cuMemFree((CUdeviceptr)(uintptr_t)devicePtr) ? CUBLAS_STATUS_INTERNAL_ERROR
							    : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_legacy_stream(cudaStream_t stream)
{
	return cublasSetStream_v2(cublas_legacy(), stream);
}

/* Letters, of either case; -1, which the library refuses: another one. */
int cublas_operation(char letter)
{
	switch (letter | 0x20) {
	case 'n': return 0;
	case 't': return 1;
	case 'c': return 2;
	default: return -1;
	}
}

int cublas_fill(char letter)
{
	return (letter | 0x20) == 'l' ? 0 : (letter | 0x20) == 'u' ? 1 : -1;
}

int cublas_side(char letter)
{
	return (letter | 0x20) == 'l' ? 0 : (letter | 0x20) == 'r' ? 1 : -1;
}

int cublas_diag(char letter)
{
	return (letter | 0x20) == 'n' ? 0 : (letter | 0x20) == 'u' ? 1 : -1;
}
