/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of handlers: what OP() in ptx_ops_*.c put into the linker's sections, by name.  Of
 * the files compiled twice, the x86-64-v3 form is taken where the processor has it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

#define BUCKETS 4096

extern const struct ptx_op __start_ptx_ops_any[] __attribute__((visibility("hidden")));
extern const struct ptx_op __stop_ptx_ops_any[] __attribute__((visibility("hidden")));
extern const struct ptx_op __start_ptx_ops_base[] __attribute__((visibility("hidden")));
extern const struct ptx_op __stop_ptx_ops_base[] __attribute__((visibility("hidden")));
#ifndef PTX_BASE_ALONE
extern const struct ptx_op __start_ptx_ops_v3[] __attribute__((visibility("hidden")));
extern const struct ptx_op __stop_ptx_ops_v3[] __attribute__((visibility("hidden")));
#endif

static const struct ptx_op *table[BUCKETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	while (*name)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return (h ^ h >> 15) % BUCKETS;
}

static void enter(const struct ptx_op *first, const struct ptx_op *end)
{
	for (; first < end; first++) {
		uint32_t k = hash(first->name);

		while (table[k])
			k = (k + 1) % BUCKETS;
		table[k] = first;
	}
}

/* False: there is none, or not for this processor. */
static bool enter_v3(void)
{
#ifdef PTX_BASE_ALONE
	return false;
#else
	const char *isa = getenv("VCUDA_PTX_ISA");

	__builtin_cpu_init();
	if ((isa && !strcmp(isa, "base")) || !__builtin_cpu_supports("avx2") ||
		!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2") ||
		!__builtin_cpu_supports("bmi"))
		return false;
	enter(__start_ptx_ops_v3, __stop_ptx_ops_v3);
	return true;
#endif
}

static void fill(void)
{
	enter(__start_ptx_ops_any, __stop_ptx_ops_any);
	if (!enter_v3())
		enter(__start_ptx_ops_base, __stop_ptx_ops_base);
}

void ptx_op_init(void)
{
	pthread_once(&once, fill);
}

const struct ptx_op *ptx_op_find(const char *name)
{
	for (uint32_t k = hash(name); table[k]; k = (k + 1) % BUCKETS)
		if (!strcmp(table[k]->name, name))
			return table[k];
	return NULL;
}
