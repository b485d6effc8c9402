/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/module/kernel_settings.h"

#include <stdlib.h>

#include "shim/driver/context/context.h"
#include "shim/driver/module/function.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/thread.h"

struct kernel_settings {
	struct kernel_settings *next; /* of another device */
	int device;
	_Atomic uint32_t version; /* grows with each change */
	_Atomic uint32_t set;	  /* bit a: attribute a; FUNCTION_CACHE: the cache */
	_Atomic int attributes[FUNCTION_ATTRIBUTES];
	_Atomic int cache; /* CUfunc_cache */
};

static struct kernel_settings *settings_on(const struct kernel *kernel, int device)
{
	struct kernel_settings *s =
		atomic_load_explicit(&kernel->settings, memory_order_acquire);

	while (s && s->device != device)
		s = s->next;
	return s;
}

/* The library's lock is held: they are made by one, and read by all. */
static struct kernel_settings *settings_made(struct kernel *kernel, int device)
{
	struct kernel_settings *s = settings_on(kernel, device);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->device = device;
	s->next = atomic_load_explicit(&kernel->settings, memory_order_relaxed);
	atomic_store_explicit(&kernel->settings, s, memory_order_release);
	return s;
}

void kernel_settings_free(struct kernel *kernel)
{
	for (struct kernel_settings *s = atomic_load(&kernel->settings), *next; s; s = next) {
		next = s->next;
		free(s);
	}
}

static CUresult settings_apply(const struct kernel_settings *s, struct function *function)
{
	const uint32_t set = atomic_load(&s->set) & ~atomic_load(&function->own);
	const int cache = atomic_load(&s->cache);
	CUresult status = CUDA_SUCCESS;

	if (set & FUNCTION_CACHE && (uint8_t)(cache + 1) != atomic_load(&function->cache))
		status = function_cache_config(function, (CUfunc_cache)cache);
	for (int a = 0; a < FUNCTION_ATTRIBUTES && !status; a++) {
		const int value = atomic_load(&s->attributes[a]);

		if (set >> a & 1 && function->info.attributes[a] != value)
			status = function_set(function, a, value);
	}
	return status;
}

CUresult kernel_follow(const struct kernel *kernel, struct function *function)
{
	const struct kernel_settings *s;
	uint32_t version;
	CUresult status;

	if (__builtin_expect(!atomic_load_explicit(&kernel->settings, memory_order_relaxed), 1))
		return CUDA_SUCCESS;
	s = settings_on(kernel, module_context(function->module)->device);
	if (!s)
		return CUDA_SUCCESS;
	version = atomic_load(&s->version);
	if (version == atomic_load_explicit(&function->followed, memory_order_relaxed))
		return CUDA_SUCCESS;
	status = settings_apply(s, function);
	if (!status)
		atomic_store(&function->followed, version);
	return status;
}

/* The functions of the kernel that there are in DEVICE's contexts. The library's lock is held.
 */
static CUresult follow_all(struct kernel *kernel, int device)
{
	struct context *before = thread_self.current;
	CUresult status = CUDA_SUCCESS;

	for (struct loaded *l = kernel->library->loaded; l && !status; l = l->next) {
		struct module *module = shim_object_of(l->module, KIND_CUmodule);
		struct context *context = module ? module_context(module) : NULL;
		struct function *function =
			context && context->device == device && atomic_load(&context->live)
				? module_function_known(module, kernel->name)
				: NULL;

		if (!function)
			continue;
		thread_set(context);
		status = kernel_follow(kernel, function);
		thread_set(before);
	}
	return status;
}

/* ATTRIBUTE -1 is the cache. */
static CUresult settings_set(struct kernel *kernel, int device, int attribute, int value)
{
	struct kernel_settings *s;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&kernel->library->lock);
	s = settings_made(kernel, device);
	if (s) {
		atomic_store(attribute < 0 ? &s->cache : &s->attributes[attribute], value);
		atomic_fetch_or(&s->set, attribute < 0 ? FUNCTION_CACHE : 1u << attribute);
		atomic_fetch_add(&s->version, 1);
		status = follow_all(kernel, device);
	}
	pthread_mutex_unlock(&kernel->library->lock);
	return status;
}

CUresult kernel_set_attribute(
	struct kernel *kernel, struct function *function, int device, int attribute, int value)
{
	CUresult status = function_settable(function, attribute, value);

	return status ? status : settings_set(kernel, device, attribute, value);
}

CUresult kernel_set_cache(struct kernel *kernel, int device, CUfunc_cache config)
{
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	return settings_set(kernel, device, -1, (int)config);
}

CUresult kernel_attribute(const struct kernel *kernel, const struct function *function,
	int device, int attribute, int *value)
{
	const struct kernel_settings *s = settings_on(kernel, device);
	CUresult status = function_attribute(function, attribute, value);

	if (status)
		return status;
	*value = s && atomic_load(&s->set) >> attribute & 1
			 ? atomic_load(&s->attributes[attribute])
			 : function->compiled[attribute];
	return CUDA_SUCCESS;
}
