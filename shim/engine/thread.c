/* SPDX-License-Identifier: Apache-2.0
 *
 * Per-thread state: see thread.h.
 */
#include "shim/engine/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "protocol/wire/handle.h"
#include "shim/engine/driver.h"
#include "shim/engine/handle.h"
#include "shim/engine/session.h"

struct thread_rest {
	struct thread_rest *next; /* thread_gone.c's */
	struct context *stack[THREAD_STACK];
	unsigned depth;
	unsigned streams;
	struct {
		uint64_t context_id;
		uint64_t stream;
		uint16_t number;
	} stream[THREAD_STREAMS];
};

_Thread_local struct thread thread_self
	__attribute__((tls_model("initial-exec"))) = {.session = &session_first};

static struct {
	pthread_key_t key;
	pthread_once_t once;
	bool ready;
} thread_exit = {.once = PTHREAD_ONCE_INIT};

void thread_runs_program(void)
{
	sigset_t faults;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

struct thread_rest **thread_rest_next(struct thread_rest *rest)
{
	return &rest->next;
}

void thread_rest_end(struct thread_rest *rest)
{
	for (unsigned i = 0; i < rest->streams; i++)
		stream_end(rest->stream[i].stream);
	free(rest);
}

static void thread_end(void *unused)
{
	(void)unused;
	if (thread_self.rest)
		thread_gone(thread_self.rest);
	handle_recycle();
	thread_self.rest = NULL;
	if (thread_self.scratch)
		munmap(thread_self.scratch, THREAD_SCRATCH);
	thread_self.scratch = NULL;
}

static void exit_key_make(void)
{
	thread_exit.ready = !pthread_key_create(&thread_exit.key, thread_end);
}

/* Makes sure that thread_end runs. */
static void exit_arm(void)
{
	pthread_once(&thread_exit.once, exit_key_make);
	if (thread_exit.ready)
		pthread_setspecific(thread_exit.key, &thread_self);
}

unsigned char *thread_scratch(void)
{
	void *scratch = thread_self.scratch;

	if (__builtin_expect(scratch != NULL, 1))
		return scratch;
	scratch = mmap(NULL, THREAD_SCRATCH, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED)
		return NULL;
	thread_self.scratch = scratch;
	exit_arm();
	return scratch;
}

static struct thread_rest *thread_rest(void)
{
	if (!thread_self.rest) {
		thread_self.rest = calloc(1, sizeof(*thread_self.rest));
		exit_arm();
	}
	return thread_self.rest;
}

void thread_set(struct context *context)
{
	thread_self.current = context;
	thread_self.handle = context ? context_told(context) : 0;
	thread_self.number = context ? context_number(context) : CONTEXT_NONE;
	thread_self.session = context ? context_session(context) : &session_first;
	thread_self.wire = session_context(thread_self.session, thread_self.number);
	thread_self.plain = session_count == 1 ? context : NULL;
}

bool thread_push(struct context *context)
{
	struct thread_rest *rest = thread_rest();

	if (!rest || rest->depth == THREAD_STACK)
		return false;
	/* An empty stack has nothing below: cuCtxSetCurrent on it is a push. */
	rest->stack[rest->depth++] = thread_self.current;
	thread_set(context);
	return true;
}

bool thread_pop(struct context **context)
{
	struct thread_rest *rest = thread_self.rest;

	if (!thread_self.current)
		return false;
	*context = thread_self.current;
	thread_set(rest && rest->depth ? rest->stack[--rest->depth] : NULL);
	return true;
}

bool thread_has(const struct context *context)
{
	const struct thread_rest *rest = thread_self.rest;

	for (unsigned i = 0; rest && i < rest->depth; i++)
		if (rest->stack[i] == context)
			return true;
	return thread_self.current == context;
}

void thread_forget(const struct context *context)
{
	struct thread_rest *rest = thread_self.rest;
	unsigned kept = 0;

	for (unsigned i = 0; rest && i < rest->depth; i++)
		if (rest->stack[i] != context)
			rest->stack[kept++] = rest->stack[i];
	if (rest)
		rest->depth = kept;
	if (thread_self.current == context)
		thread_set(rest && rest->depth ? rest->stack[--rest->depth] : NULL);
}

uint64_t thread_stream(uint16_t number, uint64_t context_id)
{
	const struct thread_rest *rest = thread_self.rest;

	for (unsigned i = 0; rest && i < rest->streams; i++)
		if (rest->stream[i].number == number &&
			rest->stream[i].context_id == context_id)
			return rest->stream[i].stream;
	return 0;
}

bool thread_stream_keep(uint16_t number, uint64_t context_id, uint64_t stream)
{
	struct thread_rest *rest = thread_rest();

	if (!rest)
		return false;
	/* Full: contexts that are gone have left their streams behind; the oldest goes. */
	if (rest->streams == THREAD_STREAMS) {
		memmove(&rest->stream[0], &rest->stream[1],
			sizeof(rest->stream) - sizeof(rest->stream[0]));
		rest->streams--;
	}
	rest->stream[rest->streams].number = number;
	rest->stream[rest->streams].context_id = context_id;
	rest->stream[rest->streams++].stream = stream;
	return true;
}
