/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's functions by name, for programs that link the runtime only.
 */
#include "shim/runtime/forms.h"
#include "shim/runtime/runtime.h"

#include <string.h>

/* As the driver front exports it, whatever macro a header puts on the name. */
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
	CUdriverProcAddressQueryResult *symbolStatus);

_Static_assert(
	(int)cudaEnablePerThreadDefaultStream == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
	"flags");

cudaError_t runtime_entry_point(const char *symbol, void **funcPtr, unsigned version,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus,
	cudaStream_t null_stream)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CUresult status;
	cudaError_t error;

	if (!symbol || !funcPtr ||
		flags & ~(unsigned long long)(cudaEnableLegacyStream |
					      cudaEnablePerThreadDefaultStream))
		return cudaErrorInvalidValue;
	*funcPtr = NULL;
	error = runtime_init();
	if (error)
		return error;

	/* Default flags mean what the caller was compiled with. */
	if (!flags && null_stream == cudaStreamPerThread)
		flags = cudaEnablePerThreadDefaultStream;
	status = cuGetProcAddress_v2(symbol, funcPtr, (int)version, flags, &found);
	if (driverStatus && (!status || status == CUDA_ERROR_NOT_FOUND))
		*driverStatus = (enum cudaDriverEntryPointQueryResult)found;
	/* A name that is not there is no error: the status says so. */
	if (status == CUDA_ERROR_NOT_FOUND) {
		*funcPtr = NULL;
		return driverStatus ? cudaSuccess : cudaErrorSymbolNotFound;
	}
	return runtime_status(status);
}

/* NVIDIA's undocumented tables are not emulated. */
cudaError_t hand_cudaGetExportTable(
	const void **ppExportTable, const cudaUUID_t *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return cudaErrorInvalidValue;
	*ppExportTable = NULL;
	return cudaErrorNotSupported;
}
