/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print.  The agent says how many bytes of text there have been so far before it
 * answers a call that waits; only where that has grown is anything asked for.
 */
#include "shim/output.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine.h"
#include "shim/words.h"

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t fetched;

static bool output_some(void)
{
	const struct wire_vcudaOutput_reply *reply;
	struct shim_call call;
	const char *text;
	size_t n = 0;

	shim_begin(&call, OP_vcudaOutput, sizeof(struct wire_vcudaOutput));
	reply = shim_wait(&call, sizeof(*reply));
	text = reply ? shim_run(&call, &reply->text, &n) : NULL;
	if (text && n)
		fwrite(text, 1, n, stdout);
	else
		n = 0;
	atomic_fetch_add(&fetched, n);
	/* An error of the app's own work is the business of the call that it belongs to. */
	shim_end(&call);
	return n;
}

void output_fetch(void)
{
	if (words_read(WORD_OUTPUT) <= atomic_load_explicit(&fetched, memory_order_relaxed))
		return;
	pthread_mutex_lock(&output_lock);
	while (words_read(WORD_OUTPUT) > atomic_load(&fetched) && output_some())
		;
	/* As the driver does it: the text is out when the synchronisation returns. */
	fflush(stdout);
	pthread_mutex_unlock(&output_lock);
}
