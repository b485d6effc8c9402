/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program's static constructors tell the runtime: fat binaries, and the kernels and
 * variables in them.  Registration only records pointers; a fat binary is loaded at the first
 * use of something in it, a kernel at its own first use.
 *
 * Kernels are CUkernel handles of CUlibraries: they belong to no context, so one handle serves
 * every device, and it survives cudaDeviceReset.
 */
#ifndef VCUDA_RUNTIME_REGISTER_H
#define VCUDA_RUNTIME_REGISTER_H

#include "shim/runtime/runtime.h"
#include "shim/runtime/table.h"

enum symbol_kind {
	SYMBOL_KERNEL,	 /* host: address of the stub */
	SYMBOL_VARIABLE, /* host: address of the shadow variable */
	SYMBOL_MANAGED,	 /* __managed__: not served */
	SYMBOL_HANDLE,	 /* host: a cudaKernel_t that stands for itself */
	SYMBOL_FUNCTION, /* host: a cudaFunction_t that stands for itself */
};

struct symbol {
	const void *host;
	const char *name;	  /* in the program's image */
	struct binary *binary;	  /* NULL for handles */
	struct symbol *next;	  /* of the same binary, or the free list */
	_Atomic(CUkernel) kernel; /* once loaded */
	enum symbol_kind kind;
};

extern struct table register_table __attribute__((visibility("hidden")));

/* The kernel of a symbol, loading what must be. Needs a context. */
cudaError_t register_load_kernel(struct symbol *symbol, CUkernel *kernel);

/* What cuLaunchKernel takes for FUNC: a kernel's stub, a cudaKernel_t or a cudaFunction_t.
 * cudaErrorInvalidDeviceFunction where it is none. Needs a context. */
static inline cudaError_t register_function(const void *func, CUfunction *function)
{
	struct symbol *symbol = table_find(&register_table, func);
	CUkernel kernel = NULL;
	cudaError_t error;

	if (unlikely(!symbol))
		return cudaErrorInvalidDeviceFunction;
	kernel = atomic_load_explicit(&symbol->kernel, memory_order_acquire);
	if (unlikely(!kernel)) {
		error = register_load_kernel(symbol, &kernel);
		if (error)
			return error;
	}
	*function = (CUfunction)kernel;
	return cudaSuccess;
}

/* The same as a CUkernel; cudaErrorInvalidDeviceFunction for a cudaFunction_t. */
cudaError_t register_kernel(const void *func, CUkernel *kernel);
/* The CUfunction of FUNC in the current context. */
cudaError_t register_context_function(const void *func, CUfunction *function);

/* Address and size on the thread's device of a variable's shadow; cudaErrorInvalidSymbol. */
cudaError_t register_variable(const void *shadow, CUdeviceptr *address, size_t *bytes);

/* Why the last __cudaGetKernel failed: its caller keeps only a NULL handle. */
cudaError_t register_kernel_failure(void);

/* Makes a handle usable where the API takes a kernel's address. False: no memory. */
bool register_handle(const void *handle, enum symbol_kind kind);

#endif
