/* SPDX-License-Identifier: Apache-2.0
 *
 * What plans are said to be.  Each form of the calls becomes one content; the agent is asked
 * once for each content how large its work area is, and prepares the plan meanwhile, so that
 * the same plan again costs no round trip.
 */
#include <string.h>

#include "shim/libraries/cufft/multi.h"

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
	struct cufft_whole *whole, const struct plan *plan, const struct said *said)
{
	struct cufft_content *c = &whole->plain;

	if (said->rank < 1 || said->rank > CUFFT_RANK || !said->n)
		return false;
	whole->extra = (struct cufft_extra){0};
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
		whole->extra.callbacks = plan->content.extra.callbacks;
		c->properties = plan->content.plain.properties;
		memcpy(c->property, plan->content.plain.property, sizeof(c->property));
	}
	return true;
}

static bool content_plain(const struct cufft_whole *c)
{
	return !c->extra.policy && !c->extra.callbacks;
}

/* Of a plain content that of the content alone, as it always was. */
static uint64_t content_digest(const struct cufft_whole *c)
{
	const unsigned char *at = (const void *)c;
	size_t bytes = content_plain(c) ? sizeof(c->plain) : sizeof(*c);
	uint64_t digest = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < bytes; i++)
		digest = (digest ^ at[i]) * 1099511628211u;
	return digest;
}

/* A question whose answer is kept. The reply begins with a struct library_reply. */
static cufftResult ask_kept(uint16_t op, const void *body, uint32_t body_bytes, void *reply,
	size_t reply_bytes, const char *name)
{
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = op,
		.cached = true,
		.body = body,
		.body_bytes = body_bytes,
		.stream_at = FRONT_NO_STREAM,
		.reply = reply,
		.reply_bytes = reply_bytes,
	};
	CUresult context = vcuda_front_context();
	cufftResult status = context ? front_status(&cufft_front, context)
				     : vcuda_library_frame(&cufft_front, &frame);

	if (((const struct library_reply *)reply)->flags & LIBRARY_ABSENT)
		vcuda_front_missing(name, cufft_front.name, cufft_front.logged_once);
	return status;
}

static cufftResult ask_plain(
	const struct cufft_whole *c, enum cufft_what what, const char *name, size_t *bytes)
{
	struct wire_cufftXtGetSizeMany body = {.content = c->plain, .what = what};
	struct wire_cufftXtGetSizeMany_reply reply = {0};
	cufftResult status = ask_kept(
		OP_cufftXtGetSizeMany, &body, sizeof(body), &reply, sizeof(reply), name);

	if (!status)
		*bytes = reply.bytes;
	return status;
}

static cufftResult ask_extra(const struct cufft_whole *c, enum cufft_what what,
	const char *name, size_t *bytes, size_t *limit)
{
	struct wire_cufftXtSetWorkAreaPolicy body = {
		.content = c->plain, .extra = c->extra, .what = what};
	struct wire_cufftXtSetWorkAreaPolicy_reply reply = {0};
	static int logged_once;
	cufftResult status = ask_kept(
		OP_cufftXtSetWorkAreaPolicy, &body, sizeof(body), &reply, sizeof(reply), name);

	/* The library's own answer would stand in the reply. */
	if (status == CUFFT_NOT_SUPPORTED && !reply.plain.status)
		vcuda_front_older(name, &logged_once);
	if (!status)
		*bytes = reply.bytes;
	if (!status && limit)
		*limit = reply.limit;
	return status;
}

/* LIMIT, or NULL: where a policy's limit goes as the library left it. */
static cufftResult ask(const struct cufft_whole *c, enum cufft_what what, const char *name,
	size_t *bytes, size_t *limit)
{
	return content_plain(c) ? ask_plain(c, what, name, bytes)
				: ask_extra(c, what, name, bytes, limit);
}

/* False: there is no memory, and the plan has the work area that it had. */
static bool area_make(struct plan *plan, size_t bytes)
{
	CUdeviceptr area = 0;

	if (plan->no_allocation)
		return true;
	if (bytes && cuMemAlloc(&area, bytes))
		return false;
	if (bytes || plan->own_area)
		fft_area(plan, area, bytes > 0);
	return true;
}

static cufftResult plan_name(cufftHandle number, struct plan *plan)
{
	const struct cufft_whole *c = &plan->content;
	struct wire_cufftXtMakePlanMany body = {.content = c->plain, .plan = number};
	struct wire_cufftXtSetWorkAreaPolicy more = {
		.content = c->plain, .extra = c->extra, .plan = number};
	CUresult status = cuCtxGetCurrent(&plan->context);

	if (!status && content_plain(c))
		status = front_post(OP_cufftXtMakePlanMany, &body, sizeof(body));
	else if (!status)
		status = front_post(OP_cufftXtSetWorkAreaPolicy, &more, sizeof(more));
	plan->made = !status;
	return front_status(&cufft_front, status);
}

cufftResult fft_plan_make(
	cufftHandle number, const struct cufft_whole *content, const char *name, size_t *bytes)
{
	struct plan *plan = fft_plan(number);
	cufftResult status = ask(content, CUFFT_WHAT_PLAN, name, &plan->area_bytes, NULL);

	if (status)
		return status;
	plan->content = *content;
	plan->digest = content_digest(content);
	*bytes = plan->area_bytes;
	if (!area_make(plan, plan->area_bytes))
		return CUFFT_ALLOC_FAILED;
	return plan_name(number, plan);
}

static cufftResult plan_make(
	cufftHandle number, const struct said *said, const char *name, size_t *bytes)
{
	struct plan *plan = fft_plan(number);
	struct cufft_whole content;

	if (!plan || plan->made) /* once for each plan, as NVIDIA documents it */
		return CUFFT_INVALID_PLAN;
	if (!bytes || !content_make(&content, plan, said))
		return CUFFT_INVALID_VALUE;
	return plan->multi ? fft_multi_make(plan, &content, name, bytes)
			   : fft_plan_make(number, &content, name, bytes);
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

cufftResult fft_plan_size(const struct cufft_whole *content, const char *name, size_t *bytes)
{
	return ask(content, CUFFT_WHAT_SIZE, name, bytes, NULL);
}

static cufftResult size_get(
	cufftHandle number, const struct said *said, const char *name, size_t *bytes)
{
	struct plan *plan = fft_plan(number);
	struct cufft_whole content;

	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!bytes || !content_make(&content, plan, said))
		return CUFFT_INVALID_VALUE;
	return plan->multi ? fft_multi_size(plan, &content, name, bytes)
			   : fft_plan_size(&content, name, bytes);
}

static cufftResult estimate(const struct said *said, const char *name, size_t *bytes)
{
	struct cufft_whole content;

	if (!bytes || !content_make(&content, NULL, said))
		return CUFFT_INVALID_VALUE;
	return ask(&content, CUFFT_WHAT_ESTIMATE, name, bytes, NULL);
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

/* The plan becomes another, which has the policy: its number is given anew. */
cufftResult hand_cufftXtSetWorkAreaPolicy(
	cufftHandle number, cufftXtWorkAreaPolicy policy, size_t *limit)
{
	struct plan *plan = fft_plan(number);
	struct wire_cufftDestroy before = {.plan = number};
	struct cufft_whole content;
	cufftResult status;
	CUresult posted;
	size_t bytes;

	if (!plan || !plan->made)
		return CUFFT_INVALID_PLAN;
	if (policy < 0 || policy >= CUFFT_POLICIES)
		return CUFFT_INVALID_VALUE;
	if (plan->multi)
		return CUFFT_NOT_SUPPORTED;
	content = plan->content;
	content.extra.policy = (uint32_t)policy + 1;
	content.extra.limited = limit ? 1 : 0;
	content.extra.limit = limit ? *limit : 0;
	status = ask(&content, CUFFT_WHAT_PLAN, "cufftXtSetWorkAreaPolicy", &bytes, limit);
	if (status)
		return status;
	plan->no_allocation |= plan->area && !plan->own_area; /* the program's stays */
	if (!area_make(plan, bytes))
		return CUFFT_ALLOC_FAILED;
	posted = front_post(OP_cufftDestroy, &before, sizeof(before));
	if (posted)
		return front_status(&cufft_front, posted);
	plan->made = false;
	plan->content = content;
	plan->digest = content_digest(&content);
	plan->area_bytes = bytes;
	return plan_name(number, plan);
}
