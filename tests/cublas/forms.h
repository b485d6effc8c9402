/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs share that try one function in all of its types: the functions of the types
 * S, D, C and Z in a table, sizes and steps at the edges, vectors with steps of either sign.
 */
#ifndef TESTS_CUBLAS_FORMS_H
#define TESTS_CUBLAS_FORMS_H

#include "tests/cublas/check.h"

#define COUNT(LIST) ((int)(sizeof(LIST) / sizeof(*(LIST))))
/* A function with its types' pointers as one with void pointers. */
#define AS(FORM, NAME) (FORM *)(void (*)(void))(NAME)
#define FORMS(FORM, WHAT)                                                                      \
	{AS(FORM, cublasS##WHAT), AS(FORM, cublasD##WHAT), AS(FORM, cublasC##WHAT),            \
		AS(FORM, cublasZ##WHAT)}

static const cudaDataType every_type[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

static inline bool is_complex(cudaDataType type)
{
	return type == CUDA_C_32F || type == CUDA_C_64F;
}

static inline cudaDataType real_of(cudaDataType type)
{
	return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}

/* N numbers, so many elements apart; those between are not to change. */
static inline struct matrix vector_new(cudaDataType type, int n, int step)
{
	return matrix_new(type, abs(step), n > 0 ? n : 1);
}

static inline size_t vector_at(int n, int i, int step)
{
	return (size_t)(step < 0 ? (n - 1 - i) * -step : i * step);
}

static inline double complex vector_get(const struct matrix *v, int n, int i, int step)
{
	return get_at(v->host, v->type, vector_at(n, i, step));
}

static inline void vector_put(struct matrix *v, int n, int i, int step, double complex value)
{
	put_at(v->host, v->type, vector_at(n, i, step), value);
}

/* A value of that type on the host and on the device; which one the mode wants. */
struct scalar {
	double complex value;
	_Alignas(16) char host[16];
	void *device;
};

static inline struct scalar scalar_new(cudaDataType type, double complex value)
{
	struct scalar s = {.value = is_complex(type) ? value : creal(value)};

	put_at(s.host, type, 0, s.value);
	CUDA(cudaMalloc(&s.device, sizeof(s.host)));
	CUDA(cudaMemcpy(s.device, s.host, sizeof(s.host), cudaMemcpyHostToDevice));
	return s;
}

static inline const void *scalar_of(const struct scalar *s, cublasHandle_t handle)
{
	cublasPointerMode_t mode;

	BLAS(cublasGetPointerMode_v2(handle, &mode));
	return mode == CUBLAS_POINTER_MODE_DEVICE ? s->device : s->host;
}

static inline void scalar_free(struct scalar *s)
{
	CUDA(cudaFree(s->device));
}

/* What the host holds goes to the device. */
static inline void matrix_send(struct matrix *m)
{
	CUDA(cudaMemcpy(m->device, m->host, m->bytes, cudaMemcpyHostToDevice));
}

#endif
