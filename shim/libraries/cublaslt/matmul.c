/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of products and transforms as they travel: as items of a call, and as the problem
 * of a question about algorithms.
 */
#include <string.h>

#include "protocol/generated/cublaslt_ops.h"
#include "shim/generated/cublaslt_hand.h"
#include "shim/libraries/cublaslt/cublaslt.h"

cublasStatus_t cublaslt_problem(struct cublaslt_problem *problem, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);

	if (!d)
		return CUBLAS_STATUS_INVALID_VALUE;
	problem->major = VCUDA_ABI;
	problem->desc = d->content;
	for (int i = 0; i < CUBLASLT_MATRICES; i++) {
		const struct cublaslt_layout_desc *layout = cublaslt_layout_of(layouts[i]);

		if (layout) {
			problem->layout[i] = layout->content;
			problem->layouts |= 1u << i;
		} else if (layouts[i] || i != CUBLASLT_C) {
			return CUBLAS_STATUS_INVALID_VALUE;
		}
	}
	if (d->emulation) {
		if (d->emulation->kind != CUBLASLT_EMULATION)
			return CUBLAS_STATUS_INVALID_VALUE;
		problem->emulation = d->emulation->content;
		problem->emulation.present = 1;
		problem->emulation.bit_count =
			library_alignment(d->emulation->content.bit_count);
	}
	return CUBLAS_STATUS_SUCCESS;
}

bool cublaslt_says_more(const struct cublaslt_matmul_desc *desc)
{
	static const struct cublaslt_matmul_more defaults = CUBLASLT_MATMUL_MORE_DEFAULTS;

	return memcmp(&desc->more, &defaults, sizeof(defaults)) != 0;
}

bool cublaslt_agent_knows(const char *call)
{
	struct library_opened opened;
	static int logged_once;

	/* Of no library at all others say so. */
	if (vcuda_library_opened(&cublaslt_front, OP_cublasLtGetVersion, VCUDA_ABI, &opened) ||
		opened.knows & CUBLASLT_KNOWS_MORE)
		return true;
	vcuda_front_older(call, &logged_once);
	return false;
}

/* Words of a product's item. */
#define WORDS_LEAST ((uint32_t)offsetof(struct cublaslt_matmul_words, emulation) / 4)
#define WORDS_EMULATION ((uint32_t)offsetof(struct cublaslt_matmul_words, more) / 4)
#define WORDS_ALL ((uint32_t)sizeof(struct cublaslt_matmul_words) / 4)

static uint8_t put_address(struct library_items *items, uint64_t address)
{
	uint64_t *at = address ? library_varying(items, sizeof(*at)) : NULL;

	if (at)
		*at = address;
	return library_alignment(address);
}

static void put_matmul(struct library_items *items, cublasLtMatmulDesc_t desc)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);
	const struct cublaslt_emulation_desc *emulation = d ? d->emulation : NULL;
	uint8_t *to, *alignments; /* in the key, which is not aligned for the struct */
	uint32_t words = emulation ? WORDS_EMULATION : WORDS_LEAST;

	if (!d || (emulation && emulation->kind != CUBLASLT_EMULATION)) {
		library_fault(items, CUBLAS_STATUS_INVALID_VALUE, NULL);
		return;
	}
	items->mode = d->content.pointer_mode;
	if (cublaslt_says_more(d)) {
		words = WORDS_ALL;
		/* Scalars of a whole batch are on the device, or they are one. */
		if (d->content.pointer_mode == CUBLASLT_POINTER_MODE_HOST &&
			(d->more.alpha_stride || d->more.beta_stride))
			library_fault(items, CUBLAS_STATUS_NOT_SUPPORTED, NULL);
		else if (!cublaslt_agent_knows("cublasLtMatmul"))
			library_fault(items, CUBLAS_STATUS_NOT_SUPPORTED, NULL);
	}
	to = library_put_content(items, CUBLASLT_ITEM_MATMUL, words);
	if (!to)
		return;
	memset(to, 0, 4 * (size_t)words);
	memcpy(to, &d->content, sizeof(d->content));
	if (words == WORDS_ALL)
		memcpy(to + offsetof(struct cublaslt_matmul_words, more), &d->more,
			sizeof(d->more));
	alignments = to + offsetof(struct cublaslt_matmul_words, alignments);
	for (int i = 0; i < CUBLASLT_POINTERS; i++)
		alignments[i] = put_address(items, d->pointers[i]);
	if (emulation) {
		struct cublaslt_emulation content = emulation->content;

		alignments[CUBLASLT_POINTERS] = put_address(items, content.bit_count);
		content.present = 1;
		content.bit_count = 0;
		memcpy(to + offsetof(struct cublaslt_matmul_words, emulation), &content,
			sizeof(content));
	}
}

static void put_layout(struct library_items *items, cublasLtMatrixLayout_t desc)
{
	const struct cublaslt_layout_desc *d = cublaslt_layout_of(desc);
	bool grouped = d && d->kind == CUBLASLT_GROUPED_LAYOUT;
	struct cublaslt_group_words group = {0};
	uint8_t *to;

	if (!desc) {
		library_put_int(items, 0);
		return;
	}
	if (!d) {
		library_fault(items, CUBLAS_STATUS_INVALID_VALUE, NULL);
		return;
	}
	if (grouped && !cublaslt_agent_knows("cublasLtMatmul"))
		library_fault(items, CUBLAS_STATUS_NOT_SUPPORTED, NULL);
	to = library_put_content(items, CUBLASLT_ITEM_LAYOUT,
		(uint32_t)(sizeof(d->content) + (grouped ? sizeof(group) : 0)) / 4);
	if (!to)
		return;
	memcpy(to, &d->content, sizeof(d->content));
	if (!grouped)
		return;
	group.shape_width = d->group.shape_width;
	group.ld_width = d->group.ld_width;
	for (int i = 0; i < 3; i++)
		group.alignments[i] = put_address(items, d->group.at[i]);
	memcpy(to + sizeof(d->content), &group, sizeof(group));
}

static void put_transform(struct library_items *items, cublasLtMatrixTransformDesc_t desc)
{
	const struct cublaslt_transform_desc *d = cublaslt_transform_of(desc);
	void *to;

	if (!d) {
		library_fault(items, CUBLAS_STATUS_INVALID_VALUE, NULL);
		return;
	}
	items->mode = d->content.pointer_mode;
	to = library_put_content(items, CUBLASLT_ITEM_TRANSFORM, sizeof(d->content) / 4);
	if (to)
		memcpy(to, &d->content, sizeof(d->content));
}

void cublaslt_put_descriptor(struct library_items *items, const void *descriptor, uint32_t kind)
{
	void *of = (void *)(uintptr_t)descriptor; /* NVIDIA's types are not const */

	switch (kind) {
	case CUBLASLT_ITEM_MATMUL: put_matmul(items, of); break;
	case CUBLASLT_ITEM_TRANSFORM: put_transform(items, of); break;
	default: put_layout(items, of);
	}
}

uint32_t cublaslt_scale_bytes(cublasLtMatmulDesc_t desc)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);

	return d ? cublas_data_bytes((cudaDataType)d->content.scale) : 0;
}

uint32_t cublaslt_transform_bytes(cublasLtMatrixTransformDesc_t desc)
{
	const struct cublaslt_transform_desc *d = cublaslt_transform_of(desc);

	return d ? cublas_data_bytes((cudaDataType)d->content.scale) : 0;
}
