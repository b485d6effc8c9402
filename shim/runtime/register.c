/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration of fat binaries, kernels and variables (register.h says how).  PyTorch registers
 * a hundred thousand kernels at start: each costs one table slot and one record out of a block.
 */
#include "shim/runtime/register.h"
#include "shim/generated/cuda_calls.h"
#include "shim/engine/lock.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* How what nvcc and clang place in .nvFatBinSegment begins (fatbinary_section.h). */
#define BINARY_MAGIC 0x466243b1

struct binary {
	const void *wrapper;  /* around the fat binary, in the program's image */
	pthread_mutex_t lock; /* one loader at a time */
	_Atomic(CUlibrary) library;
	struct symbol *symbols;
};

#define SYMBOL_BLOCK 256

struct table register_table;

static struct {
	/* Guards changes of the table, the free list and the binaries' symbol lists. */
	pthread_mutex_t lock;
	struct symbol *free_symbols;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(registry, registry.lock, LOCK_REGISTER);

static struct symbol *symbol_new(void)
{
	struct symbol *symbol = registry.free_symbols;

	if (!symbol) {
		symbol = calloc(SYMBOL_BLOCK, sizeof(*symbol));
		if (!symbol)
			return NULL;
		for (int i = 0; i < SYMBOL_BLOCK - 1; i++)
			symbol[i].next = &symbol[i + 1];
	}
	registry.free_symbols = symbol->next;
	return symbol;
}

/* Nobody may use it any more. */
static void symbol_free(struct symbol *symbol)
{
	struct binding *binding = atomic_exchange(&symbol->bindings, NULL), *next;

	for (; binding; binding = next) {
		next = binding->next;
		free(binding);
	}
	table_remove(&register_table, symbol->host, symbol);
	atomic_store(&symbol->kernel, NULL);
	symbol->next = registry.free_symbols;
	registry.free_symbols = symbol;
}

static bool symbol_add(
	struct binary *binary, const void *host, const char *name, enum symbol_kind kind)
{
	struct symbol *symbol;
	bool added = false;

	pthread_mutex_lock(&registry.lock);
	symbol = symbol_new();
	if (symbol) {
		symbol->host = host;
		symbol->name = name;
		symbol->binary = binary;
		symbol->kind = kind;
		atomic_store(&symbol->kernel, kind == SYMBOL_HANDLE ? (CUkernel)host : NULL);
		added = table_add(&register_table, host, symbol);
		if (added && binary) {
			symbol->next = binary->symbols;
			binary->symbols = symbol;
		} else if (!added) {
			symbol->next = registry.free_symbols;
			registry.free_symbols = symbol;
		}
	}
	pthread_mutex_unlock(&registry.lock);
	return added;
}

/* Asked for before a kernel is, managed variables are one for all devices. */
static void binary_share(const struct binary *binary, CUlibrary library)
{
	const struct symbol *s = binary->symbols;
	CUdeviceptr address;
	size_t bytes;
	int count;

	while (s && s->kind != SYMBOL_MANAGED)
		s = s->next;
	if (s && !cuDeviceGetCount(&count) && count > 1)
		(void)cuLibraryGetManaged(&address, &bytes, library, s->name);
}

static cudaError_t binary_load(struct binary *binary, CUlibrary *library)
{
	CUlibraryOption stays = CU_LIBRARY_BINARY_IS_PRESERVED;
	void *yes = (void *)1;
	CUresult status = CUDA_SUCCESS;

	*library = atomic_load(&binary->library);
	if (*library)
		return cudaSuccess;
	if (!binary->wrapper)
		return cudaErrorInvalidKernelImage;

	pthread_mutex_lock(&binary->lock);
	*library = atomic_load(&binary->library);
	if (!*library) {
		status = cuLibraryLoadData(
			library, binary->wrapper, NULL, NULL, 0, &stays, &yes, 1);
		if (status == CUDA_SUCCESS) {
			binary_share(binary, *library);
			atomic_store(&binary->library, *library);
		}
	}
	pthread_mutex_unlock(&binary->lock);
	return runtime_status(status);
}

static cudaError_t load_kernel(struct symbol *symbol, CUkernel *kernel)
{
	CUlibrary library;
	CUresult status;
	cudaError_t error;

	*kernel = atomic_load_explicit(&symbol->kernel, memory_order_acquire);
	if (*kernel)
		return cudaSuccess;
	if (symbol->kind != SYMBOL_KERNEL)
		return cudaErrorInvalidDeviceFunction;
	error = binary_load(symbol->binary, &library);
	if (error)
		return error;

	/* Two threads may both ask; they get the same kernel. */
	status = cuLibraryGetKernel(kernel, library, symbol->name);
	if (status == CUDA_ERROR_NOT_FOUND)
		return cudaErrorInvalidDeviceFunction;
	if (status != CUDA_SUCCESS)
		return runtime_status(status);
	atomic_store_explicit(&symbol->kernel, *kernel, memory_order_release);
	return cudaSuccess;
}

cudaError_t register_bind(struct symbol *symbol, CUfunction *function)
{
	struct binding *binding;
	CUkernel kernel;
	CUresult status;
	cudaError_t error;

	if (symbol->kind == SYMBOL_FUNCTION) {
		*function = (CUfunction)symbol->host;
		return cudaSuccess;
	}
	error = load_kernel(symbol, &kernel);
	if (error)
		return error;
	status = cuKernelGetFunction(function, kernel);
	if (status == CUDA_ERROR_NOT_FOUND)
		return cudaErrorInvalidDeviceFunction;
	if (status != CUDA_SUCCESS)
		return runtime_status(status);

	/* Without memory it works as well, only slower. */
	binding = malloc(sizeof(*binding));
	if (!binding)
		return cudaSuccess;
	binding->context = runtime_thread.bound;
	binding->generation = runtime_thread.generation;
	binding->function = *function;
	binding->next = atomic_load(&symbol->bindings);
	while (!atomic_compare_exchange_weak(&symbol->bindings, &binding->next, binding))
		;
	return cudaSuccess;
}

static bool symbol_has(void *value, void *function)
{
	struct symbol *symbol = value;

	for (const struct binding *b = atomic_load(&symbol->bindings); b; b = b->next)
		if (b->function == function)
			return true;
	return false;
}

const void *register_host(CUfunction function)
{
	const struct symbol *symbol = table_search(&register_table, symbol_has, function);

	return symbol ? symbol->host : NULL;
}

cudaError_t register_kernel(const void *func, CUkernel *kernel)
{
	struct symbol *symbol = table_find(&register_table, func);

	return symbol ? load_kernel(symbol, kernel) : cudaErrorInvalidDeviceFunction;
}

cudaError_t register_variable(const void *shadow, CUdeviceptr *address, size_t *bytes)
{
	struct symbol *symbol = table_find(&register_table, shadow);
	CUlibrary library;
	CUresult status;
	cudaError_t error;

	if (!symbol || symbol->kind != SYMBOL_VARIABLE)
		return cudaErrorInvalidSymbol;
	error = binary_load(symbol->binary, &library);
	if (error)
		return error;
	/* Asked each time: the address is the current context's. */
	status = cuLibraryGetGlobal(address, bytes, library, symbol->name);
	return status == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : runtime_status(status);
}

bool register_handle(const void *handle, enum symbol_kind kind)
{
	return table_find(&register_table, handle) || symbol_add(NULL, handle, NULL, kind);
}

void register_forget(const void *handle)
{
	struct symbol *symbol;

	pthread_mutex_lock(&registry.lock);
	symbol = table_find(&register_table, handle);
	if (symbol && !symbol->binary)
		symbol_free(symbol);
	pthread_mutex_unlock(&registry.lock);
}

/* ---- The entry points that nvcc's and clang's code calls ---- */

void **hand___cudaRegisterFatBinary(void *fatCubin)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary)
		return NULL;
	if (fatCubin && *(const int *)fatCubin == BINARY_MAGIC)
		binary->wrapper = fatCubin;
	pthread_mutex_init(&binary->lock, NULL);
	lock_order_rank(&binary->lock, LOCK_BINARY, "binary->lock");
	return (void **)binary;
}

void hand___cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
	(void)fatCubinHandle;
}

void hand___cudaUnregisterFatBinary(void **fatCubinHandle)
{
	struct binary *binary = (struct binary *)fatCubinHandle;
	struct symbol *symbol, *next;
	CUlibrary library;

	if (!binary)
		return;
	pthread_mutex_lock(&registry.lock);
	for (symbol = binary->symbols; symbol; symbol = next) {
		next = symbol->next;
		symbol_free(symbol);
	}
	pthread_mutex_unlock(&registry.lock);

	library = atomic_load(&binary->library);
	if (library) {
		struct trace_call own;

		/* At exit the driver may be gone already. */
		runtime_own_enter(&own);
		(void)cuLibraryUnload(library);
		runtime_own_leave(&own);
	}
	pthread_mutex_destroy(&binary->lock);
	free(binary);
}

void hand___cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
	const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim,
	dim3 *gDim, int *wSize)
{
	(void)deviceFun, (void)thread_limit, (void)tid, (void)bid, (void)bDim, (void)gDim;
	(void)wSize;
	if (fatCubinHandle)
		symbol_add((struct binary *)fatCubinHandle, hostFun, deviceName, SYMBOL_KERNEL);
}

void hand___cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
	const char *deviceName, int ext, size_t size, int constant, int global)
{
	(void)deviceAddress, (void)ext, (void)size, (void)constant, (void)global;
	if (fatCubinHandle)
		symbol_add(
			(struct binary *)fatCubinHandle, hostVar, deviceName, SYMBOL_VARIABLE);
}

void hand___cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress,
	char *deviceAddress, const char *deviceName, int ext, size_t size, int constant,
	int global)
{
	(void)deviceAddress, (void)ext, (void)size, (void)constant, (void)global;
	if (fatCubinHandle)
		symbol_add((struct binary *)fatCubinHandle, hostVarPtrAddress, deviceName,
			SYMBOL_MANAGED);
}

/* Host variables seen from the device (-host-managed builds) and unified function tables: a
 * program that uses one finds it unset; nothing else is asked of us here. */
void hand___cudaRegisterHostVar(
	void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size)
{
	(void)fatCubinHandle, (void)deviceName, (void)hostVar, (void)size;
}

void hand___cudaRegisterUnifiedTable(void **fatCubinHandle, void *table)
{
	(void)fatCubinHandle, (void)table;
}

/* The program's pointer to a __managed__ variable gets its value. The program names the
 * variable by that value, too, where the API takes a symbol. */
static cudaError_t managed_bind(struct symbol *symbol)
{
	CUdeviceptr address;
	CUlibrary library;
	size_t bytes;
	cudaError_t error = binary_load(symbol->binary, &library);

	if (!error)
		error = runtime_status(
			cuLibraryGetManaged(&address, &bytes, library, symbol->name));
	if (error)
		return error;
	*(void **)symbol->host = (void *)address;
	if (!table_find(&register_table, (void *)address) &&
		!symbol_add(symbol->binary, (void *)address, symbol->name, SYMBOL_VARIABLE))
		return cudaErrorMemoryAllocation;
	return cudaSuccess;
}

/* Called by programs with __managed__ variables before they touch one: each source of theirs
 * until it succeeds. */
char hand___cudaInitModule(void **fatCubinHandle)
{
	struct binary *binary = (struct binary *)fatCubinHandle;
	cudaError_t error = runtime_enter();

	/* What managed_bind adds comes before what there is. */
	for (struct symbol *s = binary ? binary->symbols : NULL; s && !error; s = s->next)
		if (s->kind == SYMBOL_MANAGED)
			error = managed_bind(s);
	return !error;
}

/* Only nvcc's stubs call this, once for each kernel, and hand what they got to
 * __cudaLaunchKernel only: so it is the registered symbol itself. Nothing is loaded yet, and
 * what goes wrong then is told by the launch. */
cudaError_t hand___cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	if (!kernel)
		return cudaErrorInvalidValue;
	*kernel = (cudaKernel_t)table_find(&register_table, func);
	return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t hand_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
	cudaError_t error;
	bool borrowed;

	if (!kernelPtr)
		return cudaErrorInvalidValue;
	error = runtime_borrow(&borrowed);
	if (!error)
		error = register_kernel(entryFuncAddr, (CUkernel *)kernelPtr);
	runtime_return(borrowed);
	if (!error && !register_handle(*kernelPtr, SYMBOL_HANDLE))
		error = cudaErrorMemoryAllocation;
	return error;
}

cudaError_t hand_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
	cudaFunction_t found;
	cudaError_t error = runtime_enter();

	if (!functionPtr)
		functionPtr = &found; /* natively no error */
	if (!error)
		error = register_function(symbolPtr, (CUfunction *)functionPtr);
	if (error == cudaErrorInvalidResourceHandle)
		error = cudaErrorInvalidDeviceFunction; /* of this call alone, natively */
	if (!error && !register_handle(*functionPtr, SYMBOL_FUNCTION))
		error = cudaErrorMemoryAllocation;
	return error;
}

unsigned hand___cudaPushCallConfiguration(
	dim3 gridDim, dim3 blockDim, size_t sharedMem, cudaStream_t stream)
{
	struct runtime_thread *thread = &runtime_thread;
	struct runtime_config *config = &thread->configs[thread->depth++ % RUNTIME_CONFIGS];

	config->grid = gridDim;
	config->block = blockDim;
	config->shared = sharedMem;
	config->stream = stream;
	return 0;
}

cudaError_t hand___cudaPopCallConfiguration(
	dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream)
{
	struct runtime_thread *thread = &runtime_thread;
	struct runtime_config *config;

	if (!thread->depth)
		return cudaErrorMissingConfiguration;
	config = &thread->configs[--thread->depth % RUNTIME_CONFIGS];
	*gridDim = config->grid;
	*blockDim = config->block;
	*sharedMem = config->shared;
	*(cudaStream_t *)stream = config->stream;
	return cudaSuccess;
}
