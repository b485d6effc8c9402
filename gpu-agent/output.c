/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print.  The driver writes it to this process's stdout, and failed assertions to
 * its stderr; a memfd stands in each place, and the app fetches the text when it is told that
 * there is some.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/worker_state.h"

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

void output_tell(struct worker *w)
{
	fflush(stdout);
	for (uint32_t i = 0; i < OUTPUTS; i++) {
		struct output_text *o = &w->outputs[i];
		struct stat st;

		if (fstat(o->fd, &st) || (uint64_t)st.st_size <= o->told)
			continue;
		o->told = (uint64_t)st.st_size;
		reply_update(w, WORD_OUTPUT + i, o->told);
	}
}

CUresult serve_vcudaOutput(struct worker *w, struct request *r)
{
	const struct wire_vcudaOutput *req = (const void *)r->body;
	struct wire_vcudaOutput_reply *answer = (void *)r->answer;
	struct output_text *o;
	uint64_t left, n;
	ssize_t got;

	if (req->which >= OUTPUTS)
		return CUDA_ERROR_INVALID_VALUE;
	o = &w->outputs[req->which];
	left = o->told - o->fetched;
	n = left < 1900 ? left : 1900;
	got = pread(o->fd, worker_out(r, &answer->text, n), n, (off_t)o->fetched);
	if (got < 0)
		return CUDA_ERROR_UNKNOWN;
	o->fetched += (uint64_t)got;
	answer->bytes = (uint32_t)got;
	left = o->told - o->fetched;
	answer->left = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
	/* What was fetched needs no memory any more. */
	fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		(off_t)(o->fetched & ~4095ull));
	return CUDA_SUCCESS;
}
