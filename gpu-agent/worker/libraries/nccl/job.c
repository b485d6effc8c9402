/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that may wait for another rank, beside the loop and with a deadline; groups that come
 * in several frames; why a call failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/warm.h"

static char last[NCCL_TEXT];

void nccl_note_text(const char *text)
{
	snprintf(last, sizeof(last), "%s", text);
}

CUresult serve_ncclGetLastError(struct worker *w, struct request *r)
{
	struct wire_ncclGetLastError_reply *answer = (void *)r->answer;

	(void)w;
	memcpy(answer->text, last, sizeof(answer->text));
	return CUDA_SUCCESS;
}

void nccl_warm(const struct worker *w, uint32_t major)
{
	plain_warm(w, &nccl_plain, major);
}

/* A communicator of the context is the program's mistake: its name is gone (handle.c). */
void nccl_forget(uint16_t context)
{
	(void)context;
}

const struct nccl_library *nccl_open(struct worker *w, struct request *r, uint32_t major)
{
	const struct nccl_library *library;

	if (!w->config->nccl.allowed) {
		static bool logged_once;

		if (!logged_once)
			log_warn("nccl.refused", "text=\"a program wants NCCL, which "
						 "nccl.allowed does not allow\"");
		logged_once = true;
		nccl_note_text("the agent's configuration does not allow NCCL (nccl.allowed)");
		worker_refuse(r, plain_status(r, &nccl_plain, ncclSystemError));
		((struct library_reply *)(void *)r->answer)->flags = LIBRARY_ABSENT;
		return NULL;
	}
	library = plain_open(w, r, &nccl_plain, major);
	if (!library)
		nccl_note_text("the agent has no usable libnccl.so.2");
	return library;
}

void nccl_explain(struct nccl_job *job)
{
	const char *text =
		job->library->ncclGetLastError ? job->library->ncclGetLastError(NULL) : NULL;

	snprintf(job->text, sizeof(job->text), "%s: %s", job->call,
		text && *text ? text : "the agent's NCCL does not say why");
}

int nccl_lacks(const struct nccl_library *library, const char *function, char text[NCCL_TEXT])
{
	int version = 0;

	if (library->ncclGetVersion)
		library->ncclGetVersion(&version);
	snprintf(text, NCCL_TEXT, "the agent's NCCL (%d) has no %s", version, function);
	return ncclInvalidUsage;
}

static void job_run(struct beside_job *beside)
{
	struct nccl_job *job = (struct nccl_job *)beside;

	job->work(job);
	if (job->status && !job->text[0])
		nccl_explain(job);
}

static void job_answer(struct worker *w, struct nccl_job *job, const void *answer, uint32_t n)
{
	if (job->tag >= 0)
		reply_send(w, (uint16_t)job->tag, CUDA_SUCCESS, answer, n);
	job->tag = -1;
}

static void job_done(struct worker *w, struct beside_job *beside)
{
	struct nccl_job *job = (struct nccl_job *)beside;
	const void *answer;
	uint32_t bytes = 0;

	if (job->status) {
		nccl_note_text(job->text);
		log_info("nccl.failed", "call=%s status=%d text=\"%s\"", job->call, job->status,
			job->text);
	}
	answer = job->after(w, job, &bytes);
	job_answer(w, job, answer, bytes);
	free(job);
}

/* Its thread goes on until NCCL comes back, or the worker ends. */
static void job_late(struct worker *w, struct beside_job *beside)
{
	struct nccl_job *job = (struct nccl_job *)beside;
	struct wire_ncclCommInitRank_reply answer = {.plain.status = ncclSystemError};
	char text[NCCL_TEXT];

	snprintf(text, sizeof(text), "%s: not all ranks came within %u ms (nccl.wait)",
		job->call, w->config->nccl.wait_ms);
	nccl_note_text(text);
	log_warn("nccl.late", "call=%s wait_ms=%u", job->call, w->config->nccl.wait_ms);
	job_answer(w, job, &answer, sizeof(answer)); /* the longest of all */
	job->late = true;
}

/* Nothing is made of a context that is gone: `lasting` jobs are not dropped. */
static void job_drop(struct beside_job *beside)
{
	(void)beside;
}

CUresult nccl_start(struct worker *w, struct request *r, struct nccl_job *job)
{
	uint32_t bytes = 0;

	job->job = (struct beside_job){
		.run = job_run,
		.done = job_done,
		.drop = job_drop,
		.late = job_late,
		.until = wait_now() + (uint64_t)w->config->nccl.wait_ms * 1000000,
		.lasting = true,
		.seq = r->header.seq,
	};
	job->cuda = &w->cuda;
	job->awaited = r->header.kind == FRAME_CALL;
	job->tag = job->awaited ? (int32_t)r->header.tag : -1;
	if (beside_start(w, &job->job, r->header.context)) {
		r->later = true;
		return CUDA_SUCCESS;
	}
	job->status = ncclSystemError;
	job->tag = -1;
	nccl_note_text("too many calls of NCCL wait at once");
	job->after(w, job, &bytes);
	free(job);
	return plain_status(r, &nccl_plain, ncclSystemError);
}

/* --- groups in several frames ------------------------------------------------------------- */

#define GROUPS 64 /* at once: a thread has one */
static struct nccl_parts groups[GROUPS];

struct nccl_parts *nccl_parts(uint32_t number, bool makes)
{
	struct nccl_parts *none = NULL;

	for (int i = 0; i < GROUPS; i++) {
		if (groups[i].number == number && number)
			return groups[i].makes == makes ? &groups[i] : NULL;
		if (!groups[i].number && !none)
			none = &groups[i];
	}
	if (none && number)
		*none = (struct nccl_parts){.number = number, .makes = makes};
	return number ? none : NULL;
}

void nccl_parts_end(struct nccl_parts *parts)
{
	*parts = (struct nccl_parts){0};
}
