/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/alarm.h"
#include "tests/fuzz/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wait.h"

void __sanitizer_set_report_fd(void *fd) __attribute__((weak));
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

static uint8_t *covered; /* shared with the child */
static pid_t fuzzer;

/* The counters of covered edges. By assembly: a declaration of these names would take those
 * away that the compiler makes itself. */
static uint8_t *counters(size_t *n)
{
#ifdef FUZZ_COVERAGE
	uint8_t *start, *stop;

	__asm__("lea __start___sancov_cntrs(%%rip), %0" : "=r"(start));
	__asm__("lea __stop___sancov_cntrs(%%rip), %0" : "=r"(stop));
	*n = (size_t)(stop - start);
	return start;
#else
	*n = 0;
	return NULL;
#endif
}

/* To the other process, and from it. */
static void covered_save(void)
{
	size_t n;
	uint8_t *from = counters(&n);

	if (covered)
		memcpy(covered, from, n);
}

static void covered_load(void)
{
	size_t n;
	uint8_t *to = counters(&n);

	if (covered)
		memcpy(to, covered, n);
}

void __wrap__exit(int status)
{
	if (getpid() != fuzzer)
		covered_save();
	__real__exit(status);
}

void forked_setup(void)
{
	size_t n;

	fuzzer = getpid();
	signal(SIGPIPE, SIG_IGN);
	alarm_restarts();
	counters(&n);
	if (n)
		covered = mmap(
			NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (covered == MAP_FAILED)
		abort();
}

pid_t forked_start(void)
{
	pid_t child;
	int nowhere;

	covered_save(); /* of one that dies, what there was before */
	child = fork();
	if (child < 0) {
		perror("fork");
		abort();
	}
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* What it prints is of no interest, but what a sanitizer finds; whose runtime wants to
	 * hear from this process where that goes. */
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)fcntl(2, F_DUPFD, 200));
	nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(nowhere, 2);
	return 0;
}

void forked_end(pid_t child, uint64_t until)
{
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) <= 0) {
		if (ended < 0 && errno != EINTR)
			abort();
		if (wait_now() > until) {
			fprintf(stderr, "the process does not end\n");
			kill(child, SIGABRT);
			waitpid(child, &status, 0);
			break;
		}
		usleep(200);
	}
	covered_load();
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "the process ended with status %#x\n", (unsigned)status);
		abort();
	}
}
