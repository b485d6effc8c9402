/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs do what they do while a recorder is told of each of their calls: preloaded, this is
 * one from their start on, and ends them with 66 where it is told something wrong.
 */
#include <stdio.h>
#include <unistd.h>

#include "shim/engine/trace.h"

static _Atomic unsigned entered, left, frames, wrong;
static _Thread_local const struct trace_call *within;

static void enter(struct trace_call *call)
{
	if (within || !call->params)
		wrong++;
	within = call;
	call->data = (uint64_t)(uintptr_t)call;
	entered++;
}

static void leave(struct trace_call *call)
{
	if (within != call || call->data != (uint64_t)(uintptr_t)call || !call->result)
		wrong++;
	within = NULL;
	left++;
}

static void sent(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op)
{
	(void)agent;
	if (call != within || !seq || !op)
		wrong++;
	frames++;
}

__attribute__((constructor)) static void begin(void)
{
	static const struct trace_recorder recorder = {enter, leave, sent};

	vcuda_trace_set(&recorder);
}

__attribute__((destructor)) static void end(void)
{
	if (!wrong && entered && frames && left <= entered)
		return;
	dprintf(STDERR_FILENO, "%u calls, %u ends, %u frames: %u are told wrongly\n", entered,
		left, frames, wrong);
	_exit(66);
}
