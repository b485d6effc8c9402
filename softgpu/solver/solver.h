/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER on LAPACK, whose functions are those of OpenBLAS.  A call becomes a task that runs
 * as a host function in its stream, so it is ordered with kernels and copies; what a call
 * writes to the host is waited for.
 *
 * Each call has the types S, D, C and Z.  LAPACK's functions take all that they take by
 * address, so one table of four functions, one task and one entry for each letter are a call.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_SOLVER_H
#define VCUDA_SOFTGPU_SOLVER_SOLVER_H

#include <cuda.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOLVER_EXPORT __attribute__((visibility("default")))

/* What was set for a 64-bit call; NULL: nothing, as natively. Each function has one algorithm
 * here, so no call looks at it. */
#define SOLVER_PARAMS __attribute__((unused)) const void *params

/* A function of the library's, declared before it is defined. */
#define CALL(NAME, ...)                                                                        \
	SOLVER_EXPORT int NAME(__VA_ARGS__);                                                   \
	SOLVER_EXPORT int NAME(__VA_ARGS__)

/* cusolverStatus_t */
enum {
	SOLVER_SUCCESS = 0,
	SOLVER_NOT_INITIALIZED = 1,
	SOLVER_ALLOC_FAILED = 2,
	SOLVER_INVALID_VALUE = 3,
	SOLVER_EXECUTION_FAILED = 6,
	SOLVER_INTERNAL_ERROR = 7,
	SOLVER_NOT_SUPPORTED = 9,
	SOLVER_IRS_PARAMS_NOT_INITIALIZED = 12,
	SOLVER_IRS_PARAMS_INVALID = 13,
	SOLVER_IRS_PARAMS_INVALID_PREC = 14,
	SOLVER_IRS_PARAMS_INVALID_REFINE = 15,
	SOLVER_IRS_PARAMS_INVALID_MAXITER = 16,
	SOLVER_IRS_NOT_SUPPORTED = 21,
	SOLVER_IRS_INFOS_NOT_INITIALIZED = 25,
};

/* The letters, as tables are indexed by them. */
enum solver_type { SOLVER_S, SOLVER_D, SOLVER_C, SOLVER_Z, SOLVER_NO_TYPE };
#define EACH_TYPE(M) M(S) M(D) M(C) M(Z)

enum { SOLVER_LEFT = 0, SOLVER_RIGHT = 1 };
enum { SOLVER_LOWER = 0, SOLVER_UPPER = 1 };

#define SOLVER_USES 10 /* areas of memory that a task names */

struct solver_handle {
	CUstream stream;
	int deterministic, math;
	int strategy, special_values, mantissa_control, max_bits, bit_offset; /* of emulation */
	_Atomic bool failed;   /* a task met memory that is not the device's */
	_Atomic unsigned refs; /* the program's, and each task's */
};

/* Memory of one element each `stride` apart, for a batch of matrices. */
struct solver_matrix {
	void *at;
	int ld;
	int64_t stride; /* elements from one matrix of a batch to the next */
};

struct solver_task {
	void (*run)(struct solver_task *task);
	_Atomic unsigned owners; /* its stream or graph, and who waits for it */
	struct solver_handle *handle;
	CUcontext context;
	enum solver_type type;
	int m, n, k, batch;
	int kind, first, last; /* itype, range, …, as each call says */
	char job, job2, side, uplo, op, diag;
	bool flag, wide; /* `wide`: pivots have 64 bits */
	double low, high;
	struct solver_matrix a, b, c, d;
	void *w, *w2; /* vectors */
	void *pivots;
	int *info;
	int result, result2; /* left for who waits */
	double number;
	double *numbers;	      /* of the host, one for each matrix */
	struct solver_jacobi *jacobi; /* NULL: none; jacobi.h */
	struct {
		const void *at;
		uint64_t bytes;
	} uses[SOLVER_USES];
	unsigned used;
	bool too_much; /* the size of an area has no number */
	void *work;
	uint64_t work_bytes;
};

/* ---- task.c ---- */

/* A task of the handle, or NULL with *status. */
struct solver_task *solver_new(struct solver_handle *handle, void (*run)(struct solver_task *),
	enum solver_type type, int *status);
/* The task reads or writes so many elements there: it fails where the device does not have
 * them.  Nothing needs to be there for 0 elements. */
void solver_uses(struct solver_task *task, const void *at, uint64_t elements, unsigned size);
/* A matrix of the task's type. */
struct solver_matrix solver_matrix(
	struct solver_task *task, const void *at, int64_t rows, int64_t cols, int64_t ld);
/* A batch of such. */
struct solver_matrix solver_matrices(struct solver_task *task, const void *at, int64_t rows,
	int64_t cols, int64_t ld, int64_t stride, int64_t batch);
/* The workspace that the program gave: overwritten when the task runs. */
void solver_work(struct solver_task *task, void *at, uint64_t bytes);
/* Puts it into the stream, which drops it. */
int solver_submit(struct solver_task *task);
/* The same, waited for; the caller reads what it left and drops it, where 0 is returned. */
int solver_finish(struct solver_task *task);
void solver_drop(struct solver_task *task);
/* Memory of the task's own, zeroed; without it the handle fails.  free() takes it. */
void *solver_scratch(struct solver_task *task, uint64_t elements, unsigned size);
/* For a running task: whether the device has it. Fails the handle where not. */
bool solver_reaches(struct solver_task *task, const void *at, uint64_t elements, unsigned size);
/* What LAPACK's query left, the number of elements of its workspace. */
int solver_lapack_work(enum solver_type type, const void *query);

void solver_handle_drop(struct solver_handle *handle);

/* ---- sizes ---- */

static inline unsigned solver_real(enum solver_type type)
{
	return type == SOLVER_S || type == SOLVER_C ? 4 : 8;
}
static inline bool solver_complex(enum solver_type type)
{
	return type == SOLVER_C || type == SOLVER_Z;
}
static inline unsigned solver_size(enum solver_type type)
{
	return solver_real(type) << solver_complex(type);
}
static inline enum solver_type solver_real_type(enum solver_type type)
{
	return type == SOLVER_S || type == SOLVER_C ? SOLVER_S : SOLVER_D;
}
static inline int64_t solver_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}
static inline int64_t solver_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
/* Whether a matrix of so many rows and columns may have this leading dimension. */
static inline bool solver_shape(int64_t rows, int64_t cols, int64_t ld)
{
	return rows >= 0 && cols >= 0 && rows <= INT_MAX && cols <= INT_MAX && ld <= INT_MAX &&
	       ld >= solver_max(1, rows);
}
/* Column J of a matrix of the task's type. */
static inline void *solver_at(const struct solver_task *t, void *base, int64_t elements)
{
	return (char *)base + elements * (int64_t)solver_size(t->type);
}

/* ---- what calls give as enumerations, as LAPACK's letters; 0: no such one ---- */
char solver_uplo(int uplo);
char solver_side(int side);
char solver_op(int op, enum solver_type type); /* of a real matrix, T is C */
char solver_diag(int diag);
char solver_vectors(int jobz);
/* cudaDataType; SOLVER_NO_TYPE: not one of the four. */
enum solver_type solver_type_of(int data_type);

/* ---- workspaces ---- */

/* All that a call here needs of a program's workspace, in elements: LAPACK's own is allocated.
 * A size that natively depends on the shape does so here, too. */
static inline int64_t solver_need(int64_t rows, int64_t cols)
{
	return 32 * solver_max(1, solver_max(rows, cols));
}
/* The ends of …_bufferSize: elements as an int, bytes on the device and none on the host. */
int solver_tell(struct solver_handle *handle, bool valid, int64_t elements, int *lwork);
int solver_tell_bytes(struct solver_handle *handle, bool valid, int64_t elements,
	enum solver_type type, size_t *device, size_t *host);

/* The real number I of an array of the task's real type; a complex one is two. */
double solver_number(const struct solver_task *task, const void *array, int64_t i);
void solver_set_number(const struct solver_task *task, void *array, int64_t i, double value);

/* ---- tables of LAPACK's functions ----
 * LAPACK4(potrf, …) declares spotrf_, dpotrf_, cpotrf_ and zpotrf_ and the table lapack_potrf;
 * LAPACK22(orgqr, ungqr, …) takes two real ones and two complex ones. A function's last
 * arguments are the lengths of its texts, as Fortran passes them. */
#define LAPACK22(REAL, COMPLEX, ...)                                                           \
	void s##REAL##_(__VA_ARGS__);                                                          \
	void d##REAL##_(__VA_ARGS__);                                                          \
	void c##COMPLEX##_(__VA_ARGS__);                                                       \
	void z##COMPLEX##_(__VA_ARGS__);                                                       \
	static void (*const lapack_##REAL[])(__VA_ARGS__) = {                                  \
		s##REAL##_, d##REAL##_, c##COMPLEX##_, z##COMPLEX##_}
#define LAPACK4(NAME, ...) LAPACK22(NAME, NAME, __VA_ARGS__)
/* One of each half, where real and complex ones take different arguments. */
#define LAPACK_REAL(NAME, ...)                                                                 \
	void s##NAME##_(__VA_ARGS__);                                                          \
	void d##NAME##_(__VA_ARGS__);                                                          \
	static void (*const lapack_real_##NAME[])(__VA_ARGS__) = {s##NAME##_, d##NAME##_}
#define LAPACK_COMPLEX(NAME, ...)                                                              \
	void c##NAME##_(__VA_ARGS__);                                                          \
	void z##NAME##_(__VA_ARGS__);                                                          \
	static void (*const lapack_complex_##NAME[])(__VA_ARGS__) = {c##NAME##_, z##NAME##_}

#endif
