/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors that cusolverRf hands out: memory of the library's, freed here, that goes home by way
 * of memory of the session's.
 */
#include <malloc.h>
#include <stdlib.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cusolver/cusolver.h"
#include "gpu-agent/worker/worker_state.h"

struct factor {
	int entries;
	int *rows, *columns;
	double *values;
};

/* The client says how many rows there are; the memory says whether that may be. */
static bool holds(const struct factor *f, uint32_t n)
{
	return f->entries >= 0 && f->rows && f->columns && f->values &&
	       malloc_usable_size(f->rows) >= (n + 1ull) * sizeof(*f->rows) &&
	       f->rows[n] - f->rows[0] == f->entries;
}

static void copy(struct library_frame *f, CUdeviceptr to, uint32_t n, const struct factor *from)
{
	const void *part[] = {from->rows, from->columns, from->values};
	uint64_t bytes[] = {(n + 1ull) * sizeof(*from->rows),
		(uint64_t)from->entries * sizeof(*from->columns),
		(uint64_t)from->entries * sizeof(*from->values)};
	uint64_t at[3];

	cusolver_factor_places(n, (uint32_t)from->entries, at);
	for (int i = 0; i < 3; i++) {
		CUresult copied =
			bytes[i] ? f->w->cuda.cuMemcpyHtoD_v2(to + at[i], part[i], bytes[i])
				 : CUDA_SUCCESS;

		if (copied)
			worker_refuse(f->r, copied);
	}
}

static void factors_send(struct library_frame *f, CUdeviceptr to, uint32_t n,
	const struct factor *factors, int count)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++) {
		if (!holds(&factors[i], n)) {
			library_violated(f);
			return;
		}
		bytes += cusolver_factor_bytes(n, (uint32_t)factors[i].entries);
	}
	worker_range(f->w, f->r, to, bytes);
	for (int i = 0; i < count && !worker_refused(f->r); i++) {
		copy(f, to, n, &factors[i]);
		to += cusolver_factor_bytes(n, (uint32_t)factors[i].entries);
	}
}

/* The numbers of entries go home, and the factors where there is memory for them. */
static int answer(struct library_frame *f, int status, uint32_t n, CUdeviceptr to,
	struct factor *factors, int count)
{
	beside_enter(f->r);
	for (int i = 0; i < count; i++) {
		uint32_t *entries = library_get_out(f);

		if (entries)
			*entries = (uint32_t)factors[i].entries;
	}
	if (!status && to && !f->stopped)
		factors_send(f, to, n, factors, count);
	for (int i = 0; !status && i < count; i++) {
		free(factors[i].rows);
		free(factors[i].columns);
		free(factors[i].values);
	}
	return status;
}

int run_cusolverRfExtractBundledFactorsHost(struct library_frame *f)
{
	const struct cusolver_library *l = f->library;
	uint32_t n = library_get_int(f);
	CUdeviceptr to = (CUdeviceptr)(uintptr_t)library_get_device(f);
	struct factor m = {0};
	int status;

	if (library_stop(f, !l->cusolverRfExtractBundledFactorsHost, f->name))
		return f->status;
	status = l->cusolverRfExtractBundledFactorsHost(
		f->handle, &m.entries, &m.rows, &m.columns, &m.values);
	return answer(f, status, n, to, &m, 1);
}

int run_cusolverRfExtractSplitFactorsHost(struct library_frame *f)
{
	const struct cusolver_library *l = f->library;
	uint32_t n = library_get_int(f);
	CUdeviceptr to = (CUdeviceptr)(uintptr_t)library_get_device(f);
	struct factor lu[2] = {0};
	int status;

	if (library_stop(f, !l->cusolverRfExtractSplitFactorsHost, f->name))
		return f->status;
	status = l->cusolverRfExtractSplitFactorsHost(f->handle, &lu[0].entries, &lu[0].rows,
		&lu[0].columns, &lu[0].values, &lu[1].entries, &lu[1].rows, &lu[1].columns,
		&lu[1].values);
	return answer(f, status, n, to, lu, 2);
}
