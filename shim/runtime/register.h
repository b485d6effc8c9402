/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program's static constructors tell the runtime: fat binaries, and the kernels and
 * variables in them.  Registration only records pointers; a fat binary is loaded at the first
 * use of something in it, a kernel at its own first use.
 *
 * A fat binary becomes a CUlibrary and a kernel a CUkernel: those belong to no context, so one
 * handle serves every device and survives cudaDeviceReset.  Launches go by the CUfunction that
 * a kernel has in a context, which is kept with the kernel: the driver then looks nothing up.
 */
#ifndef VCUDA_SHIM_RUNTIME_REGISTER_H
#define VCUDA_SHIM_RUNTIME_REGISTER_H

#include "shim/runtime/runtime.h"
#include "shim/runtime/table.h"

enum symbol_kind {
	SYMBOL_KERNEL,	 /* host: address of the stub */
	SYMBOL_VARIABLE, /* host: address of the shadow variable */
	SYMBOL_MANAGED,	 /* __managed__; host: address of the pointer to the variable */
	SYMBOL_HANDLE,	 /* host: a cudaKernel_t that stands for itself */
	SYMBOL_FUNCTION, /* host: a cudaFunction_t that stands for itself */
};

/* A kernel in one context. Never changed once it can be seen, so readers take no lock. */
struct binding {
	struct binding *next;
	CUcontext context;
	uint32_t generation; /* of runtime_generation: a reset makes a new context */
	CUfunction function;
};

struct symbol {
	const void *host;
	const char *name;		    /* in the program's image */
	struct binary *binary;		    /* NULL for handles */
	struct symbol *next;		    /* of the same binary, or the free list */
	_Atomic(CUkernel) kernel;	    /* once loaded */
	_Atomic(struct binding *) bindings; /* the newest first */
	enum symbol_kind kind;
};

extern struct table register_table __attribute__((visibility("hidden")));

/* Finds the function in the thread's context and keeps it, loading what must be. */
cudaError_t register_bind(struct symbol *symbol, CUfunction *function);

/* A symbol's function in the thread's context (after runtime_enter). */
static inline cudaError_t register_bound(struct symbol *symbol, CUfunction *function)
{
	const struct runtime_thread *thread = &runtime_thread;
	const struct binding *binding =
		atomic_load_explicit(&symbol->bindings, memory_order_acquire);

	for (; likely(binding); binding = binding->next) {
		if (likely(binding->context == thread->bound &&
			    binding->generation == thread->generation)) {
			*function = binding->function;
			return cudaSuccess;
		}
	}
	return register_bind(symbol, function);
}

/* What NVIDIA's runtimes of both majors say of an address that is no kernel (seen on an H200):
 * they take it for a handle. */
static inline cudaError_t register_unknown(const void *func)
{
	return func ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
}

/* The same for FUNC: a kernel's stub, a cudaKernel_t or a cudaFunction_t; register_unknown
 * where it is none of them. */
static inline cudaError_t register_function(const void *func, CUfunction *function)
{
	struct symbol *symbol = table_find(&register_table, func);

	return likely(symbol) ? register_bound(symbol, function) : register_unknown(func);
}

/* The same, and the context that it needs. */
static inline cudaError_t runtime_function(const void *func, CUfunction *function)
{
	cudaError_t error = runtime_enter();

	return error ? error : register_function(func, function);
}

/* What the program calls a function that was launched once: the way back. NULL: nothing. */
const void *register_host(CUfunction function);
/* The CUkernel of FUNC; cudaErrorInvalidDeviceFunction for a cudaFunction_t too. */
cudaError_t register_kernel(const void *func, CUkernel *kernel);
/* Address and size on the thread's device of a variable's shadow; cudaErrorInvalidSymbol. */
cudaError_t register_variable(const void *shadow, CUdeviceptr *address, size_t *bytes);

/* Makes a handle usable where the API takes a kernel's address. False: no memory. */
bool register_handle(const void *handle, enum symbol_kind kind);
/* Undoes it, when the handle's library goes. */
void register_forget(const void *handle);

#endif
