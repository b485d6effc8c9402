/* SPDX-License-Identifier: Apache-2.0
 *
 * The exported functions of the graph API: see backend.h.
 */
#include "shim/libraries/cudnn/backend.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/cudnn_hand.h"

#define MAGIC 0x67726470u

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* --- descriptors and their attributes ------------------------------------------------------
 */

struct backend *backend_new(uint32_t type)
{
	struct backend *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->magic = MAGIC;
	b->type = (uint16_t)type;
	b->holders = 1;
	return b;
}

struct backend *backend_of(const void *descriptor)
{
	struct backend *b = (struct backend *)(uintptr_t)descriptor;

	return b && b->magic == MAGIC ? b : NULL;
}

void backend_hold(struct backend *b)
{
	__atomic_fetch_add(&b->holders, 1, __ATOMIC_RELAXED);
}

static void empty(struct backend_attribute *a)
{
	struct backend **held = a->data;

	if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (uint32_t i = 0; i < a->count; i++)
			if (held[i])
				backend_drop(held[i]);
	free(a->data);
	*a = (struct backend_attribute){0};
}

static void forget_all(struct backend *b)
{
	for (uint32_t i = 0; i < b->attributes; i++)
		empty(&b->attribute[i]);
	free(b->attribute);
	b->attribute = NULL;
	b->attributes = 0;
	if (b->plan)
		plan_drop(b->plan);
	b->plan = NULL;
	results_free(b->results);
	b->results = NULL;
	b->finalized = false;
}

void backend_drop(struct backend *b)
{
	if (__atomic_sub_fetch(&b->holders, 1, __ATOMIC_ACQ_REL))
		return;
	forget_all(b);
	b->magic = 0;
	free(b);
}

struct backend_attribute *backend_find(const struct backend *b, uint32_t name)
{
	for (uint32_t i = 0; i < b->attributes; i++)
		if (b->attribute[i].name == name)
			return &b->attribute[i];
	return NULL;
}

/* A place for it, in the order of names. */
static struct backend_attribute *place(struct backend *b, uint32_t name)
{
	struct backend_attribute *a = backend_find(b, name);
	uint32_t at = 0;

	if (a) {
		empty(a);
		a->name = (uint16_t)name;
		return a;
	}
	if (b->attributes == CUDNN_TREE_ATTRIBUTES)
		return NULL;
	a = realloc(b->attribute, (b->attributes + 1u) * sizeof(*a));
	if (!a)
		return NULL;
	b->attribute = a;
	while (at < b->attributes && a[at].name < name)
		at++;
	memmove(a + at + 1, a + at, (b->attributes - at) * sizeof(*a));
	b->attributes++;
	a[at] = (struct backend_attribute){.name = (uint16_t)name};
	return a + at;
}

cudnnStatus_t backend_set(
	struct backend *b, uint32_t name, uint32_t type, uint32_t count, const void *elements)
{
	size_t bytes = (size_t)count * cudnn_attribute_bytes(type);
	struct backend *const *held = elements;
	void *data = malloc(bytes ? bytes : 1);
	struct backend_attribute *a;

	if (!data)
		return CUDNN_STATUS_ALLOC_FAILED;
	if (bytes)
		memcpy(data, elements, bytes);
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (uint32_t i = 0; i < count; i++)
			if (held[i])
				backend_hold(held[i]);
	a = place(b, name);
	if (!a) {
		struct backend_attribute lost = {
			.type = (uint16_t)type, .count = count, .data = data};

		empty(&lost);
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "too many attributes");
	}
	a->type = (uint16_t)type;
	a->count = count;
	a->data = data;
	return CUDNN_STATUS_SUCCESS;
}

/* --- the API --------------------------------------------------------------------------------
 */

cudnnStatus_t hand_cudnnBackendCreateDescriptor(
	cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t *descriptor)
{
	if (!descriptor)
		return bad("nowhere to put the descriptor");
	if (descriptorType < 0 || descriptorType > CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR)
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "an unknown kind of descriptor");
	*descriptor = backend_new((uint32_t)descriptorType);
	return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t hand_cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	struct backend *b = backend_of(descriptor);

	if (!descriptor)
		return CUDNN_STATUS_SUCCESS;
	if (!b)
		return bad("no backend descriptor");
	backend_drop(b);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor)
{
	struct backend *b = backend_of(descriptor);

	if (!b)
		return bad("no backend descriptor");
	forget_all(b);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
	cudnnBackendAttributeName_t attributeName, cudnnBackendAttributeType_t attributeType,
	int64_t elementCount, const void *arrayOfElements)
{
	struct backend *b = backend_of(descriptor);
	struct backend *const *others = arrayOfElements;
	cudnnStatus_t status;
	bool pack;

	if (!b)
		return bad("no backend descriptor");
	if (b->finalized)
		return cudnn_fault(CUDNN_STATUS_NOT_INITIALIZED,
			"the descriptor is finalized: its attributes stay");
	if (attributeName < 0 || attributeName > UINT16_MAX || elementCount < 0 ||
		(elementCount && !arrayOfElements))
		return bad("an attribute without a value, or an unknown one");
	if (attributeType < 0 || !cudnn_attribute_bytes((uint32_t)attributeType) ||
		(uint64_t)elementCount > CUDNN_TREE_BYTES)
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED,
			"an attribute of an unknown type, or too long");
	status = attribute_check(b->type, (uint32_t)attributeName, (uint32_t)attributeType);
	if (status)
		return status;
	pack = b->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
	if (attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; i < elementCount; i++) {
			const struct backend *other = backend_of(others[i]);

			if (others[i] && (!other || other == b))
				return bad("an attribute that is no backend descriptor");
			if (other && !other->finalized && !pack)
				return cudnn_fault(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
					"an attribute that is not finalized yet");
		}
	return backend_set(b, (uint32_t)attributeName, (uint32_t)attributeType,
		(uint32_t)elementCount, arrayOfElements);
}

/* What a descriptor needs before it can be used, as far as no library is asked. */
static cudnnStatus_t check(const struct backend *b)
{
	static const uint16_t tensor[] = {CUDNN_ATTR_TENSOR_DATA_TYPE,
		CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES,
		CUDNN_ATTR_TENSOR_UNIQUE_ID};

	if (b->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
		return CUDNN_STATUS_SUCCESS;
	for (size_t i = 0; i < sizeof(tensor) / sizeof(tensor[0]); i++)
		if (!backend_find(b, tensor[i]))
			return bad("a tensor lacks its type, sizes, strides or name");
	if (backend_find(b, CUDNN_ATTR_TENSOR_DIMENSIONS)->count !=
		backend_find(b, CUDNN_ATTR_TENSOR_STRIDES)->count)
		return bad("a tensor has other numbers of sizes and strides");
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
	struct backend *b = backend_of(descriptor);
	struct ask ask = {.attribute = CUDNN_ASK_NOTHING};
	uint8_t digest[32];
	cudnnStatus_t status;

	if (!b)
		return bad("no backend descriptor");
	if (b->finalized)
		return bad("the descriptor is finalized already");
	switch (b->type) {
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: status = cudnn_graph_finalize(b); break;
	case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
	case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: status = backend_ask(b, &ask, digest); break;
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: status = results_finalize(b); break;
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: status = plan_finalize(b); break;
	default: status = check(b); break;
	}
	b->finalized = !status;
	return status;
}

/* Descriptors that the app brings are filled: they get the attributes of ours. */
static cudnnStatus_t fill(struct backend *to, const struct backend *from)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (!to || to == from)
		return to ? CUDNN_STATUS_SUCCESS : bad("no backend descriptor to fill");
	if (to->type != from->type)
		return bad("a descriptor of another kind to fill");
	forget_all(to);
	for (uint32_t i = 0; !status && i < from->attributes; i++) {
		const struct backend_attribute *a = &from->attribute[i];

		status = backend_set(to, a->name, a->type, a->count, a->data);
		if (!status)
			backend_find(to, a->name)->told = a->told;
	}
	to->finalized = from->finalized;
	return status;
}

static cudnnStatus_t fill_all(struct backend *const *from, uint32_t count, int64_t requested,
	int64_t *elementCount, void *arrayOfElements)
{
	void **to = arrayOfElements;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	uint32_t n = requested < count ? (uint32_t)requested : count;

	for (uint32_t i = 0; to && !status && i < n; i++)
		status = fill(backend_of(to[i]), from[i]);
	if (elementCount && !status)
		*elementCount = to ? n : count;
	return status;
}

/* Asks the agent for an attribute that is no descriptor, as long as it may be. */
static cudnnStatus_t ask_all(const struct backend *b, uint32_t name, uint32_t type,
	int64_t requested, int64_t *elementCount, unsigned char *to)
{
	struct ask ask = {.attribute = name, .type = type};
	uint32_t each = cudnn_attribute_bytes(type);
	uint64_t got = 0;
	uint8_t digest[32];
	cudnnStatus_t status;

	do {
		ask.first = got;
		ask.wanted = to ? (uint64_t)requested - got : 0;
		status = backend_ask(b, &ask, digest);
		if (status)
			return status;
		if (!to || !ask.count)
			break;
		if ((uint64_t)ask.count * each > ask.bytes ||
			ask.count > requested - (int64_t)got)
			return cudnn_fault(CUDNN_STATUS_INTERNAL_ERROR, "an answer too long");
		memcpy(to + got * each, ask.answer, (size_t)ask.count * each);
		got += ask.count;
	} while (got < (uint64_t)requested && got < ask.total);
	if (elementCount)
		*elementCount = to ? (int64_t)got : (int64_t)ask.total;
	return CUDNN_STATUS_SUCCESS;
}

/* The agent's descriptors, each read into one of the app's. */
static cudnnStatus_t ask_descriptors(const struct backend *b, uint32_t name, int64_t requested,
	int64_t *elementCount, void **to)
{
	struct ask ask = {.attribute = name, .type = CUDNN_TYPE_BACKEND_DESCRIPTOR};
	uint64_t got = 0;
	uint8_t digest[32];
	cudnnStatus_t status;

	do {
		const unsigned char *at = ask.answer;

		ask.first = got;
		ask.wanted = to ? (uint64_t)requested - got : 0;
		status = backend_ask(b, &ask, digest);
		for (uint32_t i = 0; to && !status && i < ask.count; i++) {
			uint32_t words = 0;
			struct backend *into = backend_of(to[got]);

			memcpy(&words, at, sizeof(words));
			status = into ? backend_read(into,
						(const uint32_t *)(const void *)at + 1, words)
				      : bad("no backend descriptor to fill");
			at += 4 * (size_t)(words + 1);
			got += !status;
		}
	} while (to && !status && ask.count && got < (uint64_t)requested && got < ask.total);
	if (elementCount && !status)
		*elementCount = to ? (int64_t)got : (int64_t)ask.total;
	return status;
}

cudnnStatus_t hand_cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
	cudnnBackendAttributeName_t attributeName, cudnnBackendAttributeType_t attributeType,
	int64_t requestedElementCount, int64_t *elementCount, void *arrayOfElements)
{
	struct backend *b = backend_of(descriptor);
	const struct backend_attribute *a;
	uint32_t each, n;

	if (!b || !b->finalized)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
			"no backend descriptor, or one that is not finalized");
	each = attributeType < 0 ? 0 : cudnn_attribute_bytes((uint32_t)attributeType);
	if (!each || requestedElementCount < 0 || attributeName < 0)
		return bad("an attribute of an unknown type, or a count below 0");
	if (attributeName == CUDNN_ATTR_ENGINEHEUR_RESULTS && b->results)
		return fill_all(b->results->config, b->results->count, requestedElementCount,
			elementCount, arrayOfElements);
	if (attributeName == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && b->plan) {
		if (elementCount)
			*elementCount = 1;
		if (arrayOfElements && requestedElementCount > 0)
			*(int64_t *)arrayOfElements = plan_workspace(b->plan);
		return CUDNN_STATUS_SUCCESS;
	}
	a = backend_find(b, (uint32_t)attributeName);
	/* A configuration without knobs says so. */
	if (!a && attributeName == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)
		return fill_all(NULL, 0, 0, elementCount, arrayOfElements);
	if (!a && attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return ask_descriptors(b, (uint32_t)attributeName, requestedElementCount,
			elementCount, arrayOfElements);
	if (!a)
		return ask_all(b, (uint32_t)attributeName, (uint32_t)attributeType,
			requestedElementCount, elementCount, arrayOfElements);
	if (a->type != attributeType)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
			"the attribute has another type");
	if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return fill_all(a->data, a->count, requestedElementCount, elementCount,
			arrayOfElements);
	n = requestedElementCount < a->count ? (uint32_t)requestedElementCount : a->count;
	if (arrayOfElements && n)
		memcpy(arrayOfElements, a->data, (size_t)n * each);
	if (elementCount)
		*elementCount = arrayOfElements ? n : a->count;
	return CUDNN_STATUS_SUCCESS;
}
