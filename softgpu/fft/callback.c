/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks: LTO-IR is machine code of a compiler that is not here, as for a cuFFT whose
 * libnvJitLink is missing.  They are taken, and no plan is made with one.
 */
#include <string.h>

#include "softgpu/fft/fft.h"

#define FATBIN 0xba55ed50u
#define TYPES 8

struct fatbin {
	uint32_t magic;
	uint16_t version, head;
	uint64_t bytes; /* of the entries, behind the head */
};

struct entry {
	uint16_t kind, version;
	uint32_t head;
	uint64_t bytes; /* behind the head */
};

/* Whether the entries of what says that it is a fat binary fill it. */
static bool code_whole(const char *code, size_t bytes)
{
	struct fatbin all;
	struct entry one;
	size_t at = sizeof(all);

	if (bytes < sizeof(all))
		return true;
	memcpy(&all, code, sizeof(all));
	if (all.magic != FATBIN)
		return true; /* what nvrtcGetLTOIR gives */
	if (all.head != sizeof(all) || all.bytes != bytes - sizeof(all))
		return false;
	while (bytes - at >= sizeof(one)) {
		memcpy(&one, code + at, sizeof(one));
		if (one.head < sizeof(one) || one.head > bytes - at ||
			one.bytes > bytes - at - one.head)
			return false;
		at += one.head + one.bytes;
	}
	return at == bytes;
}

FFT_CALL(cufftXtSetJITCallback, int number, const char *symbol, const void *code, size_t bytes,
	int type, void **info)
{
	struct fft_plan *plan = fft_plan_get(number);
	int status = FFT_SUCCESS;

	(void)info;
	if (!plan)
		return FFT_INVALID_PLAN;
	if (plan->made)
		status = FFT_INVALID_PLAN;
	else if (type < 0 || type >= TYPES)
		status = FFT_INVALID_TYPE;
	else if ((symbol && !*symbol) || !code || !bytes || !code_whole(code, bytes))
		status = FFT_INVALID_VALUE;
	else
		plan->callbacks = true;
	fft_plan_drop(plan);
	return status;
}
