/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "sidecar/options/options_values.h"
#include "transport/transport.h"

const char options_usage[] =
	"vcuda-client: the sidecar that joins CUDA programs of this machine or pod to an "
	"agent\n"
	"\n"
	"  vcuda-client [run] --config FILE | --agent HOST[:PORT] [FLAGS]\n"
	"  vcuda-client probe  [FLAGS]    whether the sidecar serves and the agent answers;\n"
	"                                 with --agent only the agent is asked\n"
	"  vcuda-client status [--json]   what the running sidecar does\n"
	"  vcuda-client metrics [--openmetrics]   what it counts, for Prometheus; with a\n"
	"                                 session to look at for each bucket\n"
	"  vcuda-client calls             JSON: how long each kind of call takes (vcuda "
	"stats)\n"
	"  vcuda-client drain             it takes no more processes and ends after the last "
	"one\n"
	"  vcuda-client install FROM TO [LINE]   copies the libraries into a volume\n"
	"  vcuda-client 0 HOST native|light SEND RECV CONTROL 0\n"
	"\n"
	"  --config FILE         YAML; each flag below is a key there too\n"
	"  --agent HOST[:PORT]   the agent's receive port (9998); several with commas "
	"between:\n"
	"                        the one with most memory left is taken\n"
	"  --token TEXT, --token-file FILE   a signed token (JWT) is read again when it "
	"changes\n"
	"  --insecure true       a signed token may go over the network in the clear (false)\n"
	"  --tls-ca FILE         who signs for the agent: TLS, and nothing else ($VCUDA_CA)\n"
	"  --tls-cert FILE, --tls-key FILE   our own certificate, where the agent asks for "
	"one\n"
	"  --tls-name NAME       what the agent's certificate must name (its host)\n"
	"  --socket PATH         default $VCUDA_SOCKET or " CHANNEL_SOCKET "\n"
	"  --socket-mode OCTAL   permissions of the socket (0666 for root, else 0600)\n"
	"  --ipc host|pod        POSIX shared memory (hostIPC) or sealed memfd (default)\n"
	"  --pod NAMESPACE/NAME  named to the agent\n"
	"  --pod-uid UID         pods are told apart by it ($POD_UID)\n"
	"  --vram-limit SIZE     of each GPU, for all processes together, as in 4Gi\n"
	"  --gpu-count N         GPUs that a process sees (all)\n"
	"  --gpu-spread never|if-needed|always\n"
	"                        these of one agent (never), of several where none has so "
	"many,\n"
	"                        or of as many agents as there are\n"
	"  --priority low|normal|high\n"
	"                        at most that class of its tenant's (the tenant's own)\n"
	"  --compress auto|off|always\n"
	"                        payloads on their way: where that is faster (auto)\n"
	"  --upload-cache true|false   what the agent has of large copies does not go again "
	"(false)\n"
	"  --congestion NAME     of TCP, where the kernel allows it: bbr for lines with loss\n"
	"  --shm-size SIZE       most shared memory in all\n"
	"  --label TEXT          in what /proc/PID/maps says of shared memory (pod mode)\n"
	"  --ring, --arena, --landing SIZE   powers of two, as in 512Ki\n"
	"  --spin auto|never|MICROSECONDS    before sleeping\n"
	"  --max-processes N     at once (1024)\n"
	"  --protocol auto|native|light|local   by shared memory where the agent is on this "
	"machine, "
	"if\n"
	"                        it can be (auto), never (native: TCP; light: UDP where it "
	"gets\n"
	"                        through), or not at all else (local)\n"
	"  --local-socket PATH   where that agent listens (local://)\n"
	"  --attach-timeout S    for reaching the agent (30)\n"
	"  --ping-timeout S      a silent worker is lost after that (5)\n"
	"  --busy-timeout S      … and one silent in the middle of an answer (120)\n"
	"  --grace S             a session whose connections are cut is resumed within that,\n"
	"                        else it is lost (30; 0: at once)\n"
	"  --idle-exit S         end after S seconds without a process\n"
	"  --dumpable 1          its user may attach a debugger, and gets core dumps (0)\n"
	"  --log error|warn|info|debug   what its log has (info)\n"
	"  --log-format text|json   of its log: logfmt or JSON, a line an event\n"
	"  --json, --help, --version\n";

struct spread_wish options_spread(const struct options *options)
{
	return (struct spread_wish){
		.agent = options->agent,
		.gpus = (uint32_t)options->gpu_count,
		.kind = options->spread,
	};
}

void options_default(struct options *options)
{
	const char *namespace = getenv("POD_NAMESPACE"), *pod = getenv("POD_NAME");
	const char *uid = getenv("POD_UID");

	*options = (struct options){
		.socket = CHANNEL_SOCKET,
		/* In a pod the socket lies in the pod's own volume, and its containers may run
		 * as anybody. */
		.socket_mode = geteuid() && !uid ? 0600 : 0666,
		.mode = CHANNEL_POD,
		.label = "host",
		.ring = CHANNEL_RING,
		.arena = CHANNEL_ARENA,
		.bounce = CHANNEL_BOUNCE,
		.spin = UINT64_MAX,
		.max_processes = 1024,
		.attach_timeout = 30,
		.ping_timeout = 5,
		.busy_timeout = 120,
		.grace = 30,
		.compress = CONTROLLER_AUTO,
	};
	if (namespace && pod)
		snprintf(options->pod, sizeof(options->pod), "%s/%s", namespace, pod);
	else if (gethostname(options->pod, sizeof(options->pod) - 1))
		options->pod[0] = 0;
	if (uid) {
		snprintf(options->label, sizeof(options->label), "%.12s", uid);
		snprintf(options->pod_uid, sizeof(options->pod_uid), "%s", uid);
	}
}

void options_suit(struct options *options)
{
	struct error error = {0};
	const struct transport *transport = transport_find(options->agent, &error);

	/* Under a limit of shared memory each channel counts in full. */
	if (transport && transport->far && !options->sized &&
		(!options->shm_size || options->shm_size >= 16ull * CHANNEL_FAR))
		options->arena = options->bounce = CHANNEL_FAR;
}

static int options_read(struct options *options, const char *path, struct error *error)
{
	return config_read(path, options_set, options, error);
}

int options_read_bytes(struct options *options, const char *name, const void *bytes, size_t n,
	struct error *error)
{
	return config_read_bytes(name, bytes, n, options_set, options, error);
}

/* --- the environment --- */

/* A variable that is empty counts as not set, so that a template may leave it so. */
static int options_environment(struct options *options, struct error *error)
{
	static const struct {
		const char *name, *key;
	} variables[] = {
		{"VCUDA_AGENT", "agent"},
		{"VCUDA_TOKEN_FILE", "token_file"},
		{"VCUDA_INSECURE", "insecure"},
		{"VCUDA_CA", "tls.ca"},
		{"VCUDA_CERT", "tls.cert"},
		{"VCUDA_KEY", "tls.key"},
		{"VCUDA_TLS_NAME", "tls.name"},
		{"VCUDA_SOCKET", "socket"},
		{"VCUDA_IPC", "ipc"},
		{"VCUDA_PROTOCOL", "protocol"},
		{"VCUDA_LOCAL_SOCKET", "local_socket"},
		{"VCUDA_VRAM_LIMIT", "vram_limit"},
		{"VCUDA_GPU_COUNT", "gpu_count"},
		{"VCUDA_GPU_SPREAD", "gpu_spread"},
		{"VCUDA_PRIORITY", "priority"},
		{"VCUDA_COMPRESS", "compress"},
		{"VCUDA_UPLOAD_CACHE", "upload_cache"},
		{"VCUDA_CONGESTION", "congestion"},
		{"VCUDA_SHM_SIZE", "shm_size"},
		{"VCUDA_GRACE", "grace"},
		{"VCUDA_LOG_LEVEL", "log"},
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		struct config_item item = {.key = variables[i].key,
			.text = getenv(variables[i].name),
			.index = -1};

		if (item.text && *item.text && options_set(options, &item, error) < 0)
			return error_wrap(error, -EINVAL, "$%s", variables[i].name);
	}
	return 0;
}

/* --- the command line --- */

static bool numeric(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* vcuda-client 0 HOST native|light SEND RECV CONTROL 0. SEND is the port that the client sends
 * to; the agent names its other port itself. */
static int parse_positional(int argc, char **argv, struct options *options, struct error *error)
{
	char agent[256];
	struct config_item item = {.key = "HOST native SEND", .text = agent, .index = -1};

	if (argc != 8 || !numeric(argv[4]) || !numeric(argv[5]) || !numeric(argv[6]))
		return error_set(error, 0,
			"the positional form is: vcuda-client 0 HOST native|light SEND RECV "
			"CONTROL 0");
	if (transport_assume(argv[3], error))
		return -EINVAL;
	if (snprintf(agent, sizeof(agent), "%s:%s", argv[2], argv[4]) >= (int)sizeof(agent))
		return error_set(error, 0, "the host's name is too long");
	options->mode = CHANNEL_HOST; /* its pods have hostIPC … */
	options->announce = true;     /* … and no volume that their containers share */
	return options_set_agent(options, &item, error);
}

static int parse_command(const char *word, enum command *command, struct error *error)
{
	static const char *const words[] = {
		"run", "probe", "drain", "status", "metrics", "calls", "help", "version"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word)) {
			*command = (enum command)i;
			return 0;
		}
	return error_set(
		error, 0, "unknown command '%s'; vcuda-client --help lists them", word);
}

/* Every key of the file is a flag; options_set knows them, and says so of any other first. */
static bool flag_known(const char *key)
{
	struct options scratch = {0};
	struct error error = {0};
	const struct config_item item = {.key = key, .text = "", .index = -1};

	if (!strcmp(key, "config"))
		return true;
	return !options_set(&scratch, &item, &error) ||
	       strncmp(error.text, "unknown key", 11) != 0;
}

/* One flag at argv[*i]; moves *i over its value. pass 0: only --config; pass 1: the others. */
static int parse_flag(int argc, char **argv, int *i, int pass, struct options *options,
	enum command *command, struct error *error)
{
	const char *flag = argv[*i] + 2, *equals = strchr(flag, '='), *text;
	size_t n = equals ? (size_t)(equals - flag) : strlen(flag);
	char key[64];
	struct config_item item = {.key = key, .index = -1};
	int ret;

	if (n >= sizeof(key))
		return error_set(error, 0, "unknown flag '%.80s'", argv[*i]);
	for (size_t k = 0; k <= n; k++)
		key[k] = k == n ? 0 : flag[k] == '-' ? '_' : flag[k];
	if (!strcmp(key, "help") || !strcmp(key, "version")) {
		*command = key[0] == 'h' ? COMMAND_HELP : COMMAND_VERSION;
		return 0;
	}
	if (!strcmp(key, "json")) {
		options->json = true;
		return 0;
	}
	if (!strcmp(key, "openmetrics")) {
		options->openmetrics = true;
		return 0;
	}
	if (!flag_known(key))
		return error_set(error, 0,
			"unknown flag '--%.*s'; vcuda-client --help lists them", (int)n, flag);
	text = equals ? equals + 1 : *i + 1 < argc ? argv[++*i] : NULL;
	if (!text)
		return error_set(error, 0, "--%.*s needs a value", (int)n, flag);
	if (!strcmp(key, "config"))
		return pass ? 0 : options_read(options, text, error);
	if (!pass)
		return 0;
	item.text = text;
	options->remote |= !strcmp(key, "agent");
	ret = options_set(options, &item, error);
	if (!strcmp(key, "token")) /* anybody may read a command line */
		memset((char *)text, '*', strlen(text));
	if (ret < 0) { /* "token_file: …" reads "--token-file: …" */
		size_t skip =
			!strncmp(error->text, key, n) && error->text[n] == ':' ? n + 2 : 0;
		char rest[sizeof(error->text)];

		snprintf(rest, sizeof(rest), "%s", error->text + skip);
		return error_set(error, 0, "--%.*s: %s", (int)n, flag, rest);
	}
	return 0;
}

int sidecar_options_parse(int argc, char **argv, struct options *options, enum command *command,
	struct error *error)
{
	int ret;

	options_default(options);
	*command = COMMAND_RUN;
	if (argc < 2) {
		*command = COMMAND_HELP;
		return 0;
	}
	for (int pass = 0; pass < 2; pass++) {
		ret = pass ? options_environment(options, error) : 0;
		if (ret < 0)
			return ret;
		if (numeric(argv[1])) {
			ret = pass ? parse_positional(argc, argv, options, error) : 0;
			if (ret < 0)
				return ret;
			continue;
		}
		for (int i = 1; i < argc; i++) {
			if (!strncmp(argv[i], "--", 2))
				ret = parse_flag(argc, argv, &i, pass, options, command, error);
			else if (i == 1)
				ret = parse_command(argv[i], command, error);
			else
				ret = error_set(
					error, 0, "what is '%s'? vcuda-client --help", argv[i]);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}
