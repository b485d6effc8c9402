/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, where an event that is done is seen to be so later: of the queries that
 * would say it every second, by chance, says that it is not.  So of two events the later one
 * may be seen to be done first, as where the second is asked just after it happened.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>

static atomic_uint queries = 1;

__attribute__((visibility("default"))) CUresult cuEventQuery(CUevent event)
{
	CUresult status = ((__typeof__(&cuEventQuery))dlsym(RTLD_NEXT, "cuEventQuery"))(event);
	unsigned bits = atomic_fetch_add(&queries, 1) * 2654435761u;

	return !status && bits & 1u << 17 ? CUDA_ERROR_NOT_READY : status;
}
