/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/warm.h"

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"
#include "gpu-agent/probe/library.h"

void warm_libraries(struct worker *w)
{
	uint32_t wanted = w->config->warm_libraries;

	if (!wanted || worker_use(w, CONTEXT_PRIMARY(0)))
		return;
	for (uint32_t row = 0; row < LIBRARY_MAJORS; row++) {
		if (wanted & LIBRARY_BIT(LIBRARY_CUBLAS, row))
			cublas_warm(w, library_family(LIBRARY_CUBLAS)->oldest + row);
		if (wanted & LIBRARY_BIT(LIBRARY_CUBLASLT, row))
			cublaslt_warm(w, library_family(LIBRARY_CUBLASLT)->oldest + row);
		if (wanted & LIBRARY_BIT(LIBRARY_CUDNN, row))
			cudnn_prepare(w, library_family(LIBRARY_CUDNN)->oldest + row,
				w->contexts[CONTEXT_PRIMARY(0)]);
	}
}
