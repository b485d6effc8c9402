/* SPDX-License-Identifier: Apache-2.0
 *
 * traced PROGRAM [ARGUMENT…]: runs it as a debugger does.  Before its first instruction there
 * is a breakpoint on the function by which the loader tells of objects that it has mapped;
 * where the program comes there, that function's one instruction is carried out for it.  Exit
 * status: the program's; 125 if the breakpoint was never met, so that nothing was tried.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/die.h"

#define BREAKPOINT 0xcc

/* Where the loader of process PID is. */
static uintptr_t loader_base(pid_t pid, const char *loader)
{
	char path[64], line[4096];
	uintptr_t base = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	if (!maps)
		DIE("%s: %s", path, strerror(errno));
	while (!base && fgets(line, sizeof(line), maps))
		if (strstr(line, loader))
			base = strtoull(line, NULL, 16);
	fclose(maps);
	if (!base)
		DIE("%s is not mapped", loader);
	return base;
}

/* The same loader is this process' own. */
static uintptr_t function_offset(char loader[PATH_MAX])
{
	const struct r_debug *debug = dlsym(RTLD_DEFAULT, "_r_debug");
	Dl_info info;

	if (!debug || !dladdr((const void *)debug->r_brk, &info) ||
		!realpath(info.dli_fname, loader))
		DIE("there is no such loader");
	return debug->r_brk - (uintptr_t)info.dli_fbase;
}

static unsigned char breakpoint_put(pid_t pid, uintptr_t at)
{
	long word = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);
	unsigned char was = (unsigned char)word;

	if (ptrace(PTRACE_POKETEXT, pid, at, (word & ~0xffl) | BREAKPOINT))
		DIE("no breakpoint: %s", strerror(errno));
	return was;
}

/* The instruction that the breakpoint stands on: ret, or endbr64, which does nothing. */
static void step_over(pid_t pid, uintptr_t at, unsigned char was)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &registers))
		DIE("no registers");
	if (registers.rip != at + 1)
		DIE("stopped at %#llx", registers.rip);
	if (was == 0xc3) {
		registers.rip = (uintptr_t)ptrace(PTRACE_PEEKDATA, pid, registers.rsp, NULL);
		registers.rsp += 8;
	} else {
		registers.rip = at + 4;
	}
	ptrace(PTRACE_SETREGS, pid, NULL, &registers);
}

int main(int argc, char **argv)
{
	char loader[PATH_MAX];
	uintptr_t at = function_offset(loader);
	unsigned met = 0;
	unsigned char was;
	int status;
	pid_t pid;

	if (argc < 2)
		DIE("usage: traced PROGRAM [ARGUMENT...]");
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		DIE("%s does not start", argv[1]);
	at += loader_base(pid, loader);
	was = breakpoint_put(pid, at);
	for (int signal = 0; !ptrace(PTRACE_CONT, pid, NULL, signal);) {
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		signal = WSTOPSIG(status);
		if (signal != SIGTRAP)
			continue;
		signal = 0;
		met++;
		step_over(pid, at, was);
	}
	if (!met)
		return 125;
	printf("the breakpoint was met %u times\n", met);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
