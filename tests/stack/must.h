/* SPDX-License-Identifier: Apache-2.0
 *
 * For the programs of this folder, which say what they do: a call of the runtime that has to
 * succeed.
 */
#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include "tests/say.h"

static void must_at(int line, cudaError_t got)
{
	if (got == cudaSuccess)
		return;
	say("line %d: %d (%s)", line, got, cudaGetErrorName(got));
	_exit(1);
}
#define MUST(call) must_at(__LINE__, call)
