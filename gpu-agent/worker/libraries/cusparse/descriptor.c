/* SPDX-License-Identifier: Apache-2.0
 *
 * See cusparse.h.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/generated/serve_hand.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/libraries/cusparse/cusparse.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/vcuda_wire.h"

/* One with a number. */
struct object {
	const struct cusparse_library *library;
	struct cusparse_said said;
	void *made;
	uint16_t context;
};

void cusparse_warm(const struct worker *w, uint32_t major)
{
	plain_warm(w, &cusparse_plain, major);
}

/* Descriptors are not of a context. */
void cusparse_forget(uint16_t context)
{
	plain_forget(&cusparse_plain, context);
}

static CUresult object_close(struct worker *w, void *object)
{
	struct object *k = object;
	CUresult status = worker_use(w, k->context);

	if (!status)
		cusparse_unmake(k->library, k->said.kind, k->made);
	free(k);
	return status;
}

CUresult serve_vcudaCusparseObjectClose(struct worker *w, struct request *r)
{
	const struct wire_vcudaCusparseObjectClose *req = (const void *)r->body;
	struct name *name = handles_find(w, req->object, KIND_cusparseObject);
	struct object *k = name ? name->object : NULL;

	/* No call that was served named it: whatever failed before says why. */
	if (!k)
		return CUDA_SUCCESS;
	worker_unbind(w, r, req->object, KIND_cusparseObject);
	return closing_do(w, object_close, k);
}

static struct object *object_new(struct library_frame *f, const struct cusparse_said *said)
{
	struct object *k = calloc(1, sizeof(*k));
	int status = k ? cusparse_make(f->library, said, &k->made) : f->of->statuses.memory;

	if (!status) {
		worker_bind(f->w, f->r, said->places.object, KIND_cusparseObject, k);
		if (!worker_refused(f->r)) {
			k->library = f->library;
			k->said = *said;
			k->context = f->r->header.context;
			return k;
		}
	}
	if (k && k->made)
		cusparse_unmake(f->library, said->kind, k->made);
	free(k);
	library_refuse(f, status ? status : CUSPARSE_STATUS_INVALID_VALUE);
	return NULL;
}

/* The one with the number that was said, made where it is new, as it is said to be. */
static void *object_get(struct library_frame *f, const struct cusparse_said *said)
{
	struct name *name = handles_find(f->w, said->places.object, KIND_cusparseObject);
	struct object *k = name ? name->object : object_new(f, said);
	int status = 0;

	if (!k)
		return NULL;
	if (k->library != f->library || k->said.kind != said->kind ||
		(said->kind == CUSPARSE_ITEM_SPMAT &&
			k->said.content.spmat.format != said->content.spmat.format)) {
		library_violated(f);
		return NULL;
	}
	if (said->kind == CUSPARSE_ITEM_SPMAT)
		status = cusparse_change(f->library, k->made, &k->said, said);
	if (status) {
		library_refuse(f, status);
		return NULL;
	}
	k->said = *said;
	return k->made;
}

/* Made for this call. */
static void *passing_get(struct library_frame *f, const struct cusparse_said *said)
{
	void *made = NULL;
	int status = cusparse_make(f->library, said, &made);

	if (!status)
		return made;
	if (made)
		cusparse_unmake(f->library, said->kind, made);
	library_refuse(f, status);
	return NULL;
}

static bool say(struct library_frame *f, uint32_t kind, struct cusparse_said *said)
{
	uint32_t bytes = cusparse_content_bytes(kind), places = cusparse_places_bytes(kind);
	const uint32_t *words;
	const void *at;

	memset(said, 0, sizeof(*said));
	said->kind = kind;
	if (library_get_content(f, kind, bytes / 4, &words) != bytes / 4) {
		library_violated(f);
		return false;
	}
	memcpy(&said->content, words, bytes);
	if (!places)
		return true;
	at = library_get_bytes(f, places);
	if (at)
		memcpy(&said->places, at, places);
	return at;
}

void *cusparse_get_descriptor(struct library_frame *f, uint32_t kind)
{
	struct cusparse_said said;
	uint64_t *size = NULL;
	void *made;

	if (f->stopped || !say(f, kind & LIBRARY_KIND, &said))
		return NULL;
	if ((kind & LIBRARY_SIZED) == LIBRARY_SIZED)
		size = library_get_out(f);
	if (f->stopped || f->noted_count == LIBRARY_NOTED ||
		(kind & LIBRARY_STAYS && !said.places.object)) {
		library_violated(f);
		return NULL;
	}
	made = said.places.object ? object_get(f, &said) : passing_get(f, &said);
	if (!made)
		return NULL;
	f->noted[f->noted_count].kind = said.kind;
	f->noted[f->noted_count].passing = !said.places.object;
	f->noted[f->noted_count].size = size;
	f->noted[f->noted_count++].made = made;
	return made;
}

/* How many elements a call has found for a matrix, or products. */
static void tell_size(const struct cusparse_library *l, uint32_t kind, void *made, uint64_t *to)
{
	int64_t rows, cols, count = 0;
	int status = CUSPARSE_STATUS_NOT_SUPPORTED;

	if (kind == CUSPARSE_ITEM_SPGEMM && l->cusparseSpGEMM_getNumProducts)
		status = l->cusparseSpGEMM_getNumProducts(made, &count);
	else if (kind == CUSPARSE_ITEM_SPMAT && l->cusparseSpMatGetSize)
		status = l->cusparseSpMatGetSize(made, &rows, &cols, &count);
	*to = status ? 0 : (uint64_t)count;
}

void cusparse_ended(struct library_frame *f, int status)
{
	const struct cusparse_library *l = f->library;

	while (f->noted_count) {
		f->noted_count--;
		if (f->noted[f->noted_count].size && !status && !f->stopped)
			tell_size(l, f->noted[f->noted_count].kind,
				f->noted[f->noted_count].made, f->noted[f->noted_count].size);
		if (f->noted[f->noted_count].passing)
			cusparse_unmake(l, f->noted[f->noted_count].kind,
				f->noted[f->noted_count].made);
	}
}
