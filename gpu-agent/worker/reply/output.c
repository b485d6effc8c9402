/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print.  The driver writes it to this process's stdout, and failed assertions to
 * its stderr; a memfd stands in each place, and the app fetches the text when it is told that
 * there is some.  What it does not fetch is kept up to OUTPUT_MAX, the latest; a GPU's own
 * buffer for it is 1 MiB.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

#define OUTPUT_MAX (64ull << 20)

/* Of `fetched` and `dropped`: the thread of watchdog.c holds the limit during long calls. */
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;

void output_log(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	char text[16];

	if (fd < 0)
		return;
	log_to(fd);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("VCUDA_SOFTGPU_LOG_FD", text, 1);
}

int output_open(struct worker *w)
{
	static const int stands_for[OUTPUTS] = {
		[OUTPUT_STDOUT] = STDOUT_FILENO, [OUTPUT_STDERR] = STDERR_FILENO};

	for (int i = 0; i < OUTPUTS; i++) {
		w->outputs[i].fd = memfd_create("vcuda-output", MFD_CLOEXEC);
		if (w->outputs[i].fd < 0 || dup2(w->outputs[i].fd, stands_for[i]) < 0)
			return -1;
	}
	return 0;
}

/* What was fetched, or dropped, needs no memory any more. */
static void output_forget(struct output_text *o)
{
	fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		(off_t)(o->fetched & ~4095ull));
}

/* The oldest goes where more is there than may be. */
static void output_bound(struct output_text *o, uint64_t size)
{
	uint64_t keep_from = size - OUTPUT_MAX / 2;

	if (size - o->fetched <= OUTPUT_MAX)
		return;
	o->dropped += keep_from - o->fetched;
	o->skipped += keep_from - o->fetched;
	o->fetched = keep_from;
	output_forget(o);
}

void output_limit(struct worker *w)
{
	pthread_mutex_lock(&output_lock);
	for (uint32_t i = 0; i < OUTPUTS; i++) {
		struct stat st;

		if (!fstat(w->outputs[i].fd, &st))
			output_bound(&w->outputs[i], (uint64_t)st.st_size);
	}
	pthread_mutex_unlock(&output_lock);
}

/* How much there is, where the app does not know. */
static void output_word(struct worker *w, uint32_t which)
{
	struct output_text *o = &w->outputs[which];

	if (o->counter == o->told - o->skipped)
		return;
	o->counter = o->told - o->skipped;
	reply_update(w, COUNTER_OUTPUT + which, o->counter);
}

void output_tell(struct worker *w)
{
	fflush(stdout);
	pthread_mutex_lock(&output_lock);
	for (uint32_t i = 0; i < OUTPUTS; i++) {
		struct output_text *o = &w->outputs[i];
		struct stat st;

		if (fstat(o->fd, &st) || (uint64_t)st.st_size <= o->told)
			continue;
		o->told = (uint64_t)st.st_size;
		output_bound(o, o->told);
		output_word(w, i);
	}
	pthread_mutex_unlock(&output_lock);
}

/* In the place of what was dropped. */
static uint32_t output_gap(
	struct output_text *o, struct request *r, struct wire_vcudaOutput_reply *answer)
{
	char text[96];
	int n = snprintf(text, sizeof(text),
		"\n[vcuda: %" PRIu64 " bytes that kernels printed were not read in time]\n",
		o->dropped);

	memcpy(worker_out(r, &answer->text, (uint64_t)n), text, (size_t)n);
	o->dropped = 0;
	return (uint32_t)n;
}

CUresult serve_vcudaOutput(struct worker *w, struct request *r)
{
	const struct wire_vcudaOutput *req = (const void *)r->body;
	struct wire_vcudaOutput_reply *answer = (void *)r->answer;
	struct output_text *o;
	uint64_t left, n;
	ssize_t got = 0;

	if (req->which >= OUTPUTS)
		return CUDA_ERROR_INVALID_VALUE;
	o = &w->outputs[req->which];
	pthread_mutex_lock(&output_lock);
	if (o->told < o->fetched)
		o->told = o->fetched;
	left = o->told - o->fetched;
	n = left < 1900 ? left : 1900;
	if (o->dropped) {
		answer->bytes = output_gap(o, r, answer);
		o->skipped -= answer->bytes;
	} else {
		got = pread(o->fd, worker_out(r, &answer->text, n), n, (off_t)o->fetched);
	}
	if (got > 0) {
		o->fetched += (uint64_t)got;
		answer->bytes = (uint32_t)got;
		output_forget(o);
	}
	left = o->told - o->fetched;
	output_word(w, req->which);
	pthread_mutex_unlock(&output_lock);
	answer->left = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
	return got < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
