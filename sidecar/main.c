/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda-client: see options_usage.  Exit status: 0, 1 where something failed, 2 for wrong
 * usage; probe also has EXIT_NOT_PERMITTED.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/cleanup.h"
#include "common/exit_status.h"
#include "common/log.h"
#include "common/version.h"
#include "protocol/wire/status.h"
#include "sidecar/control_client.h"
#include "sidecar/install.h"
#include "sidecar/options/options.h"
#include "sidecar/server/server.h"
#include "transport/transport.h"

static int complain(const struct error *error, int status)
{
	fprintf(stderr, "vcuda-client: %s\n", error->text);
	return status;
}

static int do_status(const struct options *options)
{
	struct error error;
	char *json;

	if (control_text(options->socket, CHANNEL_STATUS, 0, &json, &error) < 0)
		return complain(&error, 1);
	if (options->json)
		puts(json);
	else
		control_print(json);
	free(json);
	return 0;
}

static int do_text(const struct options *options, uint32_t op)
{
	struct error error;
	char *text;

	if (control_text(options->socket, op, options->openmetrics, &text, &error) < 0)
		return complain(&error, 1);
	fputs(text, stdout);
	free(text);
	return 0;
}

/* The sidecar of this machine or pod serves and takes processes. */
static int probe_sidecar(const struct options *options, struct error *error)
{
	cleanup_free char *json = NULL;
	cJSON *root;
	bool draining;

	if (control_text(options->socket, CHANNEL_STATUS, 0, &json, error) < 0)
		return -ENOENT;
	root = cJSON_Parse(json);
	draining = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "draining"));
	cJSON_Delete(root);
	return draining ? error_set(error, 0, "the sidecar is draining") : 0;
}

static int probe_part(const struct options *options, const struct spread_part *part)
{
	struct agents agents = AGENTS_INIT;
	struct session_welcome welcome;
	char who[AGENT_TEXT];
	struct error error;
	uint64_t took;

	if (control_probe(options, part, &agents, &welcome, &took, &error) < 0)
		return complain(&error,
			welcome.status == STATUS_NOT_PERMITTED ? EXIT_NOT_PERMITTED : 1);
	agents_chosen(&agents, who);
	printf(options->json ? "{\"agent\": \"%s\", \"granted\": true, \"text\": \"%s\", "
			       "\"seconds\": %.6f}\n"
			     : "agent %s answers: %s (asked and answered in %.6f s)\n",
		who, welcome.text, (double)took / 1e9);
	return 0;
}

static int do_probe(const struct options *options)
{
	static struct spread spread;
	struct spread_part part;
	struct error error;
	int ret = 0;

	if (!options->remote && probe_sidecar(options, &error) < 0)
		return complain(&error, 1);
	if (!options->agent[0]) {
		error_set(&error, 0,
			"probe: name an agent with --agent HOST[:PORT], $VCUDA_AGENT or "
			"--config FILE");
		return complain(&error, 2);
	}
	ret = control_spread(options, &spread, &error);
	if (ret < 0)
		return complain(&error, ret == -EPERM ? EXIT_NOT_PERMITTED : 1);
	for (unsigned i = 0; !ret && i < spread_count(&spread); i++) {
		spread_part(&spread, i, &part);
		ret = probe_part(options, &part);
	}
	return ret;
}

/* Before any thread; an agent that was named before TLS was asked for is looked at again. */
static int secure(const struct options *options, struct error *error)
{
	const struct transport_tls *tls = &options->tls;
	int ret = 0;

	if (tls->ca[0] || tls->cert[0] || tls->key[0] || tls->name[0])
		ret = options->light ? error_set(error, 0,
					       "protocol: light goes in the clear, and TLS is "
					       "configured here: one of the two")
				     : transport_secure(TRANSPORT_CLIENT, tls, error);
	if (!ret && options->light)
		ret = transport_assume("light", error);
	if (!ret && options->credential[0] &&
		transport_credential(options->credential, options->insecure, error) < 0)
		ret = error_wrap(error, -EINVAL, "token_file");
	if (!ret && options->agent[0] && agents_check(options->agent, error) < 0)
		ret = error_wrap(error, -EINVAL, "agent");
	return ret;
}

int main(int argc, char **argv)
{
	struct options options;
	enum command command;
	struct error error;

	log_open("sidecar");
	/* What it is about to read is not for whoever else runs under this user and sees our
	 * process: the token, other programs' memory. */
	prctl(PR_SET_DUMPABLE, 0);
	if (argc > 1 && !strcmp(argv[1], "install"))
		return install_main(argc - 1, argv + 1);
	if (sidecar_options_parse(argc, argv, &options, &command, &error) < 0)
		return complain(&error, 2);
	if (options.dumpable)
		prctl(PR_SET_DUMPABLE, 1);
	if ((command == COMMAND_RUN || command == COMMAND_PROBE) &&
		(options_agree(&options, &error) < 0 || secure(&options, &error) < 0))
		return complain(&error, 2);
	options_suit(&options);
	switch (command) {
	case COMMAND_HELP: fputs(options_usage, stdout); return 0;
	case COMMAND_VERSION: puts("vcuda-client " VCUDA_BUILD); return 0;
	case COMMAND_STATUS: return do_status(&options);
	case COMMAND_METRICS: return do_text(&options, CHANNEL_METRICS);
	case COMMAND_CALLS: return do_text(&options, CHANNEL_CALLS);
	case COMMAND_PROBE: return do_probe(&options);
	case COMMAND_DRAIN:
		return control_drain(options.socket, &error) < 0 ? complain(&error, 1) : 0;
	default: return server_run(&options, &error) < 0 ? complain(&error, 1) : 0;
	}
}
