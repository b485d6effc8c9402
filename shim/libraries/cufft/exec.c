/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms: learned by the plan's content, so that one of a kind is awaited once.
 */
#include <stddef.h>

#include "shim/libraries/cufft/plan.h"

_Static_assert(offsetof(struct wire_cufftXtExec, type) == CUFFT_EXEC_KEY, "");

/* What of two places may matter to the library. */
static uint32_t places(const void *in, const void *out)
{
	return (uint32_t)((uintptr_t)in & 255) | (uint32_t)((uintptr_t)out & 255) << 8 |
	       (in == out ? 1u << 16 : 0);
}

cufftResult fft_exec(cufftHandle number, int type, void *in, void *out, int direction)
{
	const struct plan *plan = fft_plan(number);
	struct wire_cufftXtExec body = {
		.input = (uint64_t)(uintptr_t)in,
		.output = (uint64_t)(uintptr_t)out,
		.plan = number,
		.type = (uint32_t)type,
		.direction = direction,
		.places = places(in, out),
	};
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = OP_cufftXtExec,
		.learned = true,
		.key_from = CUFFT_EXEC_KEY,
		.key_to = sizeof(body),
		.body = &body,
		.body_bytes = sizeof(body),
		.stream_at = offsetof(struct wire_cufftXtExec, stream),
	};

	if (!plan || !plan->made)
		return CUFFT_INVALID_PLAN;
	if (plan->multi) /* as NVIDIA's says it */
		return CUFFT_INTERNAL_ERROR;
	if (!in || !out)
		return CUFFT_INVALID_VALUE;
	if (plan->area_bytes && !plan->area)
		return CUFFT_NO_WORKSPACE;
	body.area = plan->area_bytes ? plan->area : 0;
	body.digest = plan->digest;
	frame.stream = plan->stream;
	return vcuda_library_frame(&cufft_front, &frame);
}

cufftResult hand_cufftXtExec(cufftHandle plan, void *input, void *output, int direction)
{
	return fft_exec(plan, 0, input, output, direction);
}

#define EXEC_COMPLEX(LETTERS, IN, OUT)                                                         \
	cufftResult hand_cufftExec##LETTERS(                                                   \
		cufftHandle plan, IN *idata, OUT *odata, int direction)                        \
	{                                                                                      \
		return fft_exec(plan, CUFFT_##LETTERS, idata, odata, direction);               \
	}
#define EXEC_REAL(LETTERS, IN, OUT)                                                            \
	cufftResult hand_cufftExec##LETTERS(cufftHandle plan, IN *idata, OUT *odata)           \
	{                                                                                      \
		return fft_exec(plan, CUFFT_##LETTERS, idata, odata, 0);                       \
	}
EXEC_COMPLEX(C2C, cufftComplex, cufftComplex)
EXEC_COMPLEX(Z2Z, cufftDoubleComplex, cufftDoubleComplex)
EXEC_REAL(R2C, cufftReal, cufftComplex)
EXEC_REAL(C2R, cufftComplex, cufftReal)
EXEC_REAL(D2Z, cufftDoubleReal, cufftDoubleComplex)
EXEC_REAL(Z2D, cufftDoubleComplex, cufftDoubleReal)
