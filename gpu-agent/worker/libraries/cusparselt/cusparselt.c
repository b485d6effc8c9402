/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of cuSPARSELt on the worker, and the calls that more is to do for than to call.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/libraries/cusparselt/cusparselt.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cusparselt_wire.h"

static struct sparselt_handle *handles; /* the worker's */

void cusparselt_warm(const struct worker *w, uint32_t major)
{
	plain_warm(w, &cusparselt_plain, major);
}

void cusparselt_forget(uint16_t context)
{
	for (struct sparselt_handle *h = handles; h; h = h->next)
		if (h->context == context)
			sparselt_drop_all(h);
}

CUresult serve_cusparseLtInit(struct worker *w, struct request *r)
{
	const struct wire_cusparseLtInit *body = (const void *)r->body;
	const struct cusparselt_library *l = plain_open(w, r, &cusparselt_plain, body->major);
	struct sparselt_handle *h;
	int status;

	if (!l)
		return r->refused;
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = l->cusparseLtInit((void *)&h->own);
	if (status) {
		free(h);
		return plain_bind(w, r, &cusparselt_plain, l, status, NULL, 0, false);
	}
	h->library = l;
	h->context = r->header.context;
	h->next = handles;
	handles = h;
	return plain_bind(w, r, &cusparselt_plain, l, status, h, body->state.handle, false);
}

int cusparselt_destroy(const void *functions, void *handle)
{
	const struct cusparselt_library *l = functions;
	struct sparselt_handle *h = handle, **at = &handles;
	int status;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	sparselt_drop_all(h);
	status = l->cusparseLtDestroy((const void *)&h->own);
	free(h);
	return status;
}

/* ---- what comes ---- */

/* An address stands in the varying part; the key has how it is aligned. */
static void get_addresses(struct library_frame *f, struct cusparselt_product *p)
{
	for (int i = 0; i < CUSPARSELT_PRODUCT_ATTRIBUTES; i++) {
		const uint64_t *at;

		if (!cusparselt_is_address(i) || !p->value[i])
			continue;
		at = library_get_bytes(f, sizeof(*at));
		p->value[i] = at ? *at : 0;
	}
}

void *cusparselt_get_descriptor(struct library_frame *f, uint32_t kind)
{
	struct cusparselt_plan content;
	uint32_t bytes = kind == CUSPARSELT_ITEM_MATRIX	   ? sizeof(struct cusparselt_matrix)
			 : kind == CUSPARSELT_ITEM_PRODUCT ? sizeof(struct cusparselt_product)
							   : sizeof(content);
	struct sparselt_kept *kept;
	const uint32_t *words;
	int status;

	if (library_get_content(f, kind, bytes / 4, &words) != bytes / 4) {
		library_violated(f);
		return NULL;
	}
	memset(&content, 0, sizeof(content));
	memcpy(kind == CUSPARSELT_ITEM_MATRIX ? (void *)&content.product.matrix[0] : &content,
		words, bytes);
	if (kind != CUSPARSELT_ITEM_MATRIX) {
		get_addresses(f, &content.product);
		f->mode = cusparselt_mode(&content.product);
	}
	if (f->stopped)
		return NULL;
	kept = sparselt_keep(f->handle, kind, &content, &status);
	if (!kept) {
		library_refuse(f, status);
		return NULL;
	}
	return sparselt_object_in(kept);
}

/* ---- calls ---- */

/* Whether the library takes it. */
static int check(struct library_frame *f, uint32_t kind)
{
	library_get_descriptor(f, kind);
	return f->status;
}

int run_cusparseLtDenseDescriptorInit(struct library_frame *f)
{
	return check(f, CUSPARSELT_ITEM_MATRIX);
}

int run_cusparseLtStructuredDescriptorInit(struct library_frame *f)
{
	return check(f, CUSPARSELT_ITEM_MATRIX);
}

int run_cusparseLtMatmulDescriptorInit(struct library_frame *f)
{
	return check(f, CUSPARSELT_ITEM_PRODUCT);
}

int run_cusparseLtMatmulAlgSetAttribute(struct library_frame *f)
{
	return check(f, CUSPARSELT_ITEM_ALGORITHM);
}

int run_cusparseLtMatmulPlanInit(struct library_frame *f)
{
	return check(f, CUSPARSELT_ITEM_PLAN);
}

/* The value of an attribute, of 4 or 8 bytes. */
#define GET_ATTRIBUTE(NAME, TYPE, KIND)                                                        \
	int run_##NAME(struct library_frame *f)                                                \
	{                                                                                      \
		TYPE *descriptor = library_get_descriptor(f, KIND);                            \
		int attribute = (int)library_get_int(f);                                       \
		uint32_t bytes = library_get_int(f);                                           \
		void *to = library_get_out(f);                                                 \
                                                                                               \
		if (bytes != 4 && bytes != 8)                                                  \
			library_violated(f);                                                   \
		CALL(NAME, f->handle, descriptor, attribute, to, bytes);                       \
	}
GET_ATTRIBUTE(cusparseLtMatDescGetAttribute, cusparseLtMatDescriptor_t, CUSPARSELT_ITEM_MATRIX)
GET_ATTRIBUTE(
	cusparseLtMatmulDescGetAttribute, cusparseLtMatmulDescriptor_t, CUSPARSELT_ITEM_PRODUCT)
GET_ATTRIBUTE(cusparseLtMatmulAlgGetAttribute, cusparseLtMatmulAlgSelection_t,
	CUSPARSELT_ITEM_ALGORITHM)

/* The frame's plan and what is to be multiplied, handed to the frame's function. */
static int multiply(struct library_frame *f, cusparseLtMatmulPlan_t **plan)
{
	void *alpha, *a, *b, *beta, *c, *d, *workspace;
	CUstream stream = f->stream;

	*plan = library_get_descriptor(f, CUSPARSELT_ITEM_PLAN);
	alpha = library_get_placed(f, cusparselt_alpha(f->mode), false);
	a = library_get_device(f);
	b = library_get_device(f);
	beta = library_get_placed(f, cusparselt_beta(f->mode), false);
	c = library_get_device(f);
	d = library_get_device(f);
	workspace = library_get_device(f);
	CALL(cusparseLtMatmulSearch, f->handle, *plan, alpha, a, b, beta, c, d, workspace,
		&stream, 1);
}

int run_cusparseLtMatmul(struct library_frame *f)
{
	cusparseLtMatmulPlan_t *plan;

	return multiply(f, &plan);
}

/* What a search chooses, as far as the library has it. */
static const int searched[] = {CUSPARSELT_MATMUL_ALG_CONFIG_ID, CUSPARSELT_MATMUL_SPLIT_K,
	CUSPARSELT_MATMUL_SPLIT_K_MODE, CUSPARSELT_MATMUL_SPLIT_K_BUFFERS};

int run_cusparseLtMatmulSearch(struct library_frame *f)
{
	const struct cusparselt_library *l = f->library;
	cusparseLtMatmulPlan_t *plan;
	int status = multiply(f, &plan);
	struct sparselt_kept *k;
	uint64_t *set;

	if (f->stopped || !plan)
		return status;
	k = (void *)((char *)plan - offsetof(struct sparselt_kept, plan));
	set = library_get_out(f);
	for (int i = 0; !status && set && i < CUSPARSELT_ALGORITHM_ATTRIBUTES; i++) {
		int32_t value, *to = library_get_out(f);

		for (size_t n = 0; n < sizeof(searched) / sizeof(searched[0]); n++)
			if (searched[n] == i &&
				!l->cusparseLtMatmulAlgGetAttribute(f->handle,
					(void *)&k->algorithm, i, &value, sizeof(value))) {
				*to = value;
				*set |= 1u << i;
			}
	}
	sparselt_drop(f->handle, plan);
	return status;
}
