/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda smi: the table that people know.  By default through a session, as a program sees its
 * GPUs (NVML's front), with the processes that the sidecar knows; with --agent from the agent's
 * control port, with every session that it has.  What is not known is N/A.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <nvml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "command/http.h"
#include "command/spawn.h"
#include "command/topology.h"
#include "common/cleanup.h"
#include "common/version.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

#define SMI_GPUS 16
#define SMI_PROCESSES 1024
#define SMI_CAPTURE ((size_t)1 << 20)
#define UNKNOWN (-1)

static const char usage[] =
	"vcuda smi [-L] [--agent HOST[:PORT] [--token-file FILE]]\n"
	"vcuda smi topo [-m | -p2p r|w|n|a|p]\n"
	"\n"
	"  -L                   a line a GPU\n"
	"  topo                 what the GPUs that programs here get are to each other: "
	"NVLink,\n"
	"                       PCIe; or whether they can read (r), write (w), use NVLink "
	"(n),\n"
	"                       atomics (a) or PCIe (p) with each other's memory\n"
	"  --agent HOST[:PORT]  as that agent sees itself (its control port, 9999), with all "
	"its\n"
	"                       sessions; else the GPUs that programs here get, with the\n"
	"                       processes of this machine or pod\n"
	"  --token-file FILE    with --agent: a token of its http.token_file, or a tenant's, "
	"which\n"
	"                       shows that tenant's sessions; else $VCUDA_TOKEN_FILE\n";

struct smi_gpu {
	char name[96], uuid[96], place[32];
	char agent[280];       /* "": there is one for all */
	long long total, used; /* bytes */
	int load, temperature;
	long long power, limit; /* mW */
};

struct smi_process {
	long long pid, used;
	int gpu; /* UNKNOWN: the sidecar does not know which */
	char program[48], pod[64];
};

struct smi {
	char driver[96];
	int cuda; /* 1000 * major + 10 * minor */
	int gpu_count, process_count;
	struct smi_gpu gpus[SMI_GPUS];
	struct smi_process processes[SMI_PROCESSES];
};

/* ---- through a session ---- */

#define SMI_NVML(name) ((__typeof__(&name))dlsym(library, #name))

static int value_or_unknown(nvmlReturn_t status, unsigned value)
{
	return status || value > INT_MAX ? UNKNOWN : (int)value;
}

static void ask_gpu(void *library, unsigned index, struct smi_gpu *gpu)
{
	nvmlReturn_t (*temperature)(nvmlDevice_t, int, unsigned *) = (nvmlReturn_t(*)(
		nvmlDevice_t, int, unsigned *))dlsym(library, "nvmlDeviceGetTemperature");
	nvmlMemory_t memory;
	nvmlUtilization_t load;
	nvmlDevice_t device;
	nvmlPciInfo_t pci;
	unsigned value = 0;

	*gpu = (struct smi_gpu){.total = UNKNOWN, .used = UNKNOWN, .load = UNKNOWN};
	if (SMI_NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device))
		return;
	SMI_NVML(nvmlDeviceGetName)(device, gpu->name, sizeof(gpu->name));
	SMI_NVML(nvmlDeviceGetUUID)(device, gpu->uuid, sizeof(gpu->uuid));
	if (!SMI_NVML(nvmlDeviceGetPciInfo_v3)(device, &pci))
		snprintf(gpu->place, sizeof(gpu->place), "%.31s", pci.busId);
	if (!SMI_NVML(nvmlDeviceGetMemoryInfo)(device, &memory)) {
		gpu->total = (long long)memory.total;
		gpu->used = (long long)memory.used;
	}
	if (!SMI_NVML(nvmlDeviceGetUtilizationRates)(device, &load))
		gpu->load = (int)load.gpu;
	gpu->temperature = value_or_unknown(temperature(device, 0, &value), value);
	gpu->power = value_or_unknown(SMI_NVML(nvmlDeviceGetPowerUsage)(device, &value), value);
	gpu->limit = value_or_unknown(
		SMI_NVML(nvmlDeviceGetEnforcedPowerLimit)(device, &value), value);
}

static void copy_text(char *to, size_t n, const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));

	snprintf(to, n, "%s", text ? text : "");
}

static long long number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(object, name);

	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 1e18
		       ? (long long)item->valuedouble
		       : UNKNOWN;
}

/* Whose each GPU is, where there are several agents. */
static void ask_agents(void *library, struct smi *smi)
{
	const char *(*agent)(unsigned) =
		(const char *(*)(unsigned))dlsym(library, "vcuda_nvml_agent");
	bool several = false;

	for (int i = 0; agent && i < smi->gpu_count; i++) {
		const char *name = agent((unsigned)i);

		snprintf(
			smi->gpus[i].agent, sizeof(smi->gpus[i].agent), "%s", name ? name : "");
		several |= i && strcmp(smi->gpus[i].agent, smi->gpus[i - 1].agent);
	}
	for (int i = 0; !several && i < smi->gpu_count; i++)
		smi->gpus[i].agent[0] = 0;
}

/* A process has a session at each of its agents. */
static bool is_shown(const struct smi *smi, long long pid)
{
	for (int i = 0; i < smi->process_count; i++)
		if (smi->processes[i].pid == pid)
			return true;
	return false;
}

/* Best effort: without a sidecar's status the table has no processes. */
static void ask_sidecar(struct smi *smi)
{
	cleanup_free char *out = malloc(SMI_CAPTURE), *err = malloc(SMI_CAPTURE);
	char program[PATH_MAX];
	char *argv[] = {program, "status", "--json", NULL};
	struct error error;
	const cJSON *channel;
	cJSON *root = NULL;

	if (out && err && !spawn_beside("vcuda-client", program, sizeof(program), &error) &&
		!spawn_capture(argv, 20, out, err, SMI_CAPTURE))
		root = cJSON_Parse(out);
	cJSON_ArrayForEach(channel, cJSON_GetObjectItem(root, "channels"))
	{
		struct smi_process *process = &smi->processes[smi->process_count];

		if (smi->process_count == SMI_PROCESSES || number(channel, "pid") == getpid() ||
			is_shown(smi, number(channel, "pid")))
			continue;
		process->pid = number(channel, "pid");
		process->used = process->gpu = UNKNOWN;
		process->pod[0] = 0;
		copy_text(process->program, sizeof(process->program), channel, "program");
		smi->process_count++;
	}
	cJSON_Delete(root);
}

/* NVML's front, joined to a session: how many GPUs it has. */
static int open_session(void **front, unsigned *count, struct error *error)
{
	char path[PATH_MAX];
	nvmlReturn_t status;
	void *library;

	if (spawn_library("libvcuda-nvml.so", path, sizeof(path)) < 0)
		return error_set(error, ENOENT,
			"smi: no libvcuda-nvml.so in ../lib beside this command");
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return error_set(error, ENOENT, "smi: %s", dlerror());
	status = SMI_NVML(nvmlInit_v2)();
	if (!status)
		status = SMI_NVML(nvmlDeviceGetCount_v2)(count);
	/* Where nothing is configured the front says that there is no device. */
	if (status || !*count)
		return error_set(error, 0,
			"smi: %s: no GPU is reached from here; vcuda doctor says why",
			status ? SMI_NVML(nvmlErrorString)(status) : "no devices");
	*front = library;
	return 0;
}

static int ask_session(struct smi *smi, struct error *error)
{
	unsigned count = 0;
	void *library;
	int ret = open_session(&library, &count, error);

	if (ret < 0)
		return ret;
	if (SMI_NVML(nvmlSystemGetDriverVersion)(smi->driver, sizeof(smi->driver)))
		snprintf(smi->driver, sizeof(smi->driver), "N/A");
	SMI_NVML(nvmlSystemGetCudaDriverVersion_v2)(&smi->cuda);
	smi->gpu_count = count < SMI_GPUS ? (int)count : SMI_GPUS;
	for (unsigned i = 0; i < (unsigned)smi->gpu_count; i++)
		ask_gpu(library, i, &smi->gpus[i]);
	ask_agents(library, smi);
	ask_sidecar(smi);
	return 0;
}

/* ---- from the agent's control port ---- */

static int get_json(const struct transport_description *at, const char *path, const char *token,
	cJSON **root, struct error *error)
{
	cleanup_free char *text = NULL;
	int ret = http_get(at->host, at->port, path, token, &text, error);

	if (ret < 0)
		return error_wrap(error, ret, "smi");
	*root = cJSON_Parse(text);
	return *root ? 0
		     : error_set(error, EPROTO, "smi: %s:%u%s is no JSON", at->host, at->port,
			       path);
}

static void take_session(struct smi *smi, const cJSON *session)
{
	const cJSON *memory;

	cJSON_ArrayForEach(memory, cJSON_GetObjectItem(session, "memory"))
	{
		struct smi_process *process = &smi->processes[smi->process_count];
		long long used = number(memory, "used_bytes");
		bool first = number(memory, "gpu") == 0;

		/* One without memory is shown once. */
		if (smi->process_count == SMI_PROCESSES || (used <= 0 && !first))
			continue;
		process->pid = number(session, "pid");
		process->gpu = (int)number(memory, "gpu");
		process->used = used;
		copy_text(process->program, sizeof(process->program), session, "program");
		copy_text(process->pod, sizeof(process->pod), session, "pod");
		smi->process_count++;
	}
}

static int ask_agent(
	struct smi *smi, const char *agent, const char *token_file, struct error *error)
{
	char token[HTTP_TOKEN];
	cJSON *gpus = NULL, *sessions = NULL;
	const cJSON *item;
	struct transport_description at;
	int ret = transport_describe(agent, SESSION_PORT_CONTROL, &at, error);

	if (ret < 0)
		return error_wrap(error, ret, "smi: --agent");
	ret = http_token(token, token_file, error);
	if (ret < 0)
		return error_wrap(error, ret, "smi");
	ret = get_json(&at, "/v1/gpus", token, &gpus, error);
	if (!ret)
		ret = get_json(&at, "/v1/sessions", token, &sessions, error);
	copy_text(smi->driver, sizeof(smi->driver), gpus, "driver_release");
	if (!smi->driver[0])
		snprintf(smi->driver, sizeof(smi->driver), "N/A");
	smi->cuda = (int)number(gpus, "driver_version");
	cJSON_ArrayForEach(item, cJSON_GetObjectItem(gpus, "gpus"))
	{
		struct smi_gpu *gpu = &smi->gpus[smi->gpu_count];

		if (smi->gpu_count == SMI_GPUS)
			break;
		smi->gpu_count++;
		*gpu = (struct smi_gpu){.load = UNKNOWN,
			.temperature = UNKNOWN,
			.power = UNKNOWN,
			.limit = UNKNOWN,
			.total = number(item, "memory_total_bytes"),
			.used = number(item, "memory_used_bytes")};
		copy_text(gpu->name, sizeof(gpu->name), item, "name");
		copy_text(gpu->uuid, sizeof(gpu->uuid), item, "uuid");
	}
	cJSON_ArrayForEach(item, cJSON_GetObjectItem(sessions, "sessions"))
		take_session(smi, item);
	cJSON_Delete(gpus);
	cJSON_Delete(sessions);
	return ret;
}

/* ---- the table ---- */

#define SMI_WIDTH 89

static void rule(char end, char line)
{
	putchar(end);
	for (int i = 0; i < SMI_WIDTH; i++)
		putchar(line);
	printf("%c\n", end);
}

static void row(const char *text)
{
	printf("| %-*.*s |\n", SMI_WIDTH - 2, SMI_WIDTH - 2, text);
}

/* "12", or "N/A". */
static const char *figure(char *text, size_t n, long long value, long long unit)
{
	if (value < 0)
		snprintf(text, n, "N/A");
	else
		snprintf(text, n, "%lld", value / unit);
	return text;
}

static void print_gpu(const struct smi_gpu *gpu, int index)
{
	char line[256], used[24], total[24], load[24], heat[24], power[24], limit[24];

	snprintf(line, sizeof(line), "%3d  %-50.50s %30s", index, gpu->name,
		gpu->place[0] ? gpu->place : "N/A");
	row(line);
	snprintf(line, sizeof(line), "     %4s C   %5s W / %s W",
		figure(heat, sizeof(heat), gpu->temperature, 1),
		figure(power, sizeof(power), gpu->power, 1000),
		figure(limit, sizeof(limit), gpu->limit, 1000));
	snprintf(line + strlen(line), sizeof(line) - strlen(line),
		"%*s%9s MiB / %9s MiB   %5s %%", (int)(48 - strlen(line)), "",
		figure(used, sizeof(used), gpu->used, 1 << 20),
		figure(total, sizeof(total), gpu->total, 1 << 20),
		figure(load, sizeof(load), gpu->load, 1));
	row(line);
	if (gpu->agent[0]) {
		snprintf(line, sizeof(line), "     agent %.76s", gpu->agent);
		row(line);
	}
}

static void print_table(const struct smi *smi)
{
	char line[256], gpu[24], used[24];
	time_t now = time(NULL);
	struct tm local;

	if (localtime_r(&now, &local) &&
		strftime(line, sizeof(line), "%a %b %e %H:%M:%S %Y", &local))
		puts(line);
	rule('+', '-');
	snprintf(line, sizeof(line),
		"vcuda smi %-12s Driver Version: %-22.22s CUDA Version: %d.%d", VCUDA_VERSION,
		smi->driver, smi->cuda / 1000, smi->cuda % 1000 / 10);
	row(line);
	rule('|', '-');
	row("GPU  Name                                                                        "
	    "Bus-Id");
	row("     Temp      Power                                       Memory usage   GPU "
	    "load");
	rule('|', '=');
	for (int i = 0; i < smi->gpu_count; i++) {
		print_gpu(&smi->gpus[i], i);
		rule('+', '-');
	}
	putchar('\n');
	rule('+', '-');
	row("GPU        PID   Program                          Pod                       "
	    "Memory");
	rule('|', '=');
	for (int i = 0; i < smi->process_count; i++) {
		const struct smi_process *process = &smi->processes[i];

		snprintf(line, sizeof(line), "%3s  %9lld   %-32.32s %-20.20s %7s MiB",
			figure(gpu, sizeof(gpu), process->gpu, 1), process->pid,
			process->program, process->pod,
			figure(used, sizeof(used), process->used, 1 << 20));
		row(line);
	}
	if (!smi->process_count)
		row("no process uses a GPU");
	rule('+', '-');
}

/* vcuda smi topo [-m | -p2p LETTER] */
static int topology(int argc, char **argv)
{
	static const char letters[] = "rwnap"; /* by nvmlGpuP2PCapsIndex_t */
	struct error error;
	unsigned count = 0;
	int access = -1;
	void *library;

	for (int i = 2; i < argc; i++) {
		const char *letter = i + 1 < argc && strlen(argv[i + 1]) == 1
					     ? strchr(letters, argv[i + 1][0])
					     : NULL;

		if (!strcmp(argv[i], "-m") || !strcmp(argv[i], "--matrix"))
			continue;
		if ((strcmp(argv[i], "-p2p") != 0 && strcmp(argv[i], "--p2pstatus") != 0) ||
			!letter) {
			error_set(
				&error, 0, "smi topo: what is '%s'? vcuda smi --help", argv[i]);
			return command_complain(&error, 2);
		}
		access = (int)(letter - letters);
		i++;
	}
	if (open_session(&library, &count, &error) < 0)
		return command_complain(&error, 1);
	if (topology_print(library, count, access) < 0) {
		error_set(&error, 0, "smi topo: the GPUs do not answer");
		return command_complain(&error, 1);
	}
	return 0;
}

int command_smi(int argc, char **argv)
{
	static struct smi smi;
	const char *agent = NULL, *token_file = NULL;
	struct error error;
	bool list = false;

	if (argc > 1 && !strcmp(argv[1], "topo"))
		return topology(argc, argv);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus")) {
			list = true;
		} else if (!strcmp(argv[i], "--agent") && i + 1 < argc) {
			agent = argv[++i];
		} else if (!strcmp(argv[i], "--token-file") && i + 1 < argc) {
			token_file = argv[++i];
		} else {
			error_set(&error, 0, "smi: what is '%s'? vcuda smi --help", argv[i]);
			return command_complain(&error, 2);
		}
	}
	if ((agent ? ask_agent(&smi, agent, token_file, &error) : ask_session(&smi, &error)) <
		0)
		return command_complain(&error, 1);
	if (!list) {
		print_table(&smi);
		return 0;
	}
	for (int i = 0; i < smi.gpu_count; i++)
		printf("GPU %d: %s (UUID: %s)%s%s\n", i, smi.gpus[i].name, smi.gpus[i].uuid,
			smi.gpus[i].agent[0] ? " agent " : "", smi.gpus[i].agent);
	return 0;
}
