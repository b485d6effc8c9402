/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda doctor: one line for each thing that must be right for a program to find its GPU, with
 * what to do about it where it is not.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/elf.h"
#include "command/spawn.h"
#include "common/cleanup.h"
#include "common/exit_status.h"
#include "common/version.h"
#include "protocol/wire/channel.h"

#define CAPTURE (256u * 1024) /* of what a helper prints */

enum verdict { RIGHT, NOTE, WRONG };

struct doctor {
	bool json;
	const char *program, *agent, *token_file;
	cJSON *checks;
	bool wrong;
	char main_library[PATH_MAX], loader[PATH_MAX];
	char *out, *err; /* CAPTURE each */
};

__attribute__((format(printf, 4, 5))) static void say(
	struct doctor *doctor, enum verdict verdict, const char *what, const char *format, ...)
{
	static const char *const marks[] = {"ok   ", "note ", "WRONG"};
	static const char *const states[] = {"ok", "note", "wrong"};
	char text[1024];
	va_list args;
	cJSON *check;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	doctor->wrong |= verdict == WRONG;
	if (!doctor->json) {
		printf("%s  %-9s  %s\n", marks[verdict], what, text);
		return;
	}
	check = cJSON_CreateObject();
	cJSON_AddStringToObject(check, "check", what);
	cJSON_AddStringToObject(check, "state", states[verdict]);
	cJSON_AddStringToObject(check, "text", text);
	cJSON_AddItemToArray(doctor->checks, check);
}

/* Runs a helper beside us; its exit status, what it printed in doctor->out and ->err. */
static int ask(struct doctor *doctor, const char *name, char *const arguments[])
{
	char program[PATH_MAX];
	char *argv[12] = {program};
	struct error error;
	char *newline;
	int ret;

	for (int i = 0; i < 10 && arguments[i]; i++)
		argv[i + 1] = arguments[i];
	if (spawn_beside(name, program, sizeof(program), &error) < 0) {
		snprintf(doctor->err, CAPTURE, "%s", error.text);
		return -ENOENT;
	}
	ret = spawn_capture(argv, 20, doctor->out, doctor->err, CAPTURE);
	newline = strrchr(doctor->err, '\n');
	if (newline && !newline[1])
		*newline = 0;
	return ret;
}

/* "vcuda-client: …": whose words they are goes without saying. */
static const char *words(const char *text)
{
	return !strncmp(text, "vcuda-client: ", 14) ? text + 14
	       : !strncmp(text, "vcuda: ", 7)	    ? text + 7
						    : text;
}

static void check_libraries(struct doctor *doctor)
{
	if (spawn_library("libvcuda.so", doctor->main_library, sizeof(doctor->main_library)) <
		0)
		say(doctor, WRONG, "libraries",
			"libvcuda.so is neither in ../lib nor in ../lib/vcuda beside this "
			"command: "
			"install all of vcuda");
	else
		say(doctor, RIGHT, "libraries", "%s", doctor->main_library);
	if (spawn_library("libutilities.so", doctor->loader, sizeof(doctor->loader)) < 0) {
		doctor->loader[0] = 0;
		say(doctor, NOTE, "libraries",
			"no libutilities.so: programs with the CUDA runtime linked in "
			"statically will "
			"not be served");
	}
}

static const char *text_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static void check_ipc(struct doctor *doctor, const char *ipc)
{
	say(doctor, RIGHT, "ipc", "%s, passed by descriptor",
		strcmp(ipc, "pod") ? "host: POSIX shared memory of the sidecar's /dev/shm"
				   : "pod: sealed memory");
}

/* The sidecar, and the agent that it names. */
static void check_sidecar(struct doctor *doctor, char *agent, size_t n)
{
	const char *wanted = getenv("VCUDA_SOCKET");
	const char *path = wanted && *wanted ? wanted : CHANNEL_SOCKET;
	const char *remote = getenv("REMOTE_GPU_ADDRESS");
	cJSON *status;

	if (remote && *remote)
		snprintf(agent, n, "%s", remote);
	if (ask(doctor, "vcuda-client", (char *[]){"status", "--json", NULL})) {
		say(doctor, remote && *remote ? NOTE : WRONG, "sidecar",
			"none answers on %s%s%s%s", path,
			wanted && *wanted ? " ($VCUDA_SOCKET)" : "",
			remote && *remote
				? ": a program starts one for "
				: ": start vcuda-client --agent HOST[:PORT], or use vcuda run",
			remote && *remote ? remote : "");
		return;
	}
	status = cJSON_Parse(doctor->out);
	say(doctor, RIGHT, "sidecar", "pid %.0f answers on %s",
		cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(status, "pid")), path);
	if (strcmp(text_of(status, "version"), VCUDA_VERSION))
		say(doctor, WRONG, "version",
			"the sidecar is %s, this is %s: install the same release",
			text_of(status, "version"), VCUDA_VERSION);
	else
		say(doctor, RIGHT, "version", "%s, here and in the sidecar", VCUDA_VERSION);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(status, "draining")))
		say(doctor, WRONG, "sidecar", "it is draining: it takes no more programs");
	check_ipc(doctor, text_of(status, "ipc"));
	if (!*text_of(status, "agent"))
		say(doctor, WRONG, "agent",
			"the sidecar knows none: start it with --agent HOST[:PORT]");
	snprintf(agent, n, "%s", text_of(status, "agent"));
	cJSON_Delete(status);
}

static void check_agent(struct doctor *doctor, const char *agent)
{
	char *token = doctor->token_file ? "--token-file" : NULL;
	int ret = ask(doctor, "vcuda-client",
		(char *[]){"probe", "--agent", (char *)agent, token, (char *)doctor->token_file,
			NULL});

	if (!ret) {
		char *rest = doctor->out;

		/* A line for each. */
		for (char *line; (line = strsep(&rest, "\n"));)
			if (*line)
				say(doctor, RIGHT, "agent", "%s", line);
	} else if (ret == EXIT_NOT_PERMITTED && !doctor->token_file) {
		say(doctor, NOTE, "agent",
			"%s: reachable; to ask it more: vcuda doctor --token-file FILE",
			words(doctor->err));
	} else {
		say(doctor, WRONG, "agent", "%s", words(doctor->err));
	}
}

/* "vcuda: session=… WORDS": the words. */
static const char *debugged(const char *line)
{
	const char *said = words(line), *rest = strchr(said, ' ');

	return rest && !strncmp(said, "session=", 8) ? rest + 1 : said;
}

/* What the attached program said of its agents, and of copies between them. */
static void say_agents(struct doctor *doctor)
{
	char *line, *rest = doctor->err;

	while ((line = strsep(&rest, "\n"))) {
		const char *said = debugged(line);

		if (!strncmp(said, "GPU ", 4) || !strncmp(said, "GPUs ", 5))
			say(doctor, RIGHT, "gpus", "%s", said);
		else if (!strncmp(said, "copies between ", 15))
			say(doctor, strstr(said, "from agent to agent") ? RIGHT : NOTE, "peers",
				"%s", said);
	}
}

/* As a program does it. Only where nothing is known to be wrong: its text would be the same. */
static void check_attach(struct doctor *doctor)
{
	char *line, *wires, *rest = doctor->err;
	const char *why = "";
	int ret;

	if (doctor->wrong)
		return;
	setenv("VCUDA_DEBUG", "1", 1);
	ret = ask(doctor, "vcuda", (char *[]){"doctor", "--attach", NULL});
	wires = doctor->out + strcspn(doctor->out, "\n");
	if (*wires)
		*wires++ = 0;
	if (!ret) {
		say(doctor, RIGHT, "attach", "%s", doctor->out);
		say_agents(doctor);
		while ((line = strsep(&wires, "\n")))
			if (*line)
				say(doctor, RIGHT, "wire", "%s", line);
		return;
	}
	/* The last line that is not about the end of what failed. */
	while ((line = strsep(&rest, "\n")))
		if (*line)
			why = line;
	say(doctor, WRONG, "attach", "%s%s%s",
		ret == -ETIMEDOUT ? "it takes more than 20 s" : doctor->out, *why ? ": " : "",
		words(why));
}

static bool is_cuda_library(const char *name)
{
	static const char *const stems[] = {"libcuda.so", "libcudart.so", "libcublas",
		"libcudnn", "libcufft", "libcusolver", "libcusparse", "libcurand.so",
		"libnccl.so", "libnvidia-ml.so", "libnvrtc.so", "libnvJitLink.so"};

	for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]); i++)
		if (!strncmp(name, stems[i], strlen(stems[i])))
			return true;
	return false;
}

/* These need no GPU: the program's own are used. */
static bool needs_no_gpu(const char *name)
{
	return !strncmp(name, "libnvrtc.so", 11) || !strncmp(name, "libnvJitLink.so", 15);
}

/* One line of the loader's list: "NAME => PATH (0x…)" or "NAME => not found". 1: a CUDA
 * library. */
static int check_line(struct doctor *doctor, char *line)
{
	char *arrow = strstr(line, " => "), *path;
	char name[256], ours[PATH_MAX];
	bool missing;

	if (!arrow)
		return 0;
	line += strspn(line, " \t");
	snprintf(name, sizeof(name), "%.*s", (int)(arrow - line), line);
	path = arrow + 4;
	path[strcspn(path, " \n")] = 0;
	missing = !strcmp(path, "not");
	if (!is_cuda_library(name)) {
		if (missing)
			say(doctor, WRONG, "loads", "%s is not found: install it", name);
		return 0;
	}
	if (!spawn_library(name, ours, sizeof(ours)))
		say(doctor, RIGHT, "loads", "%s from vcuda%s%s", name,
			missing ? "" : ", in place of ", missing ? "" : path);
	else if (missing)
		say(doctor, WRONG, "loads", "%s is not found, and vcuda does not serve it yet",
			name);
	else if (needs_no_gpu(name))
		say(doctor, RIGHT, "loads", "%s, its own (%s): it needs no GPU", name, path);
	else
		say(doctor, WRONG, "loads", "%s from %s: vcuda does not serve it yet", name,
			path);
	return 1;
}

/* Asks the program's own loader what would be loaded; no code of the program runs. */
static int check_loaded(struct doctor *doctor, const char *path, const char *interpreter)
{
	char *argv[] = {(char *)interpreter, (char *)path, NULL};
	char *rest, *line;
	int found = 0, ret;

	unsetenv("LD_PRELOAD");
	setenv("LD_TRACE_LOADED_OBJECTS", "1",
		1); /* unlike --list it goes on where one is missing */
	ret = spawn_capture(argv, 20, doctor->out, doctor->err, CAPTURE);
	unsetenv("LD_TRACE_LOADED_OBJECTS");
	if (ret < 0)
		return 0;
	rest = doctor->out;
	while ((line = strsep(&rest, "\n")))
		found += check_line(doctor, line);
	return found;
}

/* Finds PROGRAM as the shell would. */
static int find_program(const char *program, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	if (strchr(program, '/'))
		return realpath(program, path) ? 0 : -errno;
	while (folders && *folders) {
		size_t n = strcspn(folders, ":");
		char raw[PATH_MAX];

		snprintf(raw, sizeof(raw), "%.*s/%s", (int)n, folders, program);
		if (!access(raw, X_OK) && realpath(raw, path))
			return 0;
		folders += n + (folders[n] == ':');
	}
	return -ENOENT;
}

static void check_file(struct doctor *doctor, const char *path, const struct elf_facts *facts)
{
	int found;

	if (!facts->elf) {
		say(doctor, WRONG, "program", "%s is no 64-bit program of this machine", path);
		return;
	}
	if (!facts->interpreter[0]) {
		say(doctor, WRONG, "program",
			"%s is statically linked: nothing can be preloaded into it; link it "
			"dynamically",
			path);
		return;
	}
	if (strstr(facts->interpreter, "musl")) {
		say(doctor, WRONG, "program",
			"%s is linked with musl (%s): use an image with glibc 2.17 or newer",
			path, facts->interpreter);
		return;
	}
	say(doctor, RIGHT, "program", "%s", path);
	found = check_loaded(doctor, path, facts->interpreter);
	if (facts->static_cudart)
		say(doctor, doctor->loader[0] ? RIGHT : WRONG, "runtime",
			"the CUDA runtime is linked in statically, with its symbols: %s",
			doctor->loader[0]
				? "libutilities.so sends its calls to vcuda"
				: "libutilities.so is missing; rebuild with -cudart shared");
	else if (facts->device_code && !facts->symbols && !found)
		say(doctor, NOTE, "runtime",
			"it holds GPU code and loads no CUDA library, and its symbols are "
			"stripped: the CUDA runtime is in it; those of CUDA 12.9 to 13.5 are "
			"known and work; where another is told at its start, rebuild with "
			"-cudart shared");
	else if (!found)
		say(doctor, NOTE, "loads",
			"no CUDA library at its start; it may open them later, which works "
			"too");
}

static void check_program(struct doctor *doctor)
{
	struct elf_facts facts;
	struct error error;
	char path[PATH_MAX];
	int ret = find_program(doctor->program, path);

	if (ret < 0) {
		say(doctor, WRONG, "program", "%s: %s", doctor->program, strerror(-ret));
		return;
	}
	/* A script, and a script whose interpreter is a script. */
	for (int i = 0; i < 4; i++) {
		if (elf_read(path, &facts, &error) < 0) {
			say(doctor, WRONG, "program", "%s", error.text);
			return;
		}
		if (!facts.script[0]) {
			check_file(doctor, path, &facts);
			return;
		}
		say(doctor, NOTE, "program", "%s is a script of %s", path, facts.script);
		ret = find_program(facts.script, path);
		if (ret < 0) {
			say(doctor, WRONG, "program", "%s: %s", facts.script, strerror(-ret));
			return;
		}
	}
}

static int parse(int argc, char **argv, struct doctor *doctor, struct error *error)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			doctor->json = true;
		} else if (!strcmp(argv[i], "--agent") || !strcmp(argv[i], "--token-file")) {
			if (i + 1 >= argc)
				return error_set(error, 0, "doctor: %s needs a value", argv[i]);
			*(argv[i][2] == 'a' ? &doctor->agent : &doctor->token_file) =
				argv[i + 1];
			i++;
		} else if (argv[i][0] == '-' || doctor->program) {
			return error_set(
				error, 0, "doctor: what is '%s'? vcuda doctor --help", argv[i]);
		} else {
			doctor->program = argv[i];
		}
	}
	return 0;
}

static const char usage[] =
	"vcuda doctor [--json] [--agent HOST[:PORT]] [--token-file FILE] [PROGRAM]\n"
	"\n"
	"  --agent HOST[:PORT]  that agent is asked; else the sidecar that is running and its\n"
	"                       own\n"
	"  --token-file FILE    as whom; else $VCUDA_TOKEN_FILE\n"
	"  --json               the checks as JSON\n"
	"  PROGRAM              whether it can be served: what it links, its GPU code\n";

int command_doctor(int argc, char **argv)
{
	struct doctor doctor = {0};
	cleanup_free char *out = malloc(CAPTURE), *err = malloc(CAPTURE), *text = NULL;
	struct error error;
	char agent[4096] = "";
	cJSON *root;

	if (command_helped(argc, argv, usage))
		return 0;
	if (argc == 2 && !strcmp(argv[1], "--attach"))
		return command_attach();
	if (parse(argc, argv, &doctor, &error) < 0)
		return command_complain(&error, 2);
	if (!out || !err) {
		error_set(&error, ENOMEM, "doctor");
		return command_complain(&error, 1);
	}
	doctor.out = out;
	doctor.err = err;
	root = cJSON_CreateObject();
	doctor.checks = cJSON_AddArrayToObject(root, "checks");

	check_libraries(&doctor);
	if (doctor.agent)
		snprintf(agent, sizeof(agent), "%s", doctor.agent);
	else
		check_sidecar(&doctor, agent, sizeof(agent));
	if (agent[0])
		check_agent(&doctor, agent);
	if (!doctor.agent)
		check_attach(&doctor);
	if (doctor.program)
		check_program(&doctor);

	if (doctor.json) {
		cJSON_AddBoolToObject(root, "ok", !doctor.wrong);
		text = cJSON_Print(root);
		puts(text ? text : "{}");
	}
	cJSON_Delete(root);
	return doctor.wrong;
}
