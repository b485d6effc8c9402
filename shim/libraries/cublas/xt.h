/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt: products of matrices that lie on the host (or on a device) and are too large, or
 * not meant, to be copied by the program.  They are cut into square tiles; a tile is copied to
 * a device once, worked on by the functions of cuBLAS there, and what becomes the result is
 * copied back.
 *
 * A call works on the handle's devices in turn, panel by panel of the result (a column of
 * tiles, or a row of them where columns depend on each other), and returns when the result is
 * there.
 */
#ifndef VCUDA_SHIM_CUBLAS_XT_H
#define VCUDA_SHIM_CUBLAS_XT_H

#include <stdbool.h>

#include "shim/libraries/cublas/forms.h"

#define XT_DEVICES 64 /* of one handle */
#define XT_TILE 2048  /* of a new handle: rows and columns of a tile */

struct xt_device {
	CUdevice device;
	CUcontext context; /* its primary one */
	cublasHandle_t blas;
	CUstream work, back; /* results are copied by the second */
	CUevent done[2];     /* of the last two results */
};

struct cublasXtContext {
	int devices, tile, pinning;
	struct xt_device device[XT_DEVICES];
};

/* A matrix of the program as it is stored. */
struct xt_matrix {
	const void *at;
	size_t rows, cols, ld; /* elements */
	bool packed;	       /* one half of it, by columns */
	int uplo;
};

/* A tile on a device; its columns lie without gaps. */
struct xt_tile {
	CUdeviceptr at;
	int rows, cols;
};

/* A call.  The first failure stays in `status`, and nothing is begun after it. */
struct xt_run {
	struct cublasXtContext *xt;
	enum xt_type type;
	size_t each; /* bytes of an element */
	cublasStatus_t status;
	struct xt_device *on; /* the panel's */
	bool entered;	      /* its context is on the thread's stack */
	struct xt_kept *kept[XT_DEVICES];
	uint64_t step;
	struct xt_back { /* a result that is to be copied back */
		const struct xt_matrix *to;
		size_t i, j;
		struct xt_tile tile;
	} back[XT_DEVICES];
	unsigned turn[XT_DEVICES]; /* which event is the last one's */
};

/* Begins a call; false: `status` says why not, and there is nothing to end. */
bool xt_begin(struct xt_run *run, enum xt_type type, cublasXtHandle_t handle);
/* Waits for all devices, frees the tiles; the call's status. */
cublasStatus_t xt_end(struct xt_run *run);
/* The device whose turn panel number PANEL is becomes current. */
void xt_panel(struct xt_run *run, size_t panel);
/* What comes now uses these tiles and no others: the rest may make room. */
void xt_step(struct xt_run *run);
/* Tile (i, j) of a matrix, on the panel's device; with what the program has there, if READ. */
struct xt_tile xt_tile(
	struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j, bool read);
/* It is a result now: goes back to the program, behind what comes next. */
void xt_result(
	struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j, struct xt_tile tile);
/* Tiles in so many rows or columns. */
size_t xt_tiles(const struct xt_run *run, size_t elements);
/* Rows, or columns, of tile I of so many. */
int xt_part(const struct xt_run *run, size_t elements, size_t i);

/* Scalars of a type, of which the real part comes first. */
struct xt_scalar {
	_Alignas(16) unsigned char bytes[16];
};
struct xt_scalar xt_number(enum xt_type type, double value);
/* What the program has at AT: a number of the type, or if REAL its real part alone. */
struct xt_scalar xt_given(enum xt_type type, const void *at, bool real);
struct xt_scalar xt_conjugate(enum xt_type type, struct xt_scalar value);
bool xt_is_zero(enum xt_type type, struct xt_scalar value);

/* The functions of cuBLAS for tiles.  What went wrong is the run's status. */
void xt_multiply(struct xt_run *run, int op_a, int op_b, const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b, const struct xt_scalar *beta, struct xt_tile c);
void xt_update(struct xt_run *run, enum xt_rank what, int uplo, int op,
	const struct xt_scalar *alpha, struct xt_tile a, struct xt_tile b,
	const struct xt_scalar *beta, struct xt_tile c);
void xt_mirrored(struct xt_run *run, bool hermitian, int side, int uplo,
	const struct xt_scalar *alpha, struct xt_tile a, struct xt_tile b,
	const struct xt_scalar *beta, struct xt_tile c);
void xt_triangle(struct xt_run *run, const int how[4], const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b, struct xt_tile c);
void xt_solve(struct xt_run *run, const int how[4], const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b);

#endif
