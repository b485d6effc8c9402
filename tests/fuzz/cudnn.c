/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent makes of a hostile app's cuDNN calls and graphs: the worker's code as it is,
 * over a library of toys that read all that a library would read.  An input is an opcode (two
 * bytes), a kind (one; odd: a post), five bytes of nothing, and a body; the names of the handle
 * and of the plan in it are set to ones that exist.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/libraries/cudnn/backend.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cudnn_ops.h"
#include "protocol/generated/cudnn_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct worker worker;
static struct agent_config config;
static unsigned char answer[ANSWER_MAX + 64];
static volatile unsigned sum; /* what the toys read goes somewhere */

/* --- the library -------------------------------------------------------------------------- */

static void touch(const void *bytes, size_t n)
{
	for (size_t i = 0; bytes && i < n; i++)
		sum += ((const unsigned char *)bytes)[i];
}

static cudnnStatus_t nothing(void)
{
	return 0;
}

static size_t version(void)
{
	return 90000;
}

static cudnnStatus_t make(void **descriptor)
{
	*descriptor = malloc(1);
	return *descriptor ? 0 : 4000;
}

static cudnnStatus_t end(void *descriptor)
{
	free(descriptor);
	return 0;
}

static cudnnStatus_t tensor(
	cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, const int dim[], const int s[])
{
	touch(d, 1);
	touch(dim, (size_t)n * 4);
	touch(s, (size_t)n * 4);
	return type == 77 ? 3000 : 0; /* a library may refuse */
}

/* A number that depends on all of them, which may be any. */
static int any_of(int a, int b, int c, int d)
{
	return (int)((unsigned)a + (unsigned)b + (unsigned)c + (unsigned)d);
}

static cudnnStatus_t filter(cudnnFilterDescriptor_t d, cudnnDataType_t type,
	cudnnTensorFormat_t format, int n, const int dim[])
{
	return tensor((void *)d, any_of(type, format, 0, 0), n, dim, dim);
}

static cudnnStatus_t convolution(cudnnConvolutionDescriptor_t d, int n, const int pad[],
	const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
	cudnnDataType_t type)
{
	touch(dilation, (size_t)n * 4);
	return tensor((void *)d, any_of(type, mode, 0, 0), n, pad, stride);
}

static cudnnStatus_t sequences(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
	cudnnRNNDataLayout_t layout, int longest, int batch, int vector, const int lengths[],
	void *fill)
{
	touch(fill, 8);
	return tensor(
		(void *)d, any_of(type, layout, longest, vector), batch, lengths, lengths);
}

static cudnnStatus_t shape(const cudnnTensorDescriptor_t d, int asked, cudnnDataType_t *type,
	int *n, int dim[], int stride[])
{
	touch(d, 1);
	*type = 0;
	*n = 3;
	for (int i = 0; i < 3 && i < asked; i++)
		dim[i] = stride[i] = 2;
	return 0;
}

static cudnnStatus_t ctc(cudnnHandle_t h, const cudnnTensorDescriptor_t probs, const void *p,
	const int labels[], const int label_lengths[], const int input_lengths[], void *costs,
	const cudnnTensorDescriptor_t grads, void *g, cudnnCTCLossAlgo_t algo,
	cudnnCTCLossDescriptor_t d, void *workspace, size_t bytes)
{
	(void)h, (void)p, (void)costs, (void)grads, (void)g, (void)algo, (void)d;
	(void)workspace, (void)bytes;
	if (!probs)
		return 2000;
	for (int i = 0; i < 2; i++) { /* as `shape` says */
		touch(&input_lengths[i], 4);
		for (int l = 0; l < label_lengths[i]; l++)
			touch(labels++, 4);
	}
	return 0;
}

static cudnnStatus_t forward(cudnnHandle_t h, const void *alpha,
	const cudnnTensorDescriptor_t xd, const void *x, const cudnnFilterDescriptor_t wd,
	const void *w, const cudnnConvolutionDescriptor_t cd, cudnnConvolutionFwdAlgo_t algo,
	void *workspace, size_t bytes, const void *beta, const cudnnTensorDescriptor_t yd,
	void *y)
{
	(void)h, (void)x, (void)w, (void)algo, (void)workspace, (void)bytes, (void)y;
	touch(alpha, 8);
	touch(beta, 8);
	touch(xd, 1);
	touch(wd, 1);
	touch(cd, 1);
	touch(yd, 1);
	return 0;
}

static cudnnStatus_t sizes(cudnnHandle_t h, const cudnnRNNDescriptor_t rnn, const int n,
	const cudnnTensorDescriptor_t *x, size_t *bytes)
{
	(void)h;
	touch(rnn, 1);
	for (int i = 0; x && i < n; i++)
		touch(x[i], 1);
	*bytes = 1;
	return 0;
}

static cudnnStatus_t find(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
	const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c,
	const cudnnTensorDescriptor_t y, const int wanted, int *got, struct cudnn_perf *perf)
{
	(void)h, (void)x, (void)w, (void)c, (void)y;
	memset(perf, 1, (size_t)wanted * sizeof(*perf));
	*got = wanted;
	return 0;
}

static cudnnStatus_t backend_make(cudnnBackendDescriptorType_t type, void **descriptor)
{
	return type == 77 ? 3000 : make(descriptor);
}

static cudnnStatus_t backend_set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
	cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
	void *const *others = elements;

	touch(d, 1);
	touch(elements, (size_t)count * cudnn_attribute_bytes((uint32_t)type));
	for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count; i++)
		touch(others[i], 1);
	return name == 777 ? 3000 : 0;
}

static cudnnStatus_t backend_get(cudnnBackendDescriptor_t const d,
	cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t wanted,
	int64_t *count, void *elements)
{
	int64_t have = name == CUDNN_ATTR_ENGINEHEUR_RESULTS ? 40 : name % 5;

	touch(d, 1);
	*count = elements && wanted < have ? wanted : have;
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; elements && i < *count; i++)
			touch(((void **)elements)[i], 1);
	else if (elements)
		memset(elements, 1, (size_t)*count * cudnn_attribute_bytes((uint32_t)type));
	return 0;
}

int cudnn_library_open(void *functions, const char *library, struct error *error)
{
	struct cudnn_library *l = functions;
	cudnnStatus_t (*toy)(void) = nothing;

	(void)library, (void)error;
	memset(l, 0, sizeof(*l));
	for (size_t at = 0; at < sizeof(*l); at += sizeof(toy))
		memcpy((char *)l + at, &toy, sizeof(toy));
#define TOY(name, function) l->name = (__typeof__(l->name))(void (*)(void))(function)
#define KIND(name)                                                                             \
	TOY(cudnnCreate##name##Descriptor, make);                                              \
	TOY(cudnnDestroy##name##Descriptor, end)
	KIND(Tensor);
	KIND(Filter);
	KIND(Convolution);
	KIND(Pooling);
	KIND(Activation);
	KIND(LRN);
	KIND(SpatialTransformer);
	KIND(OpTensor);
	KIND(ReduceTensor);
	KIND(CTCLoss);
	KIND(TensorTransform);
	KIND(Dropout);
	KIND(RNN);
	KIND(RNNData);
	TOY(cudnnCreate, make);
	TOY(cudnnDestroy, end);
	TOY(cudnnGetVersion, version);
	TOY(cudnnGetCudartVersion, version);
	TOY(cudnnSetTensorNdDescriptor, tensor);
	TOY(cudnnSetFilterNdDescriptor, filter);
	TOY(cudnnSetConvolutionNdDescriptor, convolution);
	TOY(cudnnSetRNNDataDescriptor, sequences);
	TOY(cudnnGetTensorNdDescriptor, shape);
	TOY(cudnnCTCLoss, ctc);
	TOY(cudnnConvolutionForward, forward);
	TOY(cudnnGetRNNWorkspaceSize, sizes);
	TOY(cudnnFindConvolutionForwardAlgorithm, find);
	TOY(cudnnBackendCreateDescriptor, backend_make);
	TOY(cudnnBackendDestroyDescriptor, end);
	TOY(cudnnBackendSetAttribute, backend_set);
	TOY(cudnnBackendGetAttribute, backend_get);
	return 0;
}

/* --- the worker's other parts --------------------------------------------------------------
 */

bool mirror_owns(const struct worker *w, uint64_t address, uint64_t bytes)
{
	(void)w;
	(void)address;
	(void)bytes;
	return false;
}

CUresult worker_lacks(struct worker *w, const char *name)
{
	(void)w;
	touch(name, 1);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult closing_do(
	struct worker *w, CUresult (*close)(struct worker *w, void *object), void *object)
{
	return close(w, object);
}

CUresult worker_use(struct worker *w, uint16_t context)
{
	(void)w, (void)context;
	return CUDA_SUCCESS;
}

void limits_work(struct worker *w, struct worker_stream *stream)
{
	(void)w, (void)stream;
}

/* --- frames ---------------------------------------------------------------------------------
 */

static const uint64_t handle = (uint64_t)1 << 32 | (uint64_t)KIND_cudnnHandle
							   << HANDLE_INDEX_BITS;
static const uint64_t plan =
	(uint64_t)1 << 32 | (uint64_t)KIND_cudnnPlan << HANDLE_INDEX_BITS | 1;

static CUresult serve(serve_function function, uint16_t op, uint8_t kind, const void *body,
	uint32_t bytes, uint32_t reply)
{
	struct request r = {.header = {.op = op, .kind = kind, .body = bytes, .context = 1},
		.body = body,
		.answer = answer,
		.answer_bytes = reply};
	CUresult status;

	static uint64_t seq;
	r.header.seq = ++seq;
	memset(answer, 0, sizeof(answer));
	memset(answer + ANSWER_MAX, 0x5a, 64);
	status = function(&worker, &r);
	for (int i = 0; i < 64; i++)
		if (answer[ANSWER_MAX + i] != 0x5a || r.answer_bytes > ANSWER_MAX)
			abort();
	return status;
}

/* A handle, and a plan that takes tensor 7, a float, by value. */
static void start(void)
{
	static const uint32_t tree[] = {2, CUDNN_BACKEND_TENSOR_DESCRIPTOR | 4u << 16,
		CUDNN_ATTR_TENSOR_DATA_TYPE | CUDNN_TYPE_DATA_TYPE << 16, 1, 0,
		CUDNN_ATTR_TENSOR_DIMENSIONS | CUDNN_TYPE_INT64 << 16, 1, 1, 0,
		CUDNN_ATTR_TENSOR_UNIQUE_ID | CUDNN_TYPE_INT64 << 16, 1, 7, 0,
		CUDNN_ATTR_TENSOR_IS_BY_VALUE | CUDNN_TYPE_BOOLEAN << 16, 1, 1,
		CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR | 2u << 16,
		CUDNN_ATTR_EXECUTION_PLAN_HANDLE | CUDNN_TYPE_HANDLE << 16, 1,
		CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16,
		1, 1};
	struct {
		struct wire_vcudaCudnnAsk fixed;
		uint32_t tree[sizeof(tree) / 4];
	} ask = {.fixed = {.handle = handle,
			 .plan = plan,
			 .attribute = CUDNN_ASK_NOTHING,
			 .tree_bytes = sizeof(tree),
			 .tree = {sizeof(ask.fixed), sizeof(tree)}}};
	struct wire_cudnnCreate create = {.state.handle = handle, .major = 9};

	memcpy(ask.tree, tree, sizeof(tree));
	worker.config = &config;
	worker.contexts[1] = (CUcontext)&worker;
	if (serve(serve_cudnnCreate, OP_cudnnCreate, FRAME_CALL, &create, sizeof(create),
		    sizeof(struct library_opened)) ||
		serve(serve_vcudaCudnnAsk, OP_vcudaCudnnAsk, FRAME_CALL, &ask, sizeof(ask),
			sizeof(struct wire_vcudaCudnnAsk_reply)) ||
		((struct wire_vcudaCudnnAsk_reply *)(void *)answer)->status)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct serve_entry *entry;
	unsigned char *body;
	uint16_t op;
	uint8_t kind;

	if (!worker.config)
		start();
	if (n < 16 || n > FRAME_BODY_MAX)
		return 0;
	memcpy(&op, data, sizeof(op));
	kind = data[2] & 1 ? FRAME_POST : FRAME_CALL;
	n -= 8;
	/* To the byte, so that reading behind it is seen; malloc aligns to 16. */
	body = malloc(n);
	if (!body)
		return 0;
	memcpy(body, data + 8, n);
	memcpy(body, &handle, sizeof(handle));
	entry = cudnn_serve_find(op);
	if (op == OP_vcudaCudnnAsk && n >= sizeof(struct wire_vcudaCudnnAsk)) {
		memset(body + offsetof(struct wire_vcudaCudnnAsk, plan), 0, 8);
		serve(serve_vcudaCudnnAsk, op, FRAME_CALL, body, (uint32_t)n,
			sizeof(struct wire_vcudaCudnnAsk_reply));
	} else if (op == OP_vcudaCudnnFind && n >= sizeof(struct wire_vcudaCudnnFind)) {
		serve(serve_vcudaCudnnFind, op, FRAME_CALL, body, (uint32_t)n,
			sizeof(struct wire_vcudaCudnnFind_reply));
	} else if (entry && n >= entry->body_bytes &&
		   entry->flags & (kind == FRAME_POST ? SERVE_POST : SERVE_CALL)) {
		memset(body + 8, 0, 8); /* the legacy stream */
		if (op == OP_cudnnBackendExecute && sizeof(struct library_body) + 8 <= n)
			memcpy(body + sizeof(struct library_body), &plan, sizeof(plan));
		serve(entry->serve, op, kind, body, (uint32_t)n, entry->reply_bytes);
	}
	free(body);
	return 0;
}
