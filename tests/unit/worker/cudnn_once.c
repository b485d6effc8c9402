/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent's cuDNN is asked to prepare, it is asked once: the worker's code over a
 * library that counts.  Forty results of a search take one reading of them, however they are
 * read, and one answer; a plan is made of the very configuration that was found, once for its
 * content; and what is kept has an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/libraries/cudnn/backend.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cudnn_wire.h"
#include "protocol/libraries/cudnn_found.h"

enum { RESULTS = 40, KNOBS = 12 };

static struct worker worker;
static struct agent_config config;
static _Alignas(16) unsigned char answer[ANSWER_MAX];
static const uint64_t handle = (uint64_t)1 << 32 | (uint64_t)KIND_cudnnHandle
							   << HANDLE_INDEX_BITS;

/* --- a library that counts ---------------------------------------------------------------- */

struct descriptor {
	int type;
	int64_t number; /* of a result, or a knob's value */
};

static int finalized[256], searches, alive, planned_with;
static int results = RESULTS;

static cudnnStatus_t count_new(cudnnBackendDescriptorType_t type, void **to)
{
	struct descriptor *d = calloc(1, sizeof(*d));

	d->type = type;
	d->number = -1;
	*to = d;
	alive++;
	return 0;
}

static cudnnStatus_t count_free(void *d)
{
	free(d);
	alive--;
	return 0;
}

static cudnnStatus_t count_set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
	(void)d, (void)type, (void)count;
	if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
		planned_with = (int)(*(struct descriptor *const *)elements)->number;
	return 0;
}

static cudnnStatus_t count_finalize(cudnnBackendDescriptor_t d)
{
	finalized[((struct descriptor *)d)->type]++;
	return 0;
}

static void fill_number(void *to, int64_t value, int64_t *count)
{
	memcpy(to, &value, sizeof(value));
	*count = 1;
}

static cudnnStatus_t count_get(cudnnBackendDescriptor_t const from,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t wanted,
	int64_t *count, void *elements)
{
	struct descriptor *d = (struct descriptor *)from;
	struct descriptor *const *others = elements;
	int32_t small;

	(void)type;
	switch (name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		*count = elements && wanted < results ? wanted : results;
		searches += elements != NULL;
		for (int64_t i = 0; elements && i < *count; i++)
			others[i]->number = i;
		return 0;
	case CUDNN_ATTR_ENGINECFG_ENGINE: others[0]->number = d->number; return 0;
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: fill_number(elements, d->number, count); return 0;
	case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
		*count = KNOBS;
		for (int64_t i = 0; i < KNOBS; i++)
			others[i]->number = i;
		return 0;
	case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
		small = (int32_t)d->number;
		memcpy(elements, &small, sizeof(small));
		*count = 1;
		return 0;
	case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
		fill_number(elements, d->number - 1, count);
		return 0;
	case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		fill_number(elements, 4096, count);
		return 0;
	default: return 3000;
	}
}

static cudnnStatus_t make(void **to)
{
	*to = malloc(1);
	return 0;
}

static cudnnStatus_t end(void *d)
{
	free(d);
	return 0;
}

static size_t version(void)
{
	return 90000;
}

int cudnn_library_open(void *functions, const char *library, struct error *error)
{
	struct cudnn_library *l = functions;

	(void)library, (void)error;
	memset(l, 0, sizeof(*l));
#define TOY(name, function) l->name = (__typeof__(l->name))(void (*)(void))(function)
	TOY(cudnnCreate, make);
	TOY(cudnnDestroy, end);
	TOY(cudnnGetVersion, version);
	TOY(cudnnBackendCreateDescriptor, count_new);
	TOY(cudnnBackendDestroyDescriptor, count_free);
	TOY(cudnnBackendSetAttribute, count_set);
	TOY(cudnnBackendFinalize, count_finalize);
	TOY(cudnnBackendGetAttribute, count_get);
	return 0;
}

/* --- the worker's other parts ------------------------------------------------------------- */

bool mirror_owns(const struct worker *w, uint64_t address, uint64_t bytes)
{
	(void)w;
	(void)address;
	(void)bytes;
	return false;
}

CUresult worker_lacks(struct worker *w, const char *name)
{
	(void)w, (void)name;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object)
{
	return close(w, object);
}

void limits_work(struct worker *w, struct worker_stream *stream)
{
	(void)w, (void)stream;
}

CUresult worker_use(struct worker *w, uint16_t context)
{
	(void)w, (void)context;
	return CUDA_SUCCESS;
}

/* --- frames --------------------------------------------------------------------------------
 */

static CUresult serve(serve_function function, const void *body, size_t bytes, uint32_t reply)
{
	struct request r = {.header = {.body = (uint32_t)bytes, .context = 1},
		.body = body,
		.answer = answer,
		.answer_bytes = reply};

	memset(answer, 0, sizeof(answer));
	return function(&worker, &r);
}

/* Tensor `uid`, an operation with it, the graph; and behind them what the caller puts. */
struct words {
	uint32_t word[1024];
	uint32_t used;
};

static void put(struct words *w, int n, ...)
{
	va_list list;

	va_start(list, n);
	while (n--)
		w->word[w->used++] = va_arg(list, uint32_t);
	va_end(list);
}

static struct words graph_of(uint32_t uid, uint32_t nodes)
{
	struct words w = {.used = 0};

	put(&w, 6, nodes, CUDNN_BACKEND_TENSOR_DESCRIPTOR | 1u << 16,
		CUDNN_ATTR_TENSOR_UNIQUE_ID | CUDNN_TYPE_INT64 << 16, 1, uid, 0);
	put(&w, 7, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_OPERATIONGRAPH_HANDLE | CUDNN_TYPE_HANDLE << 16, 1,
		CUDNN_ATTR_OPERATIONGRAPH_OPS | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16, 1, 1, 0);
	w.used--; /* the count of words of the last attribute is one */
	return w;
}

static const struct wire_vcudaCudnnFind_reply *find(uint32_t uid, uint64_t first)
{
	struct {
		struct wire_vcudaCudnnFind fixed;
		uint32_t tree[1024];
	} body = {.fixed = {.handle = handle, .first = first}};
	struct words w = graph_of(uid, 3);

	put(&w, 7, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_ENGINEHEUR_MODE | CUDNN_TYPE_HEUR_MODE << 16, 1, 0,
		CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16, 1,
		2);
	body.fixed.tree_bytes = 4 * w.used;
	body.fixed.tree = (struct wire_run){sizeof(body.fixed), 4 * w.used};
	memcpy(body.tree, w.word, 4 * (size_t)w.used);
	assert_int_equal(serve(serve_vcudaCudnnFind, &body, sizeof(body.fixed) + 4 * w.used,
				 sizeof(struct wire_vcudaCudnnFind_reply)),
		CUDA_SUCCESS);
	return (const void *)answer;
}

/* A plan of result `number`, as an app names it: graph, knobs, engine, configuration. */
static uint32_t ask_plan(uint32_t uid, uint32_t number)
{
	struct {
		struct wire_vcudaCudnnAsk fixed;
		uint32_t tree[1024];
	} body = {.fixed = {.handle = handle,
			  .attribute = CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
			  .type = CUDNN_TYPE_INT64,
			  .wanted = 1}};
	struct words w = graph_of(uid, 2 + KNOBS + 3);

	for (uint32_t i = 0; i < KNOBS; i++)
		put(&w, 8, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR | 2u << 16,
			CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE | CUDNN_TYPE_KNOB_TYPE << 16, 1, i,
			CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE | CUDNN_TYPE_INT64 << 16, 1, i - 1,
			i ? 0 : UINT32_MAX);
	put(&w, 8, CUDNN_BACKEND_ENGINE_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_ENGINE_OPERATION_GRAPH | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16, 1, 2,
		CUDNN_ATTR_ENGINE_GLOBAL_INDEX | CUDNN_TYPE_INT64 << 16, 1, number, 0);
	put(&w, 6, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_ENGINECFG_ENGINE | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16, 1, 3 + KNOBS,
		CUDNN_ATTR_ENGINECFG_KNOB_CHOICES | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16, KNOBS);
	for (uint32_t i = 0; i < KNOBS; i++)
		put(&w, 1, 3 + i);
	put(&w, 6, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_EXECUTION_PLAN_HANDLE | CUDNN_TYPE_HANDLE << 16, 1,
		CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16,
		1, 4 + KNOBS);
	body.fixed.tree_bytes = 4 * w.used;
	body.fixed.tree = (struct wire_run){sizeof(body.fixed), 4 * w.used};
	memcpy(body.tree, w.word, 4 * (size_t)w.used);
	assert_int_equal(serve(serve_vcudaCudnnAsk, &body, sizeof(body.fixed) + 4 * w.used,
				 sizeof(struct wire_vcudaCudnnAsk_reply)),
		CUDA_SUCCESS);
	return ((const struct wire_vcudaCudnnAsk_reply *)(const void *)answer)->status;
}

/* --- tests ---------------------------------------------------------------------------------
 */

static int start(void **state)
{
	struct wire_cudnnCreate create = {.state.handle = handle, .major = 9};

	(void)state;
	worker.config = &config;
	worker.contexts[1] = (CUcontext)&worker;
	return (int)serve(
		serve_cudnnCreate, &create, sizeof(create), sizeof(struct library_opened));
}

static void a_search_is_read_once(void **state)
{
	const struct wire_vcudaCudnnFind_reply *reply;
	struct cudnn_found found;

	(void)state;
	reply = find(7, 0);
	assert_int_equal(reply->graph, 0);
	assert_int_equal(reply->status, 0);
	assert_int_equal(reply->total, RESULTS);
	assert_int_equal(reply->count, RESULTS); /* all in one answer */
	for (int again = 0; again < 3; again++) {
		struct cudnn_found_bytes in;

		reply = find(7, RESULTS - 2);
		in = (struct cudnn_found_bytes){answer + reply->answer.offset,
			answer + reply->answer.offset + reply->answer.length, false};
		assert_int_equal(reply->count, 2);
		cudnn_found_read(&in, &found);
		assert_int_equal(found.engine, RESULTS - 2);
		assert_int_equal(found.knobs, KNOBS);
		assert_int_equal(found.knob[0].value, -1);
		cudnn_found_read(&in, &found);
		assert_int_equal(found.engine, RESULTS - 1);
		assert_false(in.broken);
		assert_ptr_equal(in.at, in.end);
	}
	assert_int_equal(find(7, RESULTS)->count, 0);
	assert_int_equal(searches, 1);
	assert_int_equal(finalized[CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR], 1);
	assert_int_equal(finalized[CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR], 1);
}

static void the_first_has_its_sizes(void **state)
{
	const struct wire_vcudaCudnnFind_reply *reply = find(7, 0);
	struct cudnn_found_bytes in = {answer + reply->answer.offset,
		answer + reply->answer.offset + reply->answer.length, false};
	struct cudnn_found found;

	(void)state;
	cudnn_found_read(&in, &found);
	assert_int_equal(found.workspace, 4096);
	assert_int_equal(found.shared, -1); /* this library does not know it */
	cudnn_found_read(&in, &found);
	assert_int_equal(found.workspace, -1);
}

static void a_plan_is_made_of_what_was_found(void **state)
{
	int engines = finalized[CUDNN_BACKEND_ENGINE_DESCRIPTOR];

	(void)state;
	for (int again = 0; again < 3; again++)
		assert_int_equal(ask_plan(7, 5), 0);
	assert_int_equal(finalized[CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR], 1);
	assert_int_equal(planned_with, 5);
	assert_int_equal(finalized[CUDNN_BACKEND_ENGINE_DESCRIPTOR], engines);
	assert_int_equal(finalized[CUDNN_BACKEND_ENGINECFG_DESCRIPTOR], 0);
}

static void what_is_kept_has_an_end(void **state)
{
	int most = 0;

	(void)state;
	for (uint32_t uid = 100; uid < 1100; uid++) {
		find(uid, 0);
		most = alive > most ? alive : most;
	}
	/* 43 a shape were 43,000: the oldest have gone. */
	assert_in_range(most, 10000, 17000);
	assert_int_equal(find(7, 0)->status, 0);
}

static void a_tree_that_is_no_search_is_refused(void **state)
{
	struct {
		struct wire_vcudaCudnnFind fixed;
		uint32_t tree[64];
	} body = {.fixed = {.handle = handle}};
	struct words w = graph_of(7, 2);

	(void)state;
	body.fixed.tree_bytes = 4 * w.used;
	body.fixed.tree = (struct wire_run){sizeof(body.fixed), 4 * w.used};
	memcpy(body.tree, w.word, 4 * (size_t)w.used);
	assert_int_equal(serve(serve_vcudaCudnnFind, &body, sizeof(body.fixed) + 4 * w.used,
				 sizeof(struct wire_vcudaCudnnFind_reply)),
		CUDA_ERROR_INVALID_VALUE);
}

static void numbers_that_are_cut_are_seen(void **state)
{
	struct cudnn_found found = {.engine = -3,
		.knobs = 1,
		.knob = {{2, INT64_MIN}},
		.workspace = 1,
		.shared = 2};
	unsigned char bytes[64];
	struct cudnn_found_bytes out = {bytes, bytes + sizeof(bytes), false}, in;
	struct cudnn_found got;
	size_t n;

	(void)state;
	cudnn_found_write(&out, &found);
	n = (size_t)(out.at - bytes);
	in = (struct cudnn_found_bytes){bytes, bytes + n, false};
	cudnn_found_read(&in, &got);
	assert_false(in.broken);
	assert_int_equal(got.engine, -3);
	assert_true(got.knob[0].value == INT64_MIN);
	assert_int_equal(got.shared, 2);
	for (size_t cut = 0; cut < n; cut++) {
		in = (struct cudnn_found_bytes){bytes, bytes + cut, false};
		cudnn_found_read(&in, &got);
		assert_true(in.broken);
	}
	/* A count beyond what there is room for. */
	memset(bytes, 0x7f, sizeof(bytes));
	in = (struct cudnn_found_bytes){bytes, bytes + sizeof(bytes), false};
	cudnn_found_read(&in, &got);
	assert_true(in.broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_is_read_once),
		cmocka_unit_test(the_first_has_its_sizes),
		cmocka_unit_test(a_plan_is_made_of_what_was_found),
		cmocka_unit_test(what_is_kept_has_an_end),
		cmocka_unit_test(a_tree_that_is_no_search_is_refused),
		cmocka_unit_test(numbers_that_are_cut_are_seen),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
