/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu-agent: one binary, several kinds of process.  Started by people it is the supervisor; the
 * front and the workers (and the probe for libraries) are the same binary with --role, started
 * by the supervisor only.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/front/health.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/identity/key_set.h"
#include "gpu-agent/keeper/keeper.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/tally.h"
#include "gpu-agent/supervisor/listening.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "gpu-agent/supervisor/settings/options.h"
#include "gpu-agent/supervisor/reload.h"
#include "gpu-agent/supervisor/settings/token.h"

static int fail(int status, const struct error *error)
{
	fprintf(stderr, "gpu-agent: %s\n", error->text);
	return status;
}

/* The front logs it: once, however often it tries again. */
static int worker_failed(const struct error *error)
{
	static struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_FAILED};

	snprintf(h.text, sizeof(h.text), "%.190s", error->text);
	(void)!send(AGENT_FD_SOCKET, &h, sizeof(h), MSG_NOSIGNAL);
	return 1;
}

/* Takes LISTENER: who has it refuses this process its calls. */
static int give_listener(int listener, struct error *error)
{
	static struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_REFUSALS};
	int ret;

	if (listener < 0)
		return 0;
	ret = descriptors_send(AGENT_FD_SOCKET, &h, sizeof(h), &listener, 1, 0);
	close(listener);
	return ret ? error_set(error, -ret, "sandbox: the front does not listen") : 0;
}

static int role_main(const char *role)
{
	static struct agent_config config;
	struct error error;
	int listener;

	if (strcmp(role, "worker"))
		sandbox_hide();
	if (settings_from_fd(&config, AGENT_FD_CONFIG, &error))
		return fail(2, &error);
	close(AGENT_FD_CONFIG);
	log_level = (enum log_level)config.log_level;
	log_format = (enum log_format)config.log_format;
	if (!strcmp(role, "front")) {
		prctl(PR_SET_NAME, "agent-front");
		log_open("agent-front");
		return front_main(&config);
	}
	if (!strcmp(role, "store")) {
		prctl(PR_SET_NAME, "agent-store");
		log_open("agent-store");
		return sandbox_enter_store(&config, &error) ? fail(1, &error)
							    : store_main(&config);
	}
	if (!strcmp(role, "directory")) {
		prctl(PR_SET_NAME, "agent-directory");
		log_open("agent-directory");
		return sandbox_enter_store(&config, &error) ? fail(1, &error)
							    : directory_main(&config);
	}
	if (!strcmp(role, "uploads")) {
		prctl(PR_SET_NAME, "agent-uploads");
		log_open("agent-uploads");
		return sandbox_enter_uploads(&config, &error) ? fail(1, &error)
							      : uploads_main(&config);
	}
	if (!strcmp(role, "probe")) {
		prctl(PR_SET_NAME, "agent-probe");
		log_open("agent-probe");
		return probe_main(&config, AGENT_FD_SOCKET);
	}
	if (strcmp(role, "worker")) {
		error_set(&error, 0, "--role is for gpu-agent itself");
		return fail(2, &error);
	}
	prctl(PR_SET_NAME, "agent-worker");
	log_open("agent-worker");
	if (config.pinned &&
		sched_setaffinity(0, sizeof(config.worker_cpus), &config.worker_cpus))
		log_warn("worker.cpus", "text=\"worker_cpus: %s\"", strerror(errno));
	compiled_enter(&config);
	if (sandbox_enter(&config, &listener, &error) || give_listener(listener, &error))
		return worker_failed(&error);
	return worker_main(&config, AGENT_FD_SOCKET);
}

/* Read here only to say what is wrong with it: the front reads it for itself. */
static int check_keys(const struct agent_config *config, struct error *error)
{
	struct key_set *keys;

	if (!config->service_account.keys[0])
		return 0;
	if (key_set_open(&keys, config->service_account.keys, error))
		return error_wrap(error, -EINVAL, "service_account.keys");
	key_set_close(keys);
	return 0;
}

/* What a supervisor, its front and its workers, which may be of two releases after a reload,
 * say to each other: sizes stand for layouts, and a change that leaves them is a new version.
 */
static uint64_t reload_layout(void)
{
	const uint64_t parts[] = {HANDOFF_VERSION, sizeof(struct handoff), JOURNAL_MAGIC,
		sizeof(struct journal), sizeof(struct tally), sizeof(struct control),
		sizeof(struct agent_config), sizeof(struct reload_state),
		sizeof(struct reload_entry), SESSION_VERSION};
	uint64_t sum = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum = (sum ^ parts[i]) * 0x100000001b3u;
	return sum;
}

/* As the supervisor would be with it. */
static void set_log(struct agent_config *config)
{
	if (getenv("VCUDA_LOG"))
		config->log_level = log_level;
	config->log_format = log_format;
	log_level = (enum log_level)config->log_level;
}

int main(int argc, char **argv)
{
	static struct agent_config config;
	static struct reload reload;
	struct error error;
	enum options_do todo;

	if (argc == 3 && !strcmp(argv[1], "--role"))
		return role_main(argv[2]);
	sandbox_hide(); /* it reads the token */
	if (argc >= 2 && !strcmp(argv[1], "keep"))
		return keeper_main(argc - 2, argv + 2);
	log_open("gpu-agent");
	if (reload_begin(&reload, &argc, argv, reload_layout(), &error))
		return fail(2, &error);
	todo = agent_options_parse(argc, argv, &config, &error);
	if (todo == OPTIONS_DONE)
		return 0;
	if (todo == OPTIONS_USAGE || todo == OPTIONS_BAD)
		return fail(todo == OPTIONS_USAGE ? 2 : 1, &error);
	if (settings_complete(&config, reload.binary, &error))
		return fail(1, &error);
	if (todo != OPTIONS_ASK && check_keys(&config, &error))
		return fail(1, &error);
	if ((todo == OPTIONS_CHECK || reload.check >= 0) && listening_check(&config, &error))
		return fail(1, &error);
	if (todo == OPTIONS_CHECK) {
		printf("the configuration is good\n");
		return 0;
	}
	if (todo == OPTIONS_ASK)
		return health_ask(&config, &error) ? fail(1, &error) : 0;
	if (reload.check >= 0) {
		int answer;

		set_log(&config);
		answer = reload_ask(&reload, &config, &error);
		return answer < 0 ? fail(1, &error) : answer;
	}
	/* A certificate or a signed token that must be there says enough. */
	if (!config.insecure && !config.networks_end && !config.tls.require &&
		!config.service_account.keys[0] && !config.tokens.count &&
		token_make(&config.tokens, &error))
		return fail(1, &error);
	set_log(&config);
	return supervisor_main(&config, &reload);
}
