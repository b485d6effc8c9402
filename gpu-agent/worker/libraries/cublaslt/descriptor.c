/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of products and transforms as they come with a call.
 */
#include <string.h>

#include "gpu-agent/worker/libraries/cublaslt/cublaslt.h"

#define WORDS(type) ((uint32_t)(sizeof(type) / 4))

/* The content of an item of at most so many bytes, zeros behind it; how many came. */
static uint32_t get_content(struct library_frame *f, uint32_t kind, void *to, uint32_t bytes)
{
	const uint32_t *words;
	uint32_t count = library_get_content(f, kind, bytes / 4, &words);

	memset(to, 0, bytes);
	if (count)
		memcpy(to, words, 4 * (size_t)count);
	return count;
}

static void *made(struct library_frame *f, cublasStatus_t status, void *descriptor)
{
	if (status)
		library_refuse(f, status);
	return status ? NULL : descriptor;
}

static uint64_t get_address(struct library_frame *f, uint8_t alignment)
{
	const uint64_t *at = alignment ? library_get_bytes(f, sizeof(*at)) : NULL;

	return at ? *at : 0;
}

static void *get_layout(struct library_frame *f)
{
	const struct cublaslt_library *l = f->library;
	enum cublaslt_matrix which = f->layouts++ % CUBLASLT_MATRICES;
	cublasLtMatrixLayout_t layout = NULL;
	struct {
		struct cublaslt_layout layout;
		struct cublaslt_group_words group;
		uint32_t reserved;
	} words;
	struct cublaslt_group group = {0};
	cublasStatus_t status;
	uint32_t count = get_content(f, CUBLASLT_ITEM_LAYOUT, &words, sizeof(words));
	bool grouped = count == WORDS(words.layout) + WORDS(words.group);

	if (!count)
		return NULL;
	if (count != WORDS(words.layout) && !grouped) {
		library_violated(f);
		return NULL;
	}
	if (grouped) {
		group.shape_width = words.group.shape_width;
		group.ld_width = words.group.ld_width;
		for (int i = 0; i < 3; i++)
			group.at[i] = get_address(f, words.group.alignments[i]);
		if (f->stopped || library_stop(f, !l->cublasLtGroupedMatrixLayoutCreate,
					  "cublasLtGroupedMatrixLayoutCreate"))
			return NULL;
	}
	status =
		cublaslt_make_layout(l, which, &words.layout, grouped ? &group : NULL, &layout);
	return made(f, status, layout);
}

static void *get_matmul(struct library_frame *f)
{
	uint64_t pointers[CUBLASLT_POINTERS], bit_count;
	struct cublaslt_matmul_words words;
	uint32_t count = get_content(f, CUBLASLT_ITEM_MATMUL, &words, sizeof(words));
	uint32_t least = offsetof(struct cublaslt_matmul_words, emulation) / 4;
	uint32_t emulated = offsetof(struct cublaslt_matmul_words, more) / 4;
	cublasLtMatmulDesc_t desc = NULL;
	cublasStatus_t status;

	if (count != least && count != emulated && count != WORDS(words)) {
		library_violated(f);
		return NULL;
	}
	for (int i = 0; i < CUBLASLT_POINTERS; i++)
		pointers[i] = get_address(f, words.alignments[i]);
	bit_count = get_address(f, words.bit_count);
	if (f->stopped)
		return NULL;
	f->mode = words.desc.pointer_mode;
	/* What is kept is found by it, and the address is none of it. */
	words.emulation.present = count == emulated || words.emulation.present;
	words.emulation.bit_count = words.bit_count;
	if (count != WORDS(words))
		words.more = (struct cublaslt_matmul_more)CUBLASLT_MATMUL_MORE_DEFAULTS;
	status = cublaslt_make_product(f->library, &words.desc, &words.emulation, &words.more,
		pointers, bit_count, &desc);
	return made(f, status, desc);
}

static void *get_transform(struct library_frame *f)
{
	const struct cublaslt_library *l = f->library;
	cublasLtMatrixTransformDesc_t desc = NULL;
	struct cublaslt_transform content;
	cublasStatus_t status;
	uint32_t count = get_content(f, CUBLASLT_ITEM_TRANSFORM, &content, sizeof(content));

	if (count != WORDS(content)) {
		library_violated(f);
		return NULL;
	}
	f->mode = content.pointer_mode;
	if (library_stop(f,
		    !l->cublasLtMatrixTransformDescCreate ||
			    !l->cublasLtMatrixTransformDescDestroy ||
			    !l->cublasLtMatrixTransformDescSetAttribute,
		    "cublasLtMatrixTransformDescCreate"))
		return NULL;
	status = cublaslt_make_transform(l, &content, &desc);
	return made(f, status, desc);
}

void *cublaslt_get_descriptor(struct library_frame *f, uint32_t kind)
{
	switch (kind) {
	case CUBLASLT_ITEM_MATMUL: return get_matmul(f);
	case CUBLASLT_ITEM_TRANSFORM: return get_transform(f);
	default: return get_layout(f);
	}
}
