/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/network_table.h"

#define ENTRIES_MOST 65536
#define WORDS 3 /* --reload WHAT FD */

struct head {
	uint64_t layout; /* first, at its place in every version */
	struct reload_state state;
};

static bool has_terminal(void)
{
	cleanup_close int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return fd >= 0;
}

/* What argv says is overwritten where it is a secret, hence a copy. */
static char **copy_words(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words));

	for (int i = 0; words && i < argc; i++)
		if (!(words[i] = strdup(argv[i])))
			return NULL;
	return words;
}

int reload_begin(
	struct reload *reload, int *argc, char **argv, uint64_t layout, struct error *error)
{
	*reload = (struct reload){
		.layout = layout, .check = -1, .taken = -1, .terminal = has_terminal()};
	if (readlink("/proc/self/exe", reload->binary, sizeof(reload->binary) - 1) < 0 ||
		stat(reload->binary, &reload->is))
		strcpy(reload->binary, "gpu-agent");
	if (*argc > 1 && !strcmp(argv[1], "--reload")) {
		int fd = *argc > WORDS ? atoi(argv[3]) : -1;

		if (fd <= STDERR_FILENO || fcntl(fd, F_SETFD, FD_CLOEXEC))
			return error_set(error, 0, "--reload is for gpu-agent itself");
		*(strcmp(argv[2], "take") ? &reload->check : &reload->taken) = fd;
		memmove(argv + 1, argv + 1 + WORDS, (size_t)(*argc - WORDS) * sizeof(*argv));
		*argc -= WORDS;
	}
	reload->argv = copy_words(*argc, argv);
	return reload->argv ? 0 : error_set(error, ENOMEM, "the command line");
}

static int read_head(
	const struct reload *reload, int fd, struct head *head, struct error *error)
{
	if (pread(fd, head, sizeof(head->layout), 0) != (ssize_t)sizeof(head->layout) ||
		head->layout != reload->layout)
		return error_set(error, 0,
			"the agent that runs has its tables in another form than this binary; "
			"a restart takes it");
	if (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head) ||
		head->state.children > ENTRIES_MOST || head->state.kept > ENTRIES_MOST)
		return error_set(error, 0, "--reload is for gpu-agent itself");
	return 0;
}

/* The key that differs, and that sessions, ports or tables hang on; NULL: none. */
static const char *fixed_key(const struct agent_config *a, const struct agent_config *b)
{
	if (strcmp(a->address, b->address))
		return "listen";
	if (!a->tls.cert[0] != !b->tls.cert[0])
		return "tls.cert";
	if (memcmp(a->ports, b->ports, sizeof(a->ports)))
		return "ports";
	if (strcmp(a->http_address, b->http_address))
		return "http.address";
	if (a->driver != b->driver || strcmp(a->driver_path, b->driver_path))
		return "driver";
	if (a->gpu_count != b->gpu_count || memcmp(a->gpus, b->gpus, sizeof(a->gpus)))
		return "gpus";
	if (a->max_sessions != b->max_sessions)
		return "max_sessions";
	if (a->memory_reserve != b->memory_reserve)
		return "memory_reserve";
	if (strcmp(a->networks_folder, b->networks_folder))
		return "networks_folder";
	return strcmp(a->cache_dir, b->cache_dir) ? "cache_dir" : NULL;
}

/* What the supervisor fills in. */
static void keep_running(struct agent_config *config, const struct agent_config *old)
{
	memcpy(config->bound, old->bound, sizeof(config->bound));
	config->listening = old->listening;
	memcpy(config->compiled, old->compiled, sizeof(config->compiled));
	config->front_restarts = old->front_restarts;
	config->reloads = old->reloads;
}

/* Those that the new configuration has no more are left as with `vcuda peer leave`. What is in
 * the folder is looked at anyway. */
static void leave_networks(struct agent_config *config, const struct agent_config *old)
{
	for (uint32_t i = 0; i < old->network_count; i++) {
		struct agent_network network = old->networks[i];

		if ((network.dropped && !network.leaving_until) ||
			network_table_find(config, network.is.name) >= 0 ||
			config->network_count == AGENT_NETWORKS)
			continue;
		if (!network.leaving_until)
			network.leaving_until = wait_now() + config->drain_ms * 1000000ull;
		config->networks[config->network_count++] = network;
	}
}

/* What a token file says is read by itself; another file is another configuration. Where none
 * is named the running agent has made one of its own. */
static void keep_tokens(struct agent_tokens *tokens, const struct agent_tokens *old)
{
	if (!tokens->file[0] || !old->file[0] || !strcmp(tokens->file, old->file))
		*tokens = *old;
}

int reload_ask(
	const struct reload *reload, const struct agent_config *config, struct error *error)
{
	static struct head head;
	static struct agent_config same;
	const char *key;
	int ret = read_head(reload, reload->check, &head, error);

	if (ret)
		return ret;
	network_settings_strip(&head.state.config); /* the folder is looked at anyway */
	key = fixed_key(&head.state.config, config);
	if (key)
		return error_set(error, 0, "'%s' is another: a restart changes it", key);
	same = *config;
	keep_running(&same, &head.state.config);
	keep_tokens(&same.tokens, &head.state.config.tokens);
	keep_tokens(&same.http_tokens, &head.state.config.http_tokens);
	same.warm_libraries = head.state.config.warm_libraries;
	return memcmp(&same, &head.state.config, sizeof(same)) ? 0 : RELOAD_SAME;
}

int reload_write(const struct reload *reload, const struct reload_state *state,
	const struct reload_entry *entries, struct error *error)
{
	cleanup_close int fd = memfd_create("gpu-agent-reload", MFD_CLOEXEC);
	struct head head = {.layout = reload->layout, .state = *state};
	ssize_t size = (ssize_t)((state->children + state->kept) * sizeof(*entries));

	if (fd < 0 || pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		(size && pwrite(fd, entries, (size_t)size, sizeof(head)) != size))
		return error_set(error, errno ? errno : EIO, "the memfd of a reload");
	return take_fd(&fd);
}

/* WHAT FD and the arguments; to be freed. */
static char **words_for(const struct reload *reload, char *what, char *number)
{
	static char flag[] = "--reload";
	size_t count = 0;
	char **words;

	while (reload->argv[count])
		count++;
	words = calloc(count + WORDS + 1, sizeof(*words));
	if (!words)
		return NULL;
	words[0] = reload->argv[0];
	words[1] = flag;
	words[2] = what;
	words[3] = number;
	memcpy(words + 1 + WORDS, reload->argv + 1, (count - 1) * sizeof(*words));
	return words;
}

pid_t reload_check(const struct reload *reload, int state, struct error *error)
{
	char what[] = "check", number[16];
	cleanup_free char **words = words_for(reload, what, number);
	pid_t parent = getpid(), pid;
	sigset_t none;

	snprintf(number, sizeof(number), "%d", state);
	pid = words ? fork() : -1;
	if (pid < 0)
		return error_set(error, errno, "fork for a reload");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fcntl(state, F_SETFD, 0);
	execv(reload->binary, words);
	fprintf(stderr, "gpu-agent: %s: %s\n", reload->binary, strerror(errno));
	_exit(127);
}

/* FLAG: 0 or FD_CLOEXEC, of all that goes along. */
static void mark(int flag, int memory, const struct reload_state *state,
	const struct reload_entry *entries)
{
	const struct transport_listening *listening = &state->config.listening;

	fcntl(memory, F_SETFD, flag);
	fcntl(state->http, F_SETFD, flag);
	if (state->compiled_lock >= 0)
		fcntl(state->compiled_lock, F_SETFD, flag);
	for (unsigned i = 0; i < listening->count; i++) {
		fcntl(listening->at[i].fd, F_SETFD, flag);
		if (listening->at[i].instance.socket[0])
			fcntl(listening->at[i].instance.lock_fd, F_SETFD, flag);
	}
	for (uint32_t i = 0; i < state->children + state->kept; i++)
		fcntl(entries[i].fd, F_SETFD, flag);
}

int reload_exec(const struct reload *reload, int memory, const struct reload_state *state,
	const struct reload_entry *entries, struct error *error)
{
	char what[] = "take", number[16];
	cleanup_free char **words = words_for(reload, what, number);
	int cause;

	if (!words)
		return error_set(error, ENOMEM, "the command line");
	snprintf(number, sizeof(number), "%d", memory);
	mark(0, memory, state, entries);
	execv(reload->binary, words);
	cause = errno;
	mark(FD_CLOEXEC, memory, state, entries);
	return error_set(error, cause, "%s", reload->binary);
}

int reload_take(const struct reload *reload, struct agent_config *config,
	struct reload_state *state, struct reload_entry **entries, struct error *error)
{
	static struct head head;
	int ret = read_head(reload, reload->taken, &head, error);
	size_t size;

	if (ret)
		return ret;
	size = (head.state.children + head.state.kept) * sizeof(**entries);
	*entries = malloc(size + 1);
	if (!*entries || pread(reload->taken, *entries, size, sizeof(head)) != (ssize_t)size) {
		free(*entries);
		return error_set(error, EIO, "the memfd of a reload");
	}
	*state = head.state;
	keep_running(config, &head.state.config);
	leave_networks(config, &head.state.config);
	mark(FD_CLOEXEC, reload->taken, state, *entries);
	close(reload->taken);
	return 0;
}
