/* SPDX-License-Identifier: Apache-2.0
 *
 * What plans are said to be.  Each form of the calls becomes one content; the agent is asked
 * once for each content how large its work area is, and prepares the plan meanwhile, so that
 * the same plan again costs no round trip.
 */
#include <string.h>

#include "shim/libraries/cufft/plan.h"

/* A form's arguments; the lists are of int or, where `wide`, of long long int. */
struct said {
	enum cufft_form form;
	bool wide;
	int rank;
	const void *n, *in_embed, *out_embed;
	int64_t in_stride, in_dist, out_stride, out_dist, batch;
	int in_type, out_type, run_type;
};

static void list_copy(const struct said *said, int64_t *to, const void *from)
{
	for (int i = 0; from && i < said->rank; i++)
		to[i] = said->wide ? ((const long long int *)from)[i] : ((const int *)from)[i];
}

/* False: it is none that a plan can have. PLAN: NULL where there is none. */
static bool content_make(
	struct cufft_content *c, const struct plan *plan, const struct said *said)
{
	if (said->rank < 1 || said->rank > CUFFT_RANK || !said->n)
		return false;
	*c = (struct cufft_content){.major = VCUDA_ABI,
		.form = said->form,
		.rank = said->rank,
		.embeds = (said->in_embed ? 1u : 0) | (said->out_embed ? 2u : 0),
		.batch = said->batch,
		.in_stride = said->in_stride,
		.in_dist = said->in_dist,
		.out_stride = said->out_stride,
		.out_dist = said->out_dist,
		.in_type = said->in_type,
		.out_type = said->out_type,
		.run_type = said->run_type};
	list_copy(said, c->n, said->n);
	list_copy(said, c->in_embed, said->in_embed);
	list_copy(said, c->out_embed, said->out_embed);
	if (plan) {
		c->properties = plan->content.properties;
		memcpy(c->property, plan->content.property, sizeof(c->property));
	}
	return true;
}

static uint64_t content_digest(const struct cufft_content *c)
{
	const unsigned char *at = (const void *)c;
	uint64_t digest = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < sizeof(*c); i++)
		digest = (digest ^ at[i]) * 1099511628211u;
	return digest;
}

static cufftResult ask(
	const struct cufft_content *c, enum cufft_what what, const char *name, size_t *bytes)
{
	struct wire_cufftXtGetSizeMany body = {.content = *c, .what = what};
	struct wire_cufftXtGetSizeMany_reply reply = {0};
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = OP_cufftXtGetSizeMany,
		.cached = true,
		.body = &body,
		.body_bytes = sizeof(body),
		.stream_at = FRONT_NO_STREAM,
		.reply = &reply,
		.reply_bytes = sizeof(reply),
	};
	CUresult context = vcuda_front_context();
	cufftResult status = context ? front_status(&cufft_front, context)
				     : vcuda_library_frame(&cufft_front, &frame);

	if (reply.plain.flags & LIBRARY_ABSENT)
		vcuda_front_missing(name, cufft_front.name, cufft_front.logged_once);
	if (!status)
		*bytes = reply.bytes;
	return status;
}

static cufftResult plan_name(cufftHandle number, struct plan *plan)
{
	struct wire_cufftXtMakePlanMany body = {.content = plan->content, .plan = number};
	CUdeviceptr area = 0;
	CUresult status;

	if (!plan->no_allocation && plan->area_bytes) {
		if (cuMemAlloc(&area, plan->area_bytes))
			return CUFFT_ALLOC_FAILED;
		fft_area(plan, area, true);
	}
	status = cuCtxGetCurrent(&plan->context);
	if (!status)
		status = front_post(OP_cufftXtMakePlanMany, &body, sizeof(body));
	plan->made = !status;
	return front_status(&cufft_front, status);
}

static cufftResult plan_make(
	cufftHandle number, const struct said *said, const char *name, size_t *bytes)
{
	struct plan *plan = fft_plan(number);
	struct cufft_content content;
	cufftResult status;

	if (!plan || plan->made) /* once for each plan, as NVIDIA documents it */
		return CUFFT_INVALID_PLAN;
	if (!bytes || !content_make(&content, plan, said))
		return CUFFT_INVALID_VALUE;
	status = ask(&content, CUFFT_WHAT_PLAN, name, &plan->area_bytes);
	if (status)
		return status;
	plan->content = content;
	plan->digest = content_digest(&content);
	*bytes = plan->area_bytes;
	return plan_name(number, plan);
}

static cufftResult plan_new(cufftHandle *number, const struct said *said, const char *name)
{
	cufftHandle made;
	size_t bytes;
	cufftResult status;

	if (!number)
		return CUFFT_INVALID_VALUE;
	status = hand_cufftCreate(&made);
	if (status)
		return status;
	status = plan_make(made, said, name, &bytes);
	if (status)
		hand_cufftDestroy(made);
	else
		*number = made;
	return status;
}

static cufftResult size_get(
	cufftHandle number, const struct said *said, const char *name, size_t *bytes)
{
	struct plan *plan = fft_plan(number);
	struct cufft_content content;

	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!bytes || !content_make(&content, plan, said))
		return CUFFT_INVALID_VALUE;
	return ask(&content, CUFFT_WHAT_SIZE, name, bytes);
}

static cufftResult estimate(const struct said *said, const char *name, size_t *bytes)
{
	struct cufft_content content;

	if (!bytes || !content_make(&content, NULL, said))
		return CUFFT_INVALID_VALUE;
	return ask(&content, CUFFT_WHAT_ESTIMATE, name, bytes);
}

/* The four forms with ints: their parameters, and what these say. */
#define N1 int nx, cufftType type, int batch
#define N2 int nx, int ny, cufftType type
#define N3 int nx, int ny, int nz, cufftType type
#define MANY                                                                                   \
	int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,     \
		int odist, cufftType type, int batch
#define LAYOUT                                                                                 \
	.rank = rank, .n = n, .in_embed = inembed, .out_embed = onembed, .in_stride = istride, \
	.in_dist = idist, .out_stride = ostride, .out_dist = odist, .batch = batch
#define SAID(FORM, ...)                                                                        \
	&(struct said)                                                                         \
	{                                                                                      \
		.form = CUFFT_FORM_##FORM, __VA_ARGS__                                         \
	}
#define SAID_1D SAID(1D, .rank = 1, .n = (int[]){nx}, .in_type = type, .batch = batch)
#define SAID_2D SAID(2D, .rank = 2, .n = (int[]){nx, ny}, .in_type = type, .batch = 1)
#define SAID_3D SAID(3D, .rank = 3, .n = (int[]){nx, ny, nz}, .in_type = type, .batch = 1)
#define SAID_MANY SAID(MANY, LAYOUT, .in_type = type)

#define FORMS(SUFFIX, PARAMETERS, WHAT)                                                        \
	cufftResult hand_cufftPlan##SUFFIX(cufftHandle *plan, PARAMETERS)                      \
	{                                                                                      \
		return plan_new(plan, WHAT, "cufftPlan" #SUFFIX);                              \
	}                                                                                      \
	cufftResult hand_cufftMakePlan##SUFFIX(cufftHandle plan, PARAMETERS, size_t *bytes)    \
	{                                                                                      \
		return plan_make(plan, WHAT, "cufftMakePlan" #SUFFIX, bytes);                  \
	}                                                                                      \
	cufftResult hand_cufftGetSize##SUFFIX(cufftHandle plan, PARAMETERS, size_t *bytes)     \
	{                                                                                      \
		return size_get(plan, WHAT, "cufftGetSize" #SUFFIX, bytes);                    \
	}                                                                                      \
	cufftResult hand_cufftEstimate##SUFFIX(PARAMETERS, size_t *bytes)                      \
	{                                                                                      \
		return estimate(WHAT, "cufftEstimate" #SUFFIX, bytes);                         \
	}
FORMS(1d, N1, SAID_1D)
FORMS(2d, N2, SAID_2D)
FORMS(3d, N3, SAID_3D)
FORMS(Many, MANY, SAID_MANY)

#define MANY64                                                                                 \
	cufftHandle plan, int rank, long long int *n, long long int *inembed,                  \
		long long int istride, long long int idist, long long int *onembed,            \
		long long int ostride, long long int odist, cufftType type,                    \
		long long int batch, size_t *bytes
#define SAID_MANY64 SAID(MANY64, LAYOUT, .wide = true, .in_type = type)

cufftResult hand_cufftMakePlanMany64(MANY64)
{
	return plan_make(plan, SAID_MANY64, "cufftMakePlanMany64", bytes);
}

cufftResult hand_cufftGetSizeMany64(MANY64)
{
	return size_get(plan, SAID_MANY64, "cufftGetSizeMany64", bytes);
}

#define XT                                                                                     \
	cufftHandle plan, int rank, long long int *n, long long int *inembed,                  \
		long long int istride, long long int idist, cudaDataType in_type,              \
		long long int *onembed, long long int ostride, long long int odist,            \
		cudaDataType out_type, long long int batch, size_t *bytes,                     \
		cudaDataType run_type
#define SAID_XT                                                                                \
	SAID(XT, LAYOUT, .wide = true, .in_type = (int)in_type, .out_type = (int)out_type,     \
		.run_type = (int)run_type)

cufftResult hand_cufftXtMakePlanMany(XT)
{
	return plan_make(plan, SAID_XT, "cufftXtMakePlanMany", bytes);
}

cufftResult hand_cufftXtGetSizeMany(XT)
{
	return size_get(plan, SAID_XT, "cufftXtGetSizeMany", bytes);
}
