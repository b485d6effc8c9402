/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print, to stdout or (failed assertions) to stderr.  The agent says how many
 * bytes of text there have been so far before it answers a call that waits, and before it tells
 * of a fault; only where that has grown is anything asked for.
 */
#include "shim/engine/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/engine.h"
#include "shim/engine/completion.h"
#include "shim/engine/session.h"
#include "shim/engine/lock.h"

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t fetched[CHANNEL_AGENTS][OUTPUTS];
} output = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(output, output.lock, LOCK_OUTPUT);

static _Atomic uint64_t *output_fetched(uint32_t which)
{
	return &output.fetched[session_here()->index][which];
}

static bool output_some(uint32_t which, FILE *to)
{
	struct wire_vcudaOutput *body;
	const struct wire_vcudaOutput_reply *reply;
	struct shim_call call;
	const char *text;
	size_t n = 0;

	body = shim_begin(&call, OP_vcudaOutput, sizeof(*body));
	body->which = which;
	reply = shim_wait(&call, sizeof(*reply));
	text = reply ? shim_run(&call, &reply->text, &n) : NULL;
	if (text && n)
		fwrite(text, 1, n, to);
	else
		n = 0;
	atomic_fetch_add(output_fetched(which), n);
	/* An error of the app's own work is the business of the call that it belongs to. */
	shim_end(&call);
	return n;
}

static bool output_waits(uint32_t which)
{
	return completion_read(COUNTER_OUTPUT + which) >
	       atomic_load_explicit(output_fetched(which), memory_order_relaxed);
}

static void output_print(uint32_t which, FILE *to)
{
	while (output_waits(which) && output_some(which, to))
		;
	/* As the driver does it: the text is out when the synchronisation returns. */
	fflush(to);
}

void output_fetch(void)
{
	if (!output_waits(OUTPUT_STDOUT) && !output_waits(OUTPUT_STDERR))
		return;
	pthread_mutex_lock(&output.lock);
	output_print(OUTPUT_STDOUT, stdout);
	output_print(OUTPUT_STDERR, stderr);
	pthread_mutex_unlock(&output.lock);
}
