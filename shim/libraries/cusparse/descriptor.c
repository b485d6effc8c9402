/* SPDX-License-Identifier: Apache-2.0
 *
 * What all descriptors have in common: made, put into calls, ended.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/handle.h"
#include "shim/libraries/cusparse/cusparse.h"

#define MAGIC 0x72617073u

static bool matrix_read(const void *descriptor, int32_t content[4])
{
	const struct cusparse_object *o = cusparse_of(descriptor, CUSPARSE_ITEM_MATRIX);

	if (o)
		memcpy(content, &o->content.matrix, sizeof(o->content.matrix));
	return o;
}
_Static_assert(sizeof(struct cusparse_matrix) == 4 * sizeof(int32_t), "front.h");

cusparseStatus_t cusparse_new(void **descriptor, uint32_t kind)
{
	struct cusparse_object *o;

	if (!descriptor)
		return CUSPARSE_STATUS_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUSPARSE_STATUS_ALLOC_FAILED;
	o->magic = MAGIC;
	o->kind = kind;
	*descriptor = o;
	if (kind == CUSPARSE_ITEM_MATRIX)
		vcuda_front_matrix_by(matrix_read);
	return CUSPARSE_STATUS_SUCCESS;
}

struct cusparse_object *cusparse_of(const void *descriptor, uint32_t kind)
{
	struct cusparse_object *o = (struct cusparse_object *)(uintptr_t)descriptor;

	return o && o->magic == MAGIC && o->kind == kind ? o : NULL;
}

cusparseStatus_t cusparse_free(const void *descriptor, uint32_t kind)
{
	struct cusparse_object *o = cusparse_of(descriptor, kind);
	struct wire_vcudaCusparseObjectClose body;

	if (!descriptor && (kind == CUSPARSE_ITEM_MATRIX || kind >= CUSPARSE_ITEM_BSRSV2))
		return CUSPARSE_STATUS_SUCCESS;
	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	body = (struct wire_vcudaCusparseObjectClose){.object = o->number};
	if (body.object && vcuda_front_release(body.object))
		front_post(OP_vcudaCusparseObjectClose, &body, sizeof(body));
	o->magic = 0;
	free(o);
	return CUSPARSE_STATUS_SUCCESS;
}

/* Gives it a number, unless it has one. Threads may use one descriptor at once. */
static bool keep(struct cusparse_object *o)
{
	uint64_t none = 0, number;

	if (o->number)
		return true;
	number = vcuda_front_mint(KIND_cusparseObject, o);
	if (number && !__atomic_compare_exchange_n((uint64_t *)&o->number, &none, number, false,
			      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		vcuda_front_release(number);
	return o->number;
}

/* Puts where its parts lie. */
static void put_places(struct library_items *items, const struct cusparse_object *o)
{
	struct cusparse_places places = {.object = o->number, .count = o->count};
	uint32_t bytes = cusparse_places_bytes(o->kind);
	void *to = bytes ? library_varying(items, bytes) : NULL;

	for (unsigned i = 0; i < CUSPARSE_PLACES; i++) {
		places.at[i] = (uint64_t)(uintptr_t)o->place[i];
		items->body.alignment |= places.at[i] & 15;
	}
	if (to)
		memcpy(to, &places, bytes);
}

void cusparse_put_descriptor(struct library_items *items, const void *descriptor, uint32_t kind)
{
	struct cusparse_object *o = cusparse_of(descriptor, kind & LIBRARY_KIND);
	union cusparse_content content;
	uint32_t bytes;
	void *to;

	if (!o || (kind & LIBRARY_STAYS && !keep(o))) {
		library_fault(items,
			o ? CUSPARSE_STATUS_ALLOC_FAILED : CUSPARSE_STATUS_INVALID_VALUE, "");
		return;
	}
	content = o->content;
	if (o->kind == CUSPARSE_ITEM_SPMAT && items->verb == LIBRARY_CACHED)
		content.spmat.count = o->count;
	bytes = cusparse_content_bytes(o->kind);
	to = library_put_content(items, o->kind, bytes / 4);
	if (to)
		memcpy(to, &content, bytes);
	put_places(items, o);
	items->left |= kind & LIBRARY_STAYS;
	if ((kind & LIBRARY_SIZED) == LIBRARY_SIZED)
		library_out(items, &o->count, sizeof(o->count));
}

uint32_t cusparse_factor_bytes(cusparseConstSpVecDescr_t vector)
{
	const struct cusparse_object *o = cusparse_of(vector, CUSPARSE_ITEM_SPVEC);
	uint32_t bytes = o ? cusparse_scalar_bytes((cudaDataType)o->content.spvec.type) : 0;

	if (!o)
		return 0;
	switch ((int)o->content.spvec.type) {
	case CUDA_R_8I:
	case CUDA_R_16F:
	case CUDA_R_16BF: return 4;
	case CUDA_C_16F:
	case CUDA_C_16BF: return 8;
	default: return bytes;
	}
}
