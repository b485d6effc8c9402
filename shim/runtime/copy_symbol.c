/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies to and from the program's variables, by their shadows in the host's code. A copy of
 * nothing looks at none of its arguments, as natively.
 */
#include "shim/runtime/copy.h"
#include "shim/runtime/forms.h"
#include "shim/runtime/register.h"

static cudaError_t symbol_address(const void *symbol, CUdeviceptr *base, size_t *size)
{
	return runtime_enter() ?: register_variable(symbol, base, size);
}

/* For a copy of COUNT bytes at OFFSET, which may neither stay on the host nor go the way
 * AWAY. */
cudaError_t copy_symbol(const void *symbol, size_t offset, size_t count,
	enum cudaMemcpyKind kind, enum cudaMemcpyKind away, void **address)
{
	CUdeviceptr base;
	size_t size;
	cudaError_t error = symbol_address(symbol, &base, &size);

	if (error)
		return error;
	if (offset > size || count > size - offset)
		return cudaErrorInvalidValue;
	*address = (void *)(base + offset);
	return kind == cudaMemcpyHostToHost || kind == away ? cudaErrorInvalidMemcpyDirection
							    : cudaSuccess;
}

/* The same for one that does not wait: its kind and its stream come before the variable's
 * bounds. */
static cudaError_t copy_symbol_async(const void *symbol, size_t offset, size_t count,
	enum cudaMemcpyKind kind, enum cudaMemcpyKind away, cudaStream_t stream, void **address)
{
	CUdeviceptr base;
	size_t size;
	cudaError_t error = symbol_address(symbol, &base, &size);

	if (error)
		return error;
	if ((unsigned)kind > cudaMemcpyDefault || kind == cudaMemcpyHostToHost || kind == away)
		return cudaErrorInvalidMemcpyDirection;
	*address = (void *)(base + offset);
	if (offset > size || count > size - offset)
		return copy_captured(stream) ?: cudaErrorInvalidValue;
	return cudaSuccess;
}

cudaError_t hand_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	void *address;
	cudaError_t error;

	if (!count)
		return cudaSuccess;
	error = copy_symbol(symbol, offset, count, kind, cudaMemcpyDeviceToHost, &address);
	return error ? error : runtime_copy(address, src, count, kind, null_stream);
}

cudaError_t hand_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *address;
	cudaError_t error;

	if (!count)
		return cudaSuccess;
	error = copy_symbol_async(
		symbol, offset, count, kind, cudaMemcpyDeviceToHost, stream, &address);
	return error ? error : runtime_copy_async(address, src, count, kind, stream);
}

cudaError_t hand_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	void *address;
	cudaError_t error;

	if (!count)
		return cudaSuccess;
	error = copy_symbol(symbol, offset, count, kind, cudaMemcpyHostToDevice, &address);
	return error ? error : runtime_copy(dst, address, count, kind, null_stream);
}

cudaError_t hand_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	void *address;
	cudaError_t error;

	if (!count)
		return cudaSuccess;
	error = copy_symbol_async(
		symbol, offset, count, kind, cudaMemcpyHostToDevice, stream, &address);
	return error ? error : runtime_copy_async(dst, address, count, kind, stream);
}

/* NULL for the answer is looked at after the symbol. */
cudaError_t hand_cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
	CUdeviceptr base;
	size_t size;
	cudaError_t error = symbol_address(symbol, &base, &size);

	if (error || !devPtr)
		return error ? error : cudaErrorInvalidValue;
	*devPtr = (void *)base;
	return cudaSuccess;
}

cudaError_t hand_cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr base;
	size_t bytes;
	cudaError_t error = symbol_address(symbol, &base, &bytes);

	if (error || !size)
		return error ? error : cudaErrorInvalidValue;
	*size = bytes;
	return cudaSuccess;
}
