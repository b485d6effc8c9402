/* SPDX-License-Identifier: Apache-2.0
 *
 * Linking PTX: the inputs' texts one after another under the first one's header.  What an input
 * keeps to itself (definitions that are neither .visible nor .weak nor .common) is renamed
 * where another input has the same name; what it declares .extern and another defines is left
 * out.
 */
#include "softgpu/driver/softgpu.h"

#include "softgpu/driver/module/fatbin.h"
#include "softgpu/driver/module/linker_text.h"
#include "softgpu/driver/module/placed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
	struct link_text text;
	struct link_text libraries; /* what is taken only if another input calls it */
	struct jit_log log;
	char *placed; /* what its result begins with: where variables are */
	char *result;
	bool failed; /* two inputs define the same */
};

static CUresult link_check(CUlinkState state)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	return object_is(state, OBJECT_LINK) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
	CUlinkState *stateOut)
{
	struct CUlinkState_st *state;
	struct CUctx_st *context;
	struct placed placed;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!stateOut || (numOptions && (!options || !optionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	ret = placed_read(&placed, numOptions, options, optionValues);
	if (ret)
		return ret;
	state = calloc(1, sizeof(*state));
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret = placed_text(&placed, "", &state->placed);
	if (!ret && !object_add(state, OBJECT_LINK))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	if (ret) {
		free(state->placed);
		free(state);
		return ret;
	}
	image_log_init(&state->log, numOptions, options, optionValues);
	*stateOut = state;
	return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
	CUlinkState *stateOut)
{
	return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

/* libcudadevrt, which nvcc links into a program whose kernels launch kernels: the interpreter
 * has its functions, and nobody calls what else is in it. */
static bool is_device_runtime(const struct image *image)
{
	static const char name[] = "__cudaCDP2GetParameterBufferV2";

	return linker_text_defines(image->text, name, strlen(name));
}

static void tell_name(struct CUlinkState_st *state, const char *why, const char *name, size_t n)
{
	char line[200];

	snprintf(line, sizeof(line), "link: %s '%.*s'", why, (int)(n < 150 ? n : 150), name);
	image_log_error(&state->log, line);
}

/* What is wrong with a text is told by the call that adds it, where the text needs no other. */
static CUresult check_alone(struct CUlinkState_st *state, const struct image *image)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	CUresult ret;

	if (!linker_text_whole(image->text) || soft_context_current(&context))
		return CUDA_SUCCESS;
	ret = module_from_text(context, image->text, image->text_size, &state->log, &module);
	if (ret)
		return ret == CUDA_ERROR_INVALID_PTX ? ret : CUDA_SUCCESS;
	pthread_mutex_lock(&context_lock);
	module_free(module);
	pthread_mutex_unlock(&context_lock);
	return CUDA_SUCCESS;
}

/* As natively, told by the input that brings it, and by all that comes after. */
static CUresult refuse_twice(struct CUlinkState_st *state)
{
	size_t n;
	const char *twice = linker_text_twice(&state->text, &n);

	if (!twice)
		return CUDA_SUCCESS;
	tell_name(state, "multiple definition of", twice, n);
	state->failed = true;
	return CUDA_ERROR_UNKNOWN;
}

/* The PTX of an archive's members; one without any has nothing to give here. */
static CUresult add_library(struct CUlinkState_st *state, const void *data, size_t size)
{
	const void *member, *fat;
	size_t at = 0, n, room;
	CUresult ret = CUDA_SUCCESS;

	if (!fatbin_archive_next(data, size, &at, &member, &n))
		return CUDA_ERROR_INVALID_IMAGE;
	do {
		struct fatbin_entry entry;
		size_t expanded;
		char *text;

		fat = fatbin_of_object(member, n, &room);
		room = fat ? soft_fatbin_size(fat, room) : 0;
		if (!room || !fatbin_pick_ptx(fat, room, IMAGE_ARCH, &entry))
			continue;
		text = fatbin_expand(&entry, &expanded);
		if (!text)
			ret = CUDA_ERROR_INVALID_IMAGE;
		else if (!linker_text_add(&state->libraries, text, expanded))
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		free(text);
	} while (!ret && fatbin_archive_next(data, size, &at, &member, &n));
	return ret;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct image image;
	size_t room;
	char line[200];
	CUresult ret = link_check(state);

	(void)options, (void)optionValues;
	if (ret)
		return ret;
	if (!data || !size || state->result || (type == CU_JIT_INPUT_CUBIN && numOptions))
		return CUDA_ERROR_INVALID_VALUE;
	if (state->failed)
		return CUDA_ERROR_UNKNOWN;
	switch (type) {
	case CU_JIT_INPUT_PTX:
	case CU_JIT_INPUT_FATBINARY:
	case CU_JIT_INPUT_OBJECT: break;
	case CU_JIT_INPUT_LIBRARY: return add_library(state, data, size);
	case CU_JIT_INPUT_CUBIN:
	case CU_JIT_INPUT_NVVM:
		snprintf(line, sizeof(line), "link: %s: only PTX can be linked",
			name ? name : "input");
		image_log_error(&state->log, line);
		return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (type == CU_JIT_INPUT_OBJECT && fatbin_of_object(data, size, &room)) {
		data = (void *)(uintptr_t)fatbin_of_object(data, size, &room);
		size = room;
	}
	ret = soft_image_read(data, size, &image, &state->log);
	if (!ret && !image.text) {
		snprintf(line, sizeof(line),
			"link: %s: machine code only: only PTX can be linked",
			name ? name : "input");
		image_log_error(&state->log, line);
		ret = CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (!ret && type == CU_JIT_INPUT_PTX)
		ret = check_alone(state, &image);
	if (!ret && !is_device_runtime(&image) &&
		!linker_text_add(&state->text, image.text, image.text_size))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	image_free(&image);
	return ret ? ret : refuse_twice(state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return cuLinkAddData_v2(
		state, type, data, size, name, numOptions, options, optionValues);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	size_t size;
	void *data;
	CUresult ret = link_check(state);

	if (!ret)
		ret = image_read_file(path, &data, &size);
	if (ret)
		return ret;
	ret = cuLinkAddData_v2(
		state, type, data, size, path, numOptions, options, optionValues);
	free(data);
	return ret;
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}

/* Takes from the libraries what is missing, until nothing is or they do not have it. */
static CUresult take_from_libraries(
	struct CUlinkState_st *state, const char **missing, size_t *n)
{
	struct link_text *libraries = &state->libraries;

	while ((*missing = linker_text_missing(&state->text, n))) {
		size_t i = 0;

		while (i < libraries->count &&
			!linker_text_defines(libraries->inputs[i], *missing, *n))
			i++;
		if (i == libraries->count)
			return CUDA_SUCCESS;
		if (!linker_text_add(
			    &state->text, libraries->inputs[i], strlen(libraries->inputs[i])))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* NULL: no memory. */
static char *result_text(const struct CUlinkState_st *state)
{
	char *linked = linker_text_finish(&state->text, state->log.max_registers), *whole;

	if (!linked || !*state->placed)
		return linked;
	if (asprintf(&whole, "%s\n%s", state->placed, linked) < 0)
		whole = NULL;
	free(linked);
	return whole;
}

/* The image is the linked PTX; cuModuleLoadData takes it.  It lives as long as the state. */
CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	CUresult ret = link_check(state);
	const char *missing;
	size_t n;

	if (ret)
		return ret;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (state->failed)
		return CUDA_ERROR_UNKNOWN;
	ret = take_from_libraries(state, &missing, &n);
	if (ret)
		return ret;
	if (missing) {
		tell_name(state, "undefined reference to", missing, n);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (!state->result)
		state->result = result_text(state);
	if (!state->result)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*cubinOut = state->result;
	if (sizeOut)
		*sizeOut = strlen(state->result) + 1;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	CUresult ret = link_check(state);

	if (ret)
		return ret;
	object_remove(state);
	linker_text_fini(&state->text);
	linker_text_fini(&state->libraries);
	free(state->placed);
	free(state->result);
	free(state);
	return CUDA_SUCCESS;
}
