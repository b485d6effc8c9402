/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of curand.h: generators, what they are set to, and their numbers as tasks.
 */
#include <cuda.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/task.h"
#include "softgpu/rand/rand.h"

#define RAND_EXPORT __attribute__((visibility("default")))
#define RAND_VERSION 10400 /* of CUDA 13.0 */
#define METHOD_FAST 9	   /* CURAND_DEVICE_API, and … */
#define METHOD_GAUSS 11

struct generator {
	struct rand_settings set;
	bool on_host;
	bool begin; /* the settings changed: the next task begins anew */
	CUstream stream;
	pthread_mutex_t lock; /* of the engine: graphs may run in other streams */
	struct rand_engine engine;
	_Atomic bool failed;
	_Atomic unsigned refs; /* the program's, and each task's */
};

/* One call, in a stream or a graph. */
struct task {
	struct generator *g;
	CUcontext context;
	struct rand_settings set;
	bool begin;
	struct rand_order order;
	struct rand_discrete discrete;
	void *to;
	uint64_t bytes;
};

static void generator_drop(struct generator *g)
{
	if (atomic_fetch_sub(&g->refs, 1) != 1)
		return;
	rand_engine_end(&g->engine);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static void task_drop(void *argument)
{
	struct task *t = argument;

	rand_discrete_free(&t->discrete);
	generator_drop(t->g);
	free(t);
}

static void task_fill(struct task *t)
{
	struct generator *g = t->g;

	pthread_mutex_lock(&g->lock);
	if (t->begin && !rand_engine_begin(&g->engine, &t->set))
		g->failed = true;
	t->begin = false; /* a graph's next run goes on from here */
	if (!g->failed) {
		t->order.discrete = &t->discrete;
		rand_engine_fill(&g->engine, &t->order, t->to);
	}
	pthread_mutex_unlock(&g->lock);
}

static void task_run(void *argument)
{
	struct task *t = argument;

	cuCtxSetCurrent(t->context);
	cuSoftgpuTaskBegin();
	if (!t->bytes || (!((uintptr_t)t->to % 4) &&
				 cuSoftgpuTaskReaches((uint64_t)(uintptr_t)t->to, t->bytes)))
		task_fill(t);
	else
		t->g->failed = true;
	cuSoftgpuTaskEnd();
}

static void task_run_and_drop(void *argument)
{
	task_run(argument);
	task_drop(argument);
}

/* In a graph the task runs as often as the graph does, and goes with it. */
static int task_capture(struct task *t, CUgraph graph)
{
	CUstream stream = t->g->stream;
	CUuserObject object;

	if (cuUserObjectCreate(&object, t, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		task_drop(t);
		return RAND_LAUNCH_FAILURE;
	}
	if (cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
		cuUserObjectRelease(object, 1);
		return RAND_LAUNCH_FAILURE;
	}
	return cuLaunchHostFunc(stream, task_run, t) ? RAND_LAUNCH_FAILURE : RAND_SUCCESS;
}

static int task_submit(struct task *t)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	CUgraph graph;

	if (!cuCtxGetCurrent(&t->context) && !cuStreamGetCaptureInfo(t->g->stream, &capturing,
						     NULL, &graph, NULL, NULL, NULL)) {
		if (capturing == CU_STREAM_CAPTURE_STATUS_ACTIVE)
			return task_capture(t, graph);
		if (!capturing && !cuLaunchHostFunc(t->g->stream, task_run_and_drop, t))
			return RAND_SUCCESS;
	}
	task_drop(t);
	return RAND_LAUNCH_FAILURE;
}

static size_t width(enum rand_what what)
{
	return what == RAND_BITS_64 || what == RAND_UNIFORM_DOUBLE ||
			       what == RAND_NORMAL_DOUBLE || what == RAND_LOG_NORMAL_DOUBLE
		       ? 8
		       : 4;
}

/* What NVIDIA's library refuses before it looks at the memory. */
static int order_check(const struct generator *g, const struct rand_order *order)
{
	int type = g->set.type;
	bool normal = order->what >= RAND_NORMAL && order->what <= RAND_LOG_NORMAL_DOUBLE;

	if (g->failed)
		return RAND_LAUNCH_FAILURE;
	if (!order->n)
		return RAND_SUCCESS;
	if (order->what == RAND_BITS_64 ? !rand_is_64(type)
					: order->what == RAND_BITS && rand_is_64(type))
		return RAND_TYPE_ERROR;
	if (order->what == RAND_POISSON && !(order->mean > 0 && order->mean <= RAND_LAMBDA_MAX))
		return RAND_OUT_OF_RANGE;
	if (rand_is_quasi(type) && order->n % g->set.dimensions)
		return RAND_LENGTH_NOT_MULTIPLE;
	if (normal && order->n % 2 && (type == RAND_XORWOW || type == RAND_MRG32K3A))
		return RAND_LENGTH_NOT_MULTIPLE;
	return RAND_SUCCESS;
}

static int order_run(struct generator *g, struct rand_order order, void *to)
{
	struct task *t;
	int status;

	if (!g)
		return RAND_NOT_INITIALIZED;
	status = order_check(g, &order);
	if (status || (!order.n && !g->begin))
		return status;
	t = calloc(1, sizeof(*t));
	if (!t || __builtin_mul_overflow(order.n, width(order.what), &t->bytes)) {
		free(t);
		return RAND_ALLOCATION_FAILED;
	}
	if (order.what == RAND_POISSON && !rand_discrete_make(&t->discrete, order.mean)) {
		free(t);
		return RAND_ALLOCATION_FAILED;
	}
	t->g = g;
	atomic_fetch_add(&g->refs, 1);
	t->set = g->set;
	t->begin = g->begin;
	t->order = order;
	t->to = to;
	g->begin = false;
	if (!g->on_host)
		return task_submit(t);
	task_fill(t);
	task_drop(t);
	return g->failed ? RAND_ALLOCATION_FAILED : RAND_SUCCESS;
}

/* ---- generators ---- */

static bool type_known(int type)
{
	return type == RAND_XORWOW || type == RAND_MRG32K3A || type == RAND_MTGP32 ||
	       type == RAND_MT19937 || type == RAND_PHILOX ||
	       (type >= RAND_SOBOL32 && type <= RAND_SCRAMBLED_SOBOL64);
}

static int generator_new(struct generator **to, int type, bool on_host)
{
	struct generator *g;

	type = type == RAND_DEFAULT ? RAND_XORWOW : type == RAND_QUASI ? RAND_SOBOL32 : type;
	if (!to || !type_known(type))
		return RAND_INITIALIZATION_FAILED;
	g = calloc(1, sizeof(*g));
	if (!g)
		return RAND_ALLOCATION_FAILED;
	g->set = (struct rand_settings){
		.type = type, .ordering = RAND_ORDER_DEFAULT, .dimensions = 1};
	g->on_host = on_host;
	g->begin = true;
	g->refs = 1;
	pthread_mutex_init(&g->lock, NULL);
	*to = g;
	return RAND_SUCCESS;
}

/* A function of the library's, declared before it is defined. */
#define CALL(NAME, ...)                                                                        \
	RAND_EXPORT int NAME(__VA_ARGS__);                                                     \
	RAND_EXPORT int NAME(__VA_ARGS__)

CALL(curandCreateGenerator, struct generator **generator, int type)
{
	return generator_new(generator, type, false);
}

CALL(curandCreateGeneratorHost, struct generator **generator, int type)
{
	return generator_new(generator, type, true);
}

CALL(curandDestroyGenerator, struct generator *generator)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	if (!generator->on_host)
		cuCtxSynchronize(); /* as NVIDIA's does */
	generator_drop(generator);
	return RAND_SUCCESS;
}

CALL(curandSetStream, struct generator *generator, CUstream stream)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	generator->stream = stream;
	return RAND_SUCCESS;
}

CALL(curandSetPseudoRandomGeneratorSeed, struct generator *generator, unsigned long long seed)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	if (rand_is_quasi(generator->set.type))
		return RAND_TYPE_ERROR;
	generator->set.seed = seed;
	generator->begin = true;
	return RAND_SUCCESS;
}

CALL(curandSetGeneratorOffset, struct generator *generator, unsigned long long offset)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	if (generator->set.type == RAND_MTGP32 || generator->set.type == RAND_MT19937)
		return RAND_TYPE_ERROR;
	generator->set.offset = offset;
	generator->begin = true;
	return RAND_SUCCESS;
}

static bool ordering_suits(const struct generator *g, int ordering)
{
	int type = g->set.type;

	switch (ordering) {
	case RAND_BEST: return !(g->on_host && type == RAND_MT19937);
	case RAND_ORDER_DEFAULT:
	case RAND_LEGACY: return true;
	case RAND_SEEDED: return type == RAND_XORWOW;
	case RAND_DYNAMIC: return !g->on_host && type != RAND_MT19937;
	default: return false;
	}
}

CALL(curandSetGeneratorOrdering, struct generator *generator, int ordering)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	if (rand_is_quasi(generator->set.type) ? ordering != RAND_QUASI_DEFAULT
					       : !ordering_suits(generator, ordering))
		return RAND_OUT_OF_RANGE;
	generator->set.ordering = ordering;
	generator->begin = true;
	return RAND_SUCCESS;
}

CALL(curandSetQuasiRandomGeneratorDimensions, struct generator *generator, unsigned dimensions)
{
	if (!generator)
		return RAND_NOT_INITIALIZED;
	if (!rand_is_quasi(generator->set.type))
		return RAND_TYPE_ERROR;
	if (!dimensions || dimensions > RAND_DIMENSIONS)
		return RAND_OUT_OF_RANGE;
	generator->set.dimensions = dimensions;
	generator->begin = true;
	return RAND_SUCCESS;
}

CALL(curandGenerateSeeds, struct generator *generator)
{
	return order_run(generator, (struct rand_order){.what = RAND_UNIFORM}, NULL);
}

/* ---- numbers ---- */

CALL(curandGenerate, struct generator *generator, unsigned *to, size_t n)
{
	return order_run(generator, (struct rand_order){.what = RAND_BITS, .n = n}, to);
}

CALL(curandGenerateLongLong, struct generator *generator, unsigned long long *to, size_t n)
{
	return order_run(generator, (struct rand_order){.what = RAND_BITS_64, .n = n}, to);
}

CALL(curandGenerateUniform, struct generator *generator, float *to, size_t n)
{
	return order_run(generator, (struct rand_order){.what = RAND_UNIFORM, .n = n}, to);
}

CALL(curandGenerateUniformDouble, struct generator *generator, double *to, size_t n)
{
	return order_run(
		generator, (struct rand_order){.what = RAND_UNIFORM_DOUBLE, .n = n}, to);
}

/* Four forms of normal numbers. */
#define NORMAL(NAME, WHAT, REAL)                                                               \
	CALL(NAME, struct generator *generator, REAL *to, size_t n, REAL mean, REAL deviation) \
	{                                                                                      \
		return order_run(generator,                                                    \
			(struct rand_order){.what = (WHAT),                                    \
				.n = n,                                                        \
				.mean = (double)mean,                                          \
				.deviation = (double)deviation},                               \
			to);                                                                   \
	}
NORMAL(curandGenerateNormal, RAND_NORMAL, float)
NORMAL(curandGenerateNormalDouble, RAND_NORMAL_DOUBLE, double)
NORMAL(curandGenerateLogNormal, RAND_LOG_NORMAL, float)
NORMAL(curandGenerateLogNormalDouble, RAND_LOG_NORMAL_DOUBLE, double)

CALL(curandGeneratePoisson, struct generator *generator, unsigned *to, size_t n, double lambda)
{
	return order_run(generator,
		(struct rand_order){.what = RAND_POISSON, .n = n, .mean = lambda}, to);
}

CALL(curandGeneratePoissonMethod, struct generator *generator, unsigned *to, size_t n,
	double lambda, int method)
{
	if (generator && ((method != METHOD_FAST && method != METHOD_GAUSS) ||
				 generator->set.type == RAND_MT19937))
		return RAND_INTERNAL_ERROR;
	return curandGeneratePoisson(generator, to, n, lambda);
}

/* ---- tables and versions ---- */

static int give(const void **to, const void *table)
{
	*to = table;
	return table ? RAND_SUCCESS : RAND_ALLOCATION_FAILED;
}

CALL(curandGetDirectionVectors32, const void **to, int set)
{
	return set < 101 || set > 102 ? RAND_OUT_OF_RANGE
				      : give(to, rand_vector_table(false, set == 102));
}

CALL(curandGetDirectionVectors64, const void **to, int set)
{
	return set < 103 || set > 104 ? RAND_OUT_OF_RANGE
				      : give(to, rand_vector_table(true, set == 104));
}

CALL(curandGetScrambleConstants32, const void **to)
{
	return give(to, rand_constant_table(false));
}

CALL(curandGetScrambleConstants64, const void **to)
{
	return give(to, rand_constant_table(true));
}

CALL(curandGetVersion, int *version)
{
	*version = RAND_VERSION;
	return RAND_SUCCESS;
}

CALL(curandGetProperty, int type, int *value)
{
	const int parts[] = {RAND_VERSION / 1000, RAND_VERSION / 100 % 10, RAND_VERSION % 100};

	if (type < 0 || type > 2)
		return RAND_OUT_OF_RANGE;
	*value = parts[type];
	return RAND_SUCCESS;
}
