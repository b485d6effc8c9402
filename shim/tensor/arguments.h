/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions of include/vcuda/tensor.h check and tell alike, under vcuda
 * (shim/driver/tensor*.c) and natively (tensor_native.c).  A sentence goes to WHY, which has
 * SENTENCE bytes.
 */
#ifndef VCUDA_SHIM_TENSOR_ARGUMENTS_H
#define VCUDA_SHIM_TENSOR_ARGUMENTS_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/wait.h"
#include "include/vcuda/tensor.h"
#include "protocol/wire/status.h"
#include "protocol/wire/tensor.h"

#define SENTENCE 200
/* Between two looks at a tensor that is not sealed yet. */
#define LOOK_MIN_NS 500000u
#define LOOK_MAX_NS 20000000u

_Static_assert((int)VCUDA_BOOL == (int)TENSOR_BOOL && VCUDA_TENSOR_RANK == TENSOR_RANK, "");
_Static_assert(VCUDA_TENSOR_KEEP == TENSOR_KEEP && VCUDA_TENSOR_MADE == TENSOR_MADE, "");
_Static_assert(VCUDA_TENSOR_PACKED == TENSOR_PACKED && VCUDA_TENSOR_PEER == TENSOR_PEER, "");
_Static_assert(VCUDA_TENSOR_NEW == TENSOR_NEW && VCUDA_TENSOR_WRITE == TENSOR_WRITE, "");
_Static_assert(sizeof(((struct vcuda_tensor_stat *)0)->name) >= 64 + TENSOR_NAME, "");

/* NAME into NAMED, which has TENSOR_NAME bytes of zeros. 0, or INVALID. */
static inline int arguments_name(char *named, const char *name, char *why)
{
	size_t n = name ? strlen(name) : 0;

	if (!n || n > TENSOR_NAME_MAX) {
		snprintf(why, SENTENCE, "a tensor's name has 1 to %d bytes, not %zu",
			TENSOR_NAME_MAX, n);
		return STATUS_INVALID_VALUE;
	}
	memcpy(named, name, n);
	return 0;
}

/* create's, into ABOUT: 0, or INVALID. */
static inline int arguments_create(struct tensor_about *about, uint32_t dtype, uint32_t rank,
	const int64_t *shape, uint32_t flags, const struct vcuda_tensor *place, char *why)
{
	const char *wrong = NULL;

	why[0] = 0;
	if (!place || (rank && !shape) || rank > TENSOR_RANK)
		wrong = "a shape of 0 to 8 numbers, and a place for the tensor";
	else if (!tensor_dtype_bytes(dtype))
		wrong = "there is no such dtype";
	else if (flags & ~(VCUDA_TENSOR_KEEP | VCUDA_TENSOR_EVICTABLE | VCUDA_TENSOR_PACKED |
				 VCUDA_TENSOR_NEW))
		wrong = "these flags are not create's";
	if (!wrong) {
		*about = (struct tensor_about){
			.dtype = dtype, .rank = rank, .flags = flags | TENSOR_MAKE};
		if (rank)
			memcpy(about->shape, shape, rank * sizeof(*shape));
		if (!tensor_shape_bytes(dtype, rank, about->shape))
			wrong = "a dimension is not above 0, or all together are too many "
				"bytes";
	}
	if (!wrong)
		return 0;
	snprintf(why, SENTENCE, "vcuda_tensor_create: %s (dtype %u, rank %u, flags 0x%x)",
		wrong, dtype, rank, flags);
	return STATUS_INVALID_VALUE;
}

/* What the agent told can be mapped in units of GRANULARITY. */
static inline bool arguments_sound(const struct tensor_about *about, uint64_t granularity)
{
	return about->room && about->offset < about->room &&
	       about->bytes <= about->room - about->offset && about->rank <= TENSOR_RANK &&
	       about->room % granularity == 0;
}

static inline uint32_t arguments_flags(const struct tensor_about *about)
{
	return about->flags | (about->state == TENSOR_SEALED ? VCUDA_TENSOR_SEALED : 0);
}

/* A tensor that is mapped at BASE. */
static inline void arguments_tensor(struct vcuda_tensor *tensor,
	const struct tensor_about *about, uint64_t base, int device)
{
	*tensor = (struct vcuda_tensor){.data = base + about->offset,
		.bytes = about->bytes,
		.device = device,
		.dtype = about->dtype,
		.rank = about->rank,
		.flags = arguments_flags(about),
		.version = about->version};
	memcpy(tensor->shape, about->shape, sizeof(tensor->shape));
}

static inline void arguments_stat(
	struct vcuda_tensor_stat *stat, const struct tensor_about *about, const char *name)
{
	*stat = (struct vcuda_tensor_stat){.bytes = about->bytes,
		.dtype = about->dtype,
		.rank = about->rank,
		.flags = arguments_flags(about),
		.holders = about->holders,
		.version = about->version,
		.ctime = about->ctime,
		.mtime = about->mtime};
	memcpy(stat->shape, about->shape, sizeof(stat->shape));
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)sizeof(stat->name) - 1, name);
}

/* vcuda_tensor_wait. */
static inline int arguments_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat, char *why)
{
	uint64_t until = wait_now() + ms * 1000000ull, nap = LOOK_MIN_NS;
	int status;

	for (;;) {
		status = vcuda_tensor_stat(name, device, stat);
		if (status || stat->flags & VCUDA_TENSOR_SEALED)
			return status;
		if (wait_now() >= until)
			break;
		nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
		nap = 2 * nap < LOOK_MAX_NS ? 2 * nap : LOOK_MAX_NS;
	}
	snprintf(why, SENTENCE, "'%.100s' was not sealed within %u ms", name, ms);
	return STATUS_PENDING;
}

#endif
