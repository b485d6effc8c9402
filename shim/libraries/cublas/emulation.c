/* SPDX-License-Identifier: Apache-2.0
 *
 * How a handle emulates wide floats with narrower ones: kept here for the getters, and told to
 * the agent's library when it is set, which says whether it knows such a thing.
 */
#include "shim/libraries/cublas/forms.h"
#include "shim/generated/cublas_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/libraries/cublas/cublas.h"

cublasStatus_t cublas_emulation_set(
	cublasHandle_t handle, enum cublas_emulation which, uint64_t value)
{
	struct cublas_handle *h = cublas_find(handle);
	struct wire_vcudaCublasEmulation body = {.which = which, .value = value};
	struct wire_vcudaCublasEmulation_reply reply = {0};
	CUresult status;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	body.handle = h->number;
	status = front_ask(OP_vcudaCublasEmulation, &body, sizeof(body), &reply, sizeof(reply));
	if (status || reply.status)
		return status ? cublas_status(status) : (cublasStatus_t)reply.status;
	h->emulation[which] = value;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(
	cublasHandle_t handle, enum cublas_emulation which, const void *to, uint64_t *value)
{
	const struct cublas_handle *h = cublas_find(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!to)
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = h->emulation[which];
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_emulation_number(
	cublasHandle_t handle, enum cublas_emulation which, int *number)
{
	uint64_t value;
	cublasStatus_t status = get(handle, which, number, &value);

	if (!status)
		*number = (int32_t)value;
	return status;
}

cublasStatus_t hand_cublasGetFixedPointEmulationMantissaBitCountPointer(
	cublasHandle_t handle, int **mantissaBitCount)
{
	uint64_t value;
	cublasStatus_t status =
		get(handle, CUBLAS_EMULATION_BIT_COUNT, mantissaBitCount, &value);

	if (!status)
		*mantissaBitCount = (int *)(uintptr_t)value;
	return status;
}
