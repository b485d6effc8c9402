/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks in LTO-IR (cufftXtSetJITCallback): a fat binary of many pieces reaches the agent's
 * library as it is, and what that says of the plan reaches the program; other plans, of the
 * same sizes too, do not notice. The code is none that could be linked.
 */
#include "tests/cufft/check.h"

#define N 64
#define ENTRIES 2000
#define HELD 120u /* bytes of an entry: no multiple of how much travels at once */

struct entry {
	uint16_t kind, version;
	uint32_t head;
	uint64_t bytes;
	char held[HELD];
};

static struct {
	uint32_t magic;
	uint16_t version, head;
	uint64_t bytes;
	struct entry entries[ENTRIES];
} code = {0xba55ed50, 1, 16, sizeof(code.entries), {{0}}};

static cufftResult made_with(const void *bytes, size_t count)
{
	cufftHandle plan;
	cufftResult status;
	size_t area = 0;

	FFT(cufftCreate(&plan));
	status = cufftXtSetJITCallback(plan, "load", bytes, count, CUFFT_CB_LD_COMPLEX, NULL);
	if (!status)
		status = cufftMakePlan1d(plan, N, CUFFT_C2C, 1, &area);
	FFT(cufftDestroy(plan));
	return status;
}

static void refused(void)
{
	cufftHandle plan;
	size_t area;

	FFT(cufftCreate(&plan));
	FFT_IS(cufftXtSetJITCallback(plan, "load", &code, 0, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_INVALID_VALUE);
	FFT_IS(cufftXtSetJITCallback(
		       plan, "load", &code, sizeof(code), CUFFT_CB_UNDEFINED, NULL),
		CUFFT_INVALID_TYPE);
	FFT_IS(cufftXtSetJITCallback(1 << 20, "load", &code, 1, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_INVALID_PLAN);
	FFT(cufftMakePlan1d(plan, N, CUFFT_C2C, 1, &area));
	FFT_IS(cufftXtSetJITCallback(plan, "load", &code, 1, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_INVALID_PLAN);
	FFT_IS(cufftXtSetCallbackSharedSize(plan, CUFFT_CB_LD_COMPLEX, 16), CUFFT_INVALID_PLAN);
	FFT(cufftDestroy(plan));
}

#define LARGE ((size_t)15 << 20)
#define PLANS 5

/* More than the agent holds at once is refused to the plan for which there is no room. */
static void too_much(void)
{
	cufftHandle plan[PLANS];
	void *bytes = calloc(1, LARGE);
	cufftResult status;
	size_t area;

	for (int i = 0; i < PLANS; i++) {
		FFT(cufftCreate(&plan[i]));
		FFT(cufftXtSetJITCallback(
			plan[i], "store", bytes, LARGE, CUFFT_CB_ST_COMPLEX, NULL));
	}
	status = cufftMakePlan1d(plan[PLANS - 1], N, CUFFT_C2C, 1, &area);
	if (!status)
		DIE("a plan with nothing for code was made");
	EXPECTED(cufftMakePlan1d(plan[PLANS - 1], N, CUFFT_C2C, 1, &area), CUFFT_ALLOC_FAILED);
	for (int i = 0; i < PLANS; i++)
		FFT(cufftDestroy(plan[i]));
	free(bytes);
}

int main(void)
{
	struct numbers data = numbers_new(2 * N, false);
	cufftResult whole, torn;
	cufftHandle plan;

	refused();
	for (int i = 0; i < ENTRIES; i++)
		code.entries[i] = (struct entry){8, 1, 16, HELD, "no code"};
	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	for (int i = 0; i < 50; i++) {
		whole = made_with(&code, sizeof(code));
		if (!whole || whole == CUFFT_NOT_SUPPORTED || whole == CUFFT_INVALID_VALUE)
			DIE("a plan with what cannot be linked: %d", whole);
	}
	too_much();
	if (made_with(&code, sizeof(code)) != whole)
		DIE("a plan after too much: not %d", whole);
	code.entries[ENTRIES - 2].bytes++;
	torn = made_with(&code, sizeof(code));
	if (!torn)
		DIE("a plan with a torn binary was made");
	if (torn != CUFFT_INVALID_VALUE) /* as the software GPU says it */
		EXPECTED(made_with(&code, sizeof(code)), CUFFT_INVALID_VALUE);
	numbers_fill(&data);
	numbers_send(&data);
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	numbers_fetch(&data);
	FFT(cufftDestroy(plan));
	numbers_free(&data);
	puts("ok");
	return 0;
}
