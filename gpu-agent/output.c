/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print.  The driver writes it to this process's stdout; a memfd stands there, and
 * the app fetches the text when a synchronisation tells it that there is some.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu-agent/worker_state.h"

int output_open(struct worker *w)
{
	w->output = memfd_create("vcuda-output", MFD_CLOEXEC);
	if (w->output < 0 || dup2(w->output, STDOUT_FILENO) < 0)
		return -1;
	return 0;
}

void output_tell(struct worker *w)
{
	struct stat st;

	fflush(stdout);
	if (fstat(w->output, &st) || (uint64_t)st.st_size <= w->output_told)
		return;
	w->output_told = (uint64_t)st.st_size;
	reply_update(w, WORD_OUTPUT, w->output_told);
}

CUresult serve_vcudaOutput(struct worker *w, struct request *r)
{
	struct wire_vcudaOutput_reply *answer = (void *)r->answer;
	uint64_t left = w->output_told - w->output_fetched;
	uint64_t n = left < 1900 ? left : 1900;
	ssize_t got =
		pread(w->output, worker_out(r, &answer->text, n), n, (off_t)w->output_fetched);

	if (got < 0)
		return CUDA_ERROR_UNKNOWN;
	w->output_fetched += (uint64_t)got;
	answer->bytes = (uint32_t)got;
	left = w->output_told - w->output_fetched;
	answer->left = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
	/* What was fetched needs no memory any more. */
	fallocate(w->output, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		(off_t)(w->output_fetched & ~4095ull));
	return CUDA_SUCCESS;
}
