/* SPDX-License-Identifier: Apache-2.0
 *
 * cudaLibrary_t and cudaKernel_t: the driver's CUlibrary and CUkernel.  A kernel handed out
 * here may be given to every function that takes a kernel's address, so it goes into the table
 * of registered addresses.
 */
#include "shim/runtime/register.h"

#include <stdlib.h>

_Static_assert((int)cudaLibraryBinaryIsPreserved == CU_LIBRARY_BINARY_IS_PRESERVED, "options");

/* Where there is a library its names may need a context; the thread has none afterwards if it
 * had none. */
static cudaError_t library_enter(cudaLibrary_t library, bool *borrowed)
{
	*borrowed = false;
	return library ? runtime_borrow(borrowed) : runtime_init();
}

cudaError_t hand_cudaLibraryUnload(cudaLibrary_t library)
{
	CUkernel *kernels = NULL;
	unsigned count = 0;
	bool borrowed;
	cudaError_t error = library_enter(library, &borrowed);

	if (error)
		return error;
	/* Its kernels may have been handed out, and their handles may be used again. */
	if (!cuLibraryGetKernelCount(&count, (CUlibrary)library) && count)
		kernels = calloc(count, sizeof(*kernels));
	if (kernels && cuLibraryEnumerateKernels(kernels, count, (CUlibrary)library))
		count = 0;
	for (unsigned i = 0; kernels && i < count; i++)
		register_forget(kernels[i]);
	free(kernels);
	error = runtime_status(cuLibraryUnload((CUlibrary)library));
	runtime_return(borrowed);
	return error;
}

cudaError_t hand_cudaLibraryGetKernel(
	cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
	cudaError_t error;
	bool borrowed;

	if (!pKernel)
		return runtime_init() ?: cudaErrorInvalidValue;
	error = library_enter(library, &borrowed);
	if (!error)
		error = runtime_status(
			cuLibraryGetKernel((CUkernel *)pKernel, (CUlibrary)library, name));
	runtime_return(borrowed);
	if (!error && !register_handle(*pKernel, SYMBOL_HANDLE))
		error = cudaErrorMemoryAllocation;
	return error;
}

cudaError_t hand_cudaLibraryGetGlobal(
	void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	CUdeviceptr address;
	cudaError_t error = runtime_enter();

	if (!error)
		error = runtime_status(
			cuLibraryGetGlobal(&address, bytes, (CUlibrary)library, name));
	if (!error && dptr)
		*dptr = (void *)address;
	return error;
}

cudaError_t hand_cudaLibraryGetManaged(
	void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	CUdeviceptr address;
	bool borrowed;
	cudaError_t error = library_enter(library, &borrowed);

	if (!error)
		error = runtime_status(
			cuLibraryGetManaged(&address, bytes, (CUlibrary)library, name));
	if (!error && dptr)
		*dptr = (void *)address;
	runtime_return(borrowed);
	return error;
}

cudaError_t hand_cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
	bool borrowed;
	cudaError_t error = library_enter(lib, &borrowed);

	if (!error)
		error = runtime_status(cuLibraryGetKernelCount(count, (CUlibrary)lib));
	runtime_return(borrowed);
	return error;
}

cudaError_t hand_cudaLibraryEnumerateKernels(
	cudaKernel_t *kernels, unsigned int numKernels, cudaLibrary_t lib)
{
	unsigned count;
	cudaError_t error;
	bool borrowed;

	if (!kernels)
		return cudaErrorInvalidValue;
	error = library_enter(lib, &borrowed);
	if (!error)
		error = runtime_status(cuLibraryGetKernelCount(&count, (CUlibrary)lib));
	if (!error)
		error = runtime_status(cuLibraryEnumerateKernels(
			(CUkernel *)kernels, numKernels, (CUlibrary)lib));
	runtime_return(borrowed);
	for (unsigned i = 0; !error && i < numKernels && i < count; i++) {
		if (!register_handle(kernels[i], SYMBOL_HANDLE))
			error = cudaErrorMemoryAllocation;
	}
	return error;
}
