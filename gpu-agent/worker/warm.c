/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/warm.h"

#include "gpu-agent/probe/library_search.h"

static void (*const warm[AGENT_LIBRARIES])(const struct worker *w, uint32_t major) = {
#define LIBRARY_ROW(id, family, ...) [LIBRARY_##id] = family##_warm,
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
};

void warm_forget(uint16_t context)
{
#define LIBRARY_ROW(id, family, ...) family##_forget(context);
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
}

void warm_libraries(struct worker *w)
{
	uint32_t wanted = w->config->warm_libraries;

	if (!wanted || worker_use(w, CONTEXT_PRIMARY(0)))
		return;
	for (uint32_t row = 0; row < LIBRARY_MAJORS; row++) {
		for (unsigned i = 0; i < AGENT_LIBRARIES; i++)
			if (wanted & LIBRARY_BIT(i, row))
				warm[i](w, library_family(i)->oldest + row);
	}
}
