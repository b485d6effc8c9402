/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda.exe run: a program with the DLLs that lie beside vcuda.exe, on the GPUs of an agent;
 * its exit status is passed on.  vcuda.exe -role client: programs that are started meanwhile,
 * however they are, use that agent.
 */
#include <windows.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/version.h"
#include "windows/os/agent_address.h"

#define WRONG 2	      /* exit status: the command line */
#define NOT_FOUND 127 /* … there is no such program */

static const char usage[] =
	"vcuda: any program uses any GPU as if it were its own\n"
	"\n"
	"  vcuda run --agent HOST[:PORT] [--token-file FILE] -- PROGRAM.exe ...\n"
	"  vcuda -role client -ip HOST [-net native] [-send_port P] [-recv_port P]\n"
	"        until it ends, programs that find the DLLs use that agent\n"
	"  vcuda --help, vcuda --version\n";

static int complain(const char *text, const char *what)
{
	fprintf(stderr, "vcuda: ");
	fprintf(stderr, text, what);
	fputc('\n', stderr);
	return WRONG;
}

/* ---- a command line, as programs of Windows take it apart again ---- */

struct line {
	char text[32768]; /* as long as Windows has them */
	size_t n;
	bool full;
};

static void put(struct line *line, char c, size_t times)
{
	while (times--) {
		if (line->n + 1 >= sizeof(line->text)) {
			line->full = true;
			return;
		}
		line->text[line->n++] = c;
	}
}

/* In quotes where it needs them; backslashes are doubled where a quote follows. */
static void put_word(struct line *line, const char *word)
{
	bool quotes = !*word || strpbrk(word, " \t\"");
	size_t slashes = 0;

	if (line->n)
		put(line, ' ', 1);
	put(line, '"', quotes);
	for (; *word; word++) {
		if (*word == '\\') {
			slashes++;
			continue;
		}
		put(line, '\\', *word == '"' ? 2 * slashes + 1 : slashes);
		slashes = 0;
		put(line, *word, 1);
	}
	put(line, '\\', quotes ? 2 * slashes : slashes);
	put(line, '"', quotes);
}

/* ---- the environment ---- */

/* The folder of vcuda.exe comes before the system's, where a driver of NVIDIA's may be. */
static bool own_folder(void)
{
	static char own[MAX_PATH], path[32768], joined[32768];
	char *slash;
	DWORD n = GetModuleFileNameA(NULL, own, sizeof(own));

	if (!n || n >= sizeof(own))
		return false;
	slash = strrchr(own, '\\');
	if (slash)
		*slash = 0;
	n = GetEnvironmentVariableA("PATH", path, sizeof(path));
	if (n >= sizeof(path))
		return false;
	if (!n)
		path[0] = 0;
	if (snprintf(joined, sizeof(joined), "%s;%s", own, path) >= (int)sizeof(joined))
		return false;
	return SetDllDirectoryA(own) && SetEnvironmentVariableA("PATH", joined);
}

/* ---- run ---- */

static int start(char **argv, HANDLE *process)
{
	static struct line line;
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION made;

	for (; *argv; argv++)
		put_word(&line, *argv);
	if (line.full)
		return complain("run: the command line is too long%s", "");
	if (!CreateProcessA(NULL, line.text, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &made))
		return -1;
	CloseHandle(made.hThread);
	*process = made.hProcess;
	return 0;
}

/* What the console sends goes to the program by itself. */
static BOOL WINAPI stay(DWORD event)
{
	return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

/* One flag with its value: 1, 0: it is none, or -WRONG. */
static int run_flag(char **argv, bool *agent)
{
	static const struct {
		const char *flag, *variable;
	} flags[] = {{"--agent", "VCUDA_AGENT"}, {"--token-file", "VCUDA_TOKEN_FILE"}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(argv[0], flags[i].flag) != 0)
			continue;
		if (!argv[1] || !*argv[1])
			return -complain("run: %s needs a value", argv[0]);
		if (i && GetFileAttributesA(argv[1]) == INVALID_FILE_ATTRIBUTES)
			return -complain(
				"run: --token-file: %s: there is no such file", argv[1]);
		SetEnvironmentVariableA(flags[i].variable, argv[1]);
		*agent |= !i;
		return 1;
	}
	if (argv[0][0] != '-')
		return 0;
	return -complain("run: unknown flag '%s'; vcuda --help", argv[0]);
}

static int run(char **argv)
{
	bool agent = GetEnvironmentVariableA("VCUDA_AGENT", NULL, 0) ||
		     GetEnvironmentVariableA("REMOTE_GPU_ADDRESS", NULL, 0);
	HANDLE process = NULL;
	DWORD status = 1;
	int ret = 0;

	for (; *argv && strcmp(*argv, "--") != 0; argv += 2) {
		ret = run_flag(argv, &agent);
		if (ret <= 0)
			break;
	}
	if (ret < 0)
		return -ret;
	if (*argv && !strcmp(*argv, "--"))
		argv++;
	if (!*argv)
		return complain(
			"run: which program? vcuda run --agent HOST -- PROGRAM.exe%s", "");
	if (!agent)
		return complain("run: on which agent? --agent HOST[:PORT]%s", "");
	if (!own_folder())
		return complain("run: the folder of vcuda.exe cannot be put before PATH%s", "");
	SetConsoleCtrlHandler(stay, TRUE);
	ret = start(argv, &process);
	if (ret < 0) {
		complain("run: %s: it cannot be started; is it there, and a program?", *argv);
		return NOT_FOUND;
	}
	if (ret)
		return ret;
	WaitForSingleObject(process, INFINITE);
	GetExitCodeProcess(process, &status);
	return (int)status;
}

/* ---- the command line of the documents that the project grew from ---- */

struct legacy {
	const char *role, *ip, *net, *send, *recv;
};

static int legacy_parse(char **argv, struct legacy *legacy)
{
	const struct {
		const char *flag;
		const char **value;
	} flags[] = {{"-role", &legacy->role}, {"-ip", &legacy->ip}, {"-net", &legacy->net},
		{"-send_port", &legacy->send}, {"-recv_port", &legacy->recv}};

	for (; *argv; argv += 2) {
		size_t f = 0, n = sizeof(flags) / sizeof(flags[0]);

		while (f < n && strcmp(flags[f].flag, *argv) != 0)
			f++;
		if (f == n)
			return complain("unknown flag '%s'; vcuda --help", *argv);
		if (!argv[1])
			return complain("%s needs a value", *argv);
		*flags[f].value = argv[1];
	}
	if (strcmp(legacy->role, "client") != 0)
		return complain("-role %s: on Windows it is client", legacy->role);
	if (strcmp(legacy->net, "native") != 0)
		return complain("-net %s: on Windows it is native", legacy->net);
	if (!legacy->ip)
		return complain("-role client: where is the server? -ip HOST%s", "");
	return 0;
}

static int port_wrong(const char *flag, const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] >= '0' && text[0] <= '9' && !*end && n && n < 65536)
		return 0;
	fprintf(stderr, "vcuda: %s: '%.40s' is not a port\n", flag, text);
	return WRONG;
}

static int client(char **argv)
{
	struct legacy legacy = {.role = "", .net = "native", .send = "9998", .recv = "9997"};
	HANDLE place;
	char *text;
	int ret = legacy_parse(argv, &legacy);

	if (!ret)
		ret = port_wrong("-send_port", legacy.send);
	if (!ret)
		ret = port_wrong("-recv_port", legacy.recv);
	if (ret)
		return ret;
	place = CreateFileMappingA(
		INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, PLACE_BYTES, PLACE_NAME);
	if (place && GetLastError() == ERROR_ALREADY_EXISTS)
		return complain("-role client: another vcuda names an agent already%s", "");
	text = place ? MapViewOfFile(place, FILE_MAP_WRITE, 0, 0, PLACE_BYTES) : NULL;
	if (!text)
		return complain("-role client: no memory by the name %s", PLACE_NAME);
	if (snprintf(text, PLACE_BYTES, "%s:%s", legacy.ip, legacy.send) >= PLACE_BYTES)
		return complain("-ip: the host's name is too long%s", "");
	printf("programs that are started now use the GPUs of %s; Ctrl-C ends that\n", text);
	fflush(stdout);
	Sleep(INFINITE);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		fputs(usage, stdout);
		return argc < 2 ? WRONG : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("vcuda " VCUDA_BUILD);
		return 0;
	}
	if (!strcmp(argv[1], "run"))
		return run(argv + 2);
	if (argv[1][0] == '-')
		return client(argv + 1);
	return complain("unknown command '%s'; vcuda --help lists them", argv[1]);
}
