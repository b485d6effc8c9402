/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans on several GPUs, above plans on one: each GPU has a part of the data and plans of its
 * own for what it transforms of it.  How a plan is split:
 *
 *   batches  each GPU transforms some of them, whole.
 *   slabs    one transform in 2 or 3 dimensions. In natural order each GPU has planes of x and
 *            transforms these; then all exchange what they have of each other's y, and
 *            transform along x. So the result is split by y ("shuffled"), and the way back
 *            is the same from behind.
 *   line     one transform in 1 dimension: the first GPU gathers it, transforms it, and hands
 *            out the result in strings, the order of NVIDIA's.
 *
 * A part lies packed in its GPU's memory.  Where its bytes belong in an array of the whole in
 * natural order, blocks say.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUFFT_MULTI_H
#define VCUDA_SHIM_LIBRARIES_CUFFT_MULTI_H

#include "shim/libraries/cufft/plan.h"

#define FFT_GPUS 16 /* of a plan, as NVIDIA's most */

enum fft_split { FFT_BATCHES, FFT_SLABS, FFT_LINE };
enum fft_kind { FFT_COMPLEX, FFT_FORWARD_REAL, FFT_INVERSE_REAL };

struct fft_gpu {
	int device;
	CUcontext context; /* the primary one */
	/* Batches: the transform. Slabs: that of planes, and that along x. 0: none. */
	cufftHandle plan[2];
	CUdeviceptr area; /* first the exchanged part, then the plans' own */
	bool own_area;
	size_t buffer_bytes, area_bytes; /* the first of these, and all */
};

/* How the batches of a side lie in memory, in bytes. */
struct fft_side {
	size_t dist;   /* from one to the next */
	size_t extent; /* of one */
};

struct fft_multi {
	int count;
	enum fft_split split;
	enum fft_kind kind;
	size_t each; /* bytes of a complex number */
	/* Slabs and a line: what there is of complex numbers. Real ones lie padded in their
	 * place. */
	size_t x, y, z;
	size_t batch;
	struct fft_side side[2]; /* in, out */
	struct fft_side in_place;
	cufftXt1dFactors factors;
	struct fft_gpu gpu[FFT_GPUS];
};

/* Rows of a part: row r lies at `at + r * width` of it, and at `base + r * pitch` of the whole.
 */
struct fft_block {
	size_t at, base, pitch, width, rows;
};

/* ---- multi.c ---- */

/* Makes the plans of each GPU out of the whole's; BYTES: a work area for each. */
cufftResult fft_multi_make(
	struct plan *plan, const struct cufft_whole *content, const char *name, size_t *bytes);
/* How much they would need. */
cufftResult fft_multi_size(const struct plan *plan, const struct cufft_whole *content,
	const char *name, size_t *bytes);
void fft_multi_sizes(const struct plan *plan, size_t *bytes);
/* AREAS: of the program, one for each. */
void fft_multi_areas(const struct plan *plan, void **areas);
void fft_multi_end(struct plan *plan);

/* ---- multi_shape.c: what the content says of the split ---- */

/* The cufftType of a transform of that kind. */
int fft_type(const struct fft_multi *m, enum fft_kind kind);
/* How many of TOTAL the GPU has, from *FIRST on: the first ones have one more. */
size_t fft_share(const struct fft_multi *m, size_t total, int gpu, size_t *first);
/* Fills in all but the GPUs. */
cufftResult fft_multi_shape(struct fft_multi *m, const struct cufft_content *content);
/* The content of the GPU's plan I; false: it has none. */
bool fft_multi_part(const struct fft_multi *m, const struct cufft_whole *whole, int gpu, int i,
	struct cufft_whole *part);
/* Block I of the GPU's part in that format; false: there is no more. */
bool fft_block(const struct fft_multi *m, cufftXtSubFormat format, int gpu, size_t i,
	struct fft_block *b);
/* Whether a descriptor of the plan can have the format. */
bool fft_format(const struct fft_multi *m, cufftXtSubFormat format);
/* The same order under the name that it has in a transform in place. */
cufftXtSubFormat fft_order(const struct fft_multi *m, cufftXtSubFormat format);
size_t fft_part_bytes(const struct fft_multi *m, cufftXtSubFormat format, int gpu);

/* ---- multi_copy.c ---- */

/* Memory of a GPU's or, without a context, of the program's. */
struct fft_place {
	CUcontext context;
	uintptr_t at;
	size_t pitch;
};
CUresult fft_move(struct fft_place to, struct fft_place from, size_t width, size_t rows);
/* Between parts in natural order and in another one; part g of either lies at natural[g] and
 * other[g]. */
CUresult fft_exchange(const struct fft_multi *m, cufftXtSubFormat format, void *const *natural,
	void *const *other, bool to_natural);
/* The descriptor is of the plan's GPUs, in their order, and its parts are large enough. */
cufftResult fft_descriptor_check(const struct fft_multi *m, const cudaLibXtDesc *d);

#endif
