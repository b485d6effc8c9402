/* SPDX-License-Identifier: Apache-2.0
 *
 * A flag is another name for a setting of the file (settings.h), so there is one place that
 * checks values.  The file is read first: flags win over it wherever they stand.
 */
#include "gpu-agent/supervisor/settings/options.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "transport/transport.h"

struct flag {
	const char *name;
	const char *key;      /* of settings_set; NULL: handled here */
	const char *argument; /* as --help shows it; NULL: none */
	const char *help;     /* NULL: not shown */
};

static const struct flag flags[] = {
	{"--config", NULL, "FILE", "read the YAML configuration (docs/AGENT.md)"},
	{"--driver", "driver", "D", "nvidia, software, or a path to a libcuda"},
	{"--gpus", "gpus", "LIST", "all, or numbers like 0,1"},
	{"--address", "listen", "HOST", "address to listen on (default: every one)"},
	{"--ports", "ports", "S,R,C", "send, receive, control (9997,9998,9999; 0 = any)"},
	{"--http-address", "http.address", "HOST", "address of the control port alone"},
	{"--token-file", "token_file", "FILE", "clients must bring a token of it"},
	{"--insecure", "insecure", NULL, "serve everybody, without a token"},
	{"--warm", "warm_workers", "N", "workers kept ready"},
	{"--max-sessions", "max_sessions", "N", "sessions at once"},
	{"--memory-limit", "memory_limit", "BYTES", "device memory a session (0 = all)"},
	{"--start-timeout", "start_timeout", "TIME", "how long a client waits for a worker"},
	{"--drain", "drain_seconds", "N", "how long sessions may go on after SIGTERM"},
	{"--cache-dir", "cache_dir", "DIR", "where modules are kept"},
	{"--peers", "peers", "LIST", "agents whose GPUs this one copies to and from directly"},
	{"--sandbox", "sandbox", "on|required|off", "required: all of it, or nobody is served"},
	{"--log", "log", "LEVEL", "error, warn, info or debug"},
	{"--log-format", "log_format", "FORMAT", "text (logfmt) or json"},
	{"--ready-file", "ready_file", "FILE", "write the ports there (JSON) when ready"},
	{"--set", NULL, "KEY=VALUE", "any setting of the configuration file"},
	{"--check-config", NULL, NULL, "check the configuration, start nothing"},
	{"--healthy", NULL, NULL, "ask the running agent whether it is alive"},
	{"--version", NULL, NULL, "print the version"},
	{"--help", NULL, NULL, "this list"},
	{"-h", NULL, NULL, NULL},
	/* vcuda -n native -s 9997 -r 9998 -p 9999 -a … -k … */
	{"-n", NULL, "native|light", NULL},
	{"-s", "ports.send", "PORT", NULL},
	{"-r", "ports.recv", "PORT", NULL},
	{"-p", "ports.control", "PORT", NULL},
	{"-a", NULL, "X", NULL},
	{"-k", NULL, "Y", NULL},
};
#define FLAGS (sizeof(flags) / sizeof(flags[0]))

static void print_help(void)
{
	printf("gpu-agent: serves this machine's GPUs to vcuda clients.\n\n"
	       "usage: gpu-agent [--config FILE] [flags]\n"
	       "       gpu-agent -n native|light -s SEND -r RECV -p CONTROL\n"
	       "       gpu-agent keep --help   (certificate and keys of a cluster)\n\n");
	for (size_t i = 0; i < FLAGS; i++) {
		char left[40];

		if (!flags[i].help)
			continue;
		snprintf(left, sizeof(left), "%s %s", flags[i].name,
			flags[i].argument ? flags[i].argument : "");
		printf("  %-26s %s\n", left, flags[i].help);
	}
}

static const struct flag *find_flag(char *word, char **value)
{
	for (size_t i = 0; i < FLAGS; i++) {
		size_t n = strlen(flags[i].name);

		if (strncmp(word, flags[i].name, n) || (word[n] && word[n] != '=') ||
			(word[n] == '=' && (word[1] != '-' || !flags[i].argument)))
			continue;
		*value = word[n] == '=' ? word + n + 1 : NULL;
		return &flags[i];
	}
	return NULL;
}

/* A token on the command line is everybody's to read, but no longer than needed. */
static int set_pair(struct agent_config *config, char *pair, struct error *error)
{
	char *equals = strchr(pair, '=');
	char key[128];
	int ret;

	if (!equals || (size_t)(equals - pair) >= sizeof(key))
		return error_set(error, 0, "--set wants KEY=VALUE, not '%.60s'", pair);
	memcpy(key, pair, (size_t)(equals - pair));
	key[equals - pair] = 0;
	ret = settings_set(config, key, equals + 1, error);
	if (!strcmp(key, "token"))
		memset(equals + 1, 'x', strlen(equals + 1));
	return ret;
}

static int apply(
	struct agent_config *config, const struct flag *flag, char *value, struct error *error)
{
	if (flag->key)
		return settings_set(config, flag->key, value, error);
	if (!strcmp(flag->name, "--set"))
		return set_pair(config, value, error);
	if (!strcmp(flag->name, "-n") && transport_assume(value, error))
		return error_wrap(error, -EINVAL, "-n");
	config->older_form |= !strcmp(flag->name, "-n");
	if (!strcmp(flag->name, "-a") || !strcmp(flag->name, "-k"))
		log_warn("options.obsolete", "flag=%s text=\"no longer used, ignored\"",
			flag->name);
	return 0;
}

/* What a flag that is a command does; OPTIONS_RUN for all others. */
static enum options_do command(const struct flag *flag)
{
	if (!strcmp(flag->name, "--help") || !strcmp(flag->name, "-h")) {
		print_help();
		return OPTIONS_DONE;
	}
	if (!strcmp(flag->name, "--version")) {
		printf("gpu-agent %s, session protocol %u\n", VCUDA_BUILD, SESSION_VERSION);
		return OPTIONS_DONE;
	}
	if (!strcmp(flag->name, "--healthy"))
		return OPTIONS_ASK;
	return strcmp(flag->name, "--check-config") ? OPTIONS_RUN : OPTIONS_CHECK;
}

/* One pass over the words: the first looks for --config and the commands, the second sets. */
static enum options_do walk(
	int argc, char **argv, struct agent_config *config, bool setting, struct error *error)
{
	enum options_do todo = OPTIONS_RUN;
	char yes[] = "true";

	for (int i = 1; i < argc; i++) {
		char *value;
		const struct flag *flag = find_flag(argv[i], &value);
		enum options_do one;

		if (!flag) {
			error_set(error, 0, "unknown %s '%.60s' (--help lists the flags)",
				argv[i][0] == '-' ? "flag" : "argument", argv[i]);
			return OPTIONS_USAGE;
		}
		if (flag->argument && !value && !(value = argv[++i])) {
			error_set(error, 0, "%s wants %s", flag->name, flag->argument);
			return OPTIONS_USAGE;
		}
		if (setting) {
			if ((flag->argument || flag->key) &&
				apply(config, flag, flag->argument ? value : yes, error)) {
				error_wrap(error, 0, "%s", flag->name);
				return OPTIONS_USAGE;
			}
			continue;
		}
		one = command(flag);
		if (one == OPTIONS_DONE)
			return one;
		if (one == OPTIONS_CHECK || one == OPTIONS_ASK)
			todo = one;
		if (!strcmp(flag->name, "--config") &&
			agent_settings_read(config, value, error))
			return OPTIONS_BAD;
	}
	return todo;
}

enum options_do agent_options_parse(
	int argc, char **argv, struct agent_config *config, struct error *error)
{
	enum options_do todo, second;

	settings_defaults(config);
	for (int i = 1; i < argc; i++) /* first: it changes what the file is read for */
		config->asking |= !strcmp(argv[i], "--healthy");
	todo = walk(argc, argv, config, false, error);
	if (todo != OPTIONS_RUN && todo != OPTIONS_CHECK && todo != OPTIONS_ASK)
		return todo;
	second = walk(argc, argv, config, true, error);
	return second == OPTIONS_RUN ? todo : second;
}
