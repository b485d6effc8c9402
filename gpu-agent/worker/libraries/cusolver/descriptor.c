/* SPDX-License-Identifier: Apache-2.0
 *
 * See cusolver.h.  A posted call may still use an object when the next frame comes, so one that
 * has to make room waits for the device first; a program has a handful of different ones.
 */
#include "gpu-agent/worker/libraries/cusolver/cusolver.h"

#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

#define OBJECTS 64u

struct made {
	const struct cusolver_library *library; /* NULL: free */
	uint32_t kind;
	union cusolver_content content;
	void *object;
	uint64_t used; /* the frame that used it last */
};

static struct made objects[OBJECTS];
static unsigned next;

void cusolver_warm(const struct worker *w, uint32_t major)
{
	plain_warm(w, &cusolver_plain, major);
}

/* Objects are not of a context. */
void cusolver_forget(uint16_t context)
{
	plain_forget(&cusolver_plain, context);
}

static void drop(struct made *m)
{
	if (m->library && m->kind == CUSOLVER_ITEM_PARAMS)
		m->library->cusolverDnDestroyParams(m->object);
	else if (m->library && m->kind == CUSOLVER_ITEM_MATRIX)
		cusolver_matrix_drop(m->library, m->object);
	else if (m->library && m->kind == CUSOLVER_ITEM_REFINEMENT)
		m->library->cusolverDnIRSParamsDestroy(m->object);
	else if (m->library && m->kind == CUSOLVER_ITEM_SYEVJ)
		m->library->cusolverDnDestroySyevjInfo(m->object);
	else if (m->library)
		m->library->cusolverDnDestroyGesvdjInfo(m->object);
	memset(m, 0, sizeof(*m));
}

static int make_params(const struct cusolver_library *l, struct made *m)
{
	cusolverDnParams_t params = NULL;
	int status;

	if (!l->cusolverDnCreateParams || !l->cusolverDnDestroyParams ||
		!l->cusolverDnSetAdvOptions)
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	status = l->cusolverDnCreateParams(&params);
	if (status)
		return status;
	m->object = params;
	m->library = l;
	for (int i = 0; !status && i < CUSOLVER_FUNCTIONS; i++)
		if (m->content.params.algorithm[i])
			status = l->cusolverDnSetAdvOptions(
				params, i, m->content.params.algorithm[i] - 1);
	return status;
}

/* What the content sets, in the order of enum cusolver_refinement_set. */
static int set_refinement(const struct cusolver_library *l, cusolverDnIRSParams_t params,
	const struct cusolver_refinement *r)
{
	int status = 0;

#define SET(BIT, NAME, FIELD)                                                                  \
	if (!status && r->set & CUSOLVER_SET_##BIT)                                            \
	status = l->cusolverDnIRSParams##NAME ? l->cusolverDnIRSParams##NAME(params, r->FIELD) \
					      : CUSOLVER_STATUS_NOT_SUPPORTED
	SET(REFINEMENT_SOLVER, SetRefinementSolver, solver);
	SET(MAIN_PRECISION, SetSolverMainPrecision, main_precision);
	SET(LOWEST_PRECISION, SetSolverLowestPrecision, lowest_precision);
	SET(REFINEMENT_TOLERANCE, SetTol, tolerance);
	SET(INNER_TOLERANCE, SetTolInner, tolerance_inner);
	SET(MAX_TURNS, SetMaxIters, max_turns);
	SET(MAX_INNER_TURNS, SetMaxItersInner, max_turns_inner);
#undef SET
	if (!status && r->set & CUSOLVER_SET_NO_FALLBACK)
		status = l->cusolverDnIRSParamsDisableFallback
				 ? l->cusolverDnIRSParamsDisableFallback(params)
				 : CUSOLVER_STATUS_NOT_SUPPORTED;
	return status;
}

static int make_refinement(const struct cusolver_library *l, struct made *m)
{
	cusolverDnIRSParams_t params = NULL;
	int status;

	if (!l->cusolverDnIRSParamsCreate || !l->cusolverDnIRSParamsDestroy)
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	status = l->cusolverDnIRSParamsCreate(&params);
	if (status)
		return status;
	m->object = params;
	m->library = l;
	return set_refinement(l, params, &m->content.refinement);
}

static int make_matrix(const struct cusolver_library *l, struct made *m)
{
	int status = cusolver_matrix_make(l, &m->content.matrix, &m->object);

	m->library = l;
	return status;
}

/* The two kinds differ in the names of their functions. */
#define MAKE(NAME, KIND, TYPE)                                                                 \
	static int make_##KIND(const struct cusolver_library *l, struct made *m)               \
	{                                                                                      \
		const struct cusolver_jacobi *j = &m->content.jacobi;                          \
		TYPE info = NULL;                                                              \
		int status;                                                                    \
                                                                                               \
		if (!l->cusolverDnCreate##NAME##Info || !l->cusolverDnDestroy##NAME##Info ||   \
			!l->cusolverDnX##KIND##SetTolerance ||                                 \
			!l->cusolverDnX##KIND##SetMaxSweeps ||                                 \
			!l->cusolverDnX##KIND##SetSortEig)                                     \
			return CUSOLVER_STATUS_NOT_SUPPORTED;                                  \
		status = l->cusolverDnCreate##NAME##Info(&info);                               \
		if (status)                                                                    \
			return status;                                                         \
		m->object = info;                                                              \
		m->library = l;                                                                \
		if (j->set & CUSOLVER_SET_TOLERANCE)                                           \
			status = l->cusolverDnX##KIND##SetTolerance(info, j->tolerance);       \
		if (!status && j->set & CUSOLVER_SET_MAX_SWEEPS)                               \
			status = l->cusolverDnX##KIND##SetMaxSweeps(info, j->max_sweeps);      \
		if (!status && j->set & CUSOLVER_SET_SORT)                                     \
			status = l->cusolverDnX##KIND##SetSortEig(info, j->sort);              \
		return status;                                                                 \
	}
MAKE(Syevj, syevj, syevjInfo_t)
MAKE(Gesvdj, gesvdj, gesvdjInfo_t)

static struct made *find(
	const struct cusolver_library *l, uint32_t kind, const union cusolver_content *content)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i].library == l && objects[i].kind == kind &&
			!memcmp(&objects[i].content, content, sizeof(*content)))
			return &objects[i];
	return NULL;
}

/* One that no call uses; NULL: each is in use. */
static struct made *room(const struct library_frame *f)
{
	uint64_t first = beside_first(f->w, f->r);

	for (unsigned i = 0; i < OBJECTS; i++) {
		struct made *m = &objects[next++ % OBJECTS];

		if (!m->library || m->used < first)
			return m;
	}
	return NULL;
}

static struct made *make(
	struct library_frame *f, uint32_t kind, const union cusolver_content *content)
{
	const struct cusolver_library *l = f->library;
	struct made *m = room(f);
	int status;

	if (!m) {
		library_refuse(f, f->of->statuses.memory);
		return NULL;
	}
	if (m->library) {
		f->w->cuda.cuCtxSynchronize();
		drop(m);
	}
	m->kind = kind;
	m->content = *content;
	status = kind == CUSOLVER_ITEM_PARAMS	    ? make_params(l, m)
		 : kind == CUSOLVER_ITEM_REFINEMENT ? make_refinement(l, m)
		 : kind == CUSOLVER_ITEM_MATRIX	    ? make_matrix(l, m)
		 : kind == CUSOLVER_ITEM_SYEVJ	    ? make_syevj(l, m)
						    : make_gesvdj(l, m);
	if (!status)
		return m;
	drop(m);
	library_refuse(f, status);
	return NULL;
}

/* One that the client's handle names. */
static void *get_object(struct library_frame *f, enum handle_kind kind)
{
	const uint64_t *number = library_get_bytes(f, sizeof(*number));
	const struct plain_served *s = number ? worker_handle(f->w, f->r, *number, kind) : NULL;

	if (!s)
		return NULL;
	if (s->library != f->library || s->context != f->r->header.context) {
		library_violated(f);
		return NULL;
	}
	return s->handle;
}

void *cusolver_get_descriptor(struct library_frame *f, uint32_t kind)
{
	uint32_t bytes = cusolver_content_bytes(kind), got;
	union cusolver_content content;
	const uint32_t *words;
	struct made *m;

	if (cusolver_object_kind(kind))
		return get_object(f, (enum handle_kind)cusolver_object_kind(kind));
	memset(&content, 0, sizeof(content));
	got = library_get_content(f, kind, bytes / 4, &words);
	if (!got && kind == CUSOLVER_ITEM_PARAMS)
		return NULL; /* as the program gave it, or stopped */
	if (got != bytes / 4) {
		library_violated(f);
		return NULL;
	}
	memcpy(&content, words, bytes);
	m = find(f->library, kind, &content);
	if (!m)
		m = make(f, kind, &content);
	if (!m)
		return NULL;
	if (m->used < f->r->header.seq)
		m->used = f->r->header.seq;
	return m->object;
}
