/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda peer: this machine's GPUs for a network of people (docs/PEERS.md).  A network that it
 * joins is a file in a folder that the agent looks at all the time; nothing else goes between
 * the two.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/peer_agent.h"
#include "command/peer_secrets.h"
#include "common/cleanup.h"
#include "common/network.h"
#include "common/wait.h"

#define MS 1000000ull
#define LOOK_MS 50
#define JOIN_NS (60000 * MS) /* a GPU's driver takes its time */
#define ENTER_NS (5000 * MS) /* the directory's answer; it may come later too */
#define LEAVE_SLACK_S 10.0

static const char usage[] =
	"vcuda peer join [--folder DIR] NETWORK.yaml [-- AGENT-FLAG ...]\n"
	"vcuda peer leave [--folder DIR] [--no-wait] NETWORK\n"
	"vcuda peer list [--folder DIR] [--json]\n"
	"\n"
	"  join    the agent that has the folder lends its GPUs in that network too; where "
	"none\n"
	"          runs one is started, with AGENT-FLAGs, and ends with its last network\n"
	"  leave   new sessions are refused, running ones go on for the agent's drain_seconds\n"
	"  list    networks, their state and sessions\n"
	"\n"
	"  --folder DIR   the agent's networks_folder, not that of this user\n"
	"  --no-wait      do not wait for running sessions to end\n"
	"  --json         as the agent writes it\n";

struct peer {
	char folder[1024];
	const char *what; /* file or network */
	char *const *flags;
	bool json, no_wait;
};

static bool parse(struct peer *peer, int argc, char **argv, struct error *error)
{
	static char *const none[] = {NULL};

	peer->flags = none;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			peer->flags = argv + i + 1;
			break;
		}
		if (!strcmp(argv[i], "--folder") && i + 1 < argc &&
			strlen(argv[i + 1]) < sizeof(peer->folder)) {
			strcpy(peer->folder, argv[++i]);
		} else if (!strcmp(argv[i], "--json")) {
			peer->json = true;
		} else if (!strcmp(argv[i], "--no-wait")) {
			peer->no_wait = true;
		} else if (argv[i][0] != '-' && !peer->what) {
			peer->what = argv[i];
		} else {
			error_set(error, 0,
				"peer: '%.60s' is not understood; see vcuda peer --help",
				argv[i]);
			return false;
		}
	}
	return true;
}

static void pause_a_little(void)
{
	poll(NULL, 0, LOOK_MS);
}

/* --- join --------------------------------------------------------------------------------- */

/* What the network's file is, and what was there before. */
struct placed {
	char name[NETWORK_NAME + 8]; /* NAME.yaml */
	char path[PEER_PATH], before[PEER_PATH];
	bool replaced;
	char file_ns[24];
};

/* Written whole and then given its name, as the folder's owner's. */
static int place(struct placed *placed, const char *folder, const struct network *network,
	struct error *error)
{
	cleanup_stream FILE *file = NULL;
	char part[PEER_PATH];
	struct stat owner, st;
	int fd;

	snprintf(placed->name, sizeof(placed->name), "%s.yaml", network->name);
	snprintf(placed->path, sizeof(placed->path), "%s/%s", folder, placed->name);
	snprintf(placed->before, sizeof(placed->before), "%s/.%s.before", folder, placed->name);
	snprintf(part, sizeof(part), "%s/.%s.%d", folder, placed->name, getpid());
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return error_set(error, errno, "%s", part);
	network_write(file, network);
	if (fflush(file) || ferror(file) || stat(folder, &owner) ||
		(!geteuid() && fchown(fd, owner.st_uid, owner.st_gid)) || fstat(fd, &st)) {
		error_set(error, errno, "%s", part);
		unlink(part);
		return -EIO;
	}
	snprintf(placed->file_ns, sizeof(placed->file_ns), "%" PRId64,
		(int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	placed->replaced = !link(placed->path, placed->before);
	if (!rename(part, placed->path))
		return 0;
	error_set(error, errno, "%s", placed->path);
	unlink(part);
	return -EIO;
}

/* As it was: what the agent refuses does not stay. */
static void take_back(const struct placed *placed, const char *folder, const char *name)
{
	if (placed->replaced) {
		rename(placed->before, placed->path);
		return;
	}
	unlink(placed->path);
	peer_secrets_close(folder, name);
}

static void say_joined(const cJSON *network, const char *name)
{
	const char *state = peer_text(network, "state"), *text = peer_text(network, "text");
	bool entered = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(network, "entered"));

	if (strcmp(state, "open")) {
		printf("%s: %s: %s\n", name, state, text);
		return;
	}
	if (entered)
		printf("%s: open, %.0f GPU%s, in the directory %s\n", name,
			peer_number(network, "gpus"),
			peer_number(network, "gpus") == 1 ? "" : "s",
			peer_text(network, "directory"));
	else
		fprintf(stderr,
			"vcuda: %s is open, but its directory %s does not serve (%s); the "
			"agent goes on asking\n",
			name, peer_text(network, "directory"),
			peer_text(network, "directory_text"));
}

/* 1: joined, and said so; 0: not yet; -EINVAL with *error: refused. */
static int look_joined(const char *folder, const struct placed *placed, const char *name,
	uint64_t *open_at, struct error *error)
{
	cJSON *state = peer_agent_state(folder);
	const cJSON *network = peer_agent_network(state, name);
	const cJSON *refused = peer_agent_refused(state, placed->name);
	const char *is = peer_text(network, "state");
	int ret = 0;

	if (refused && !strcmp(peer_text(refused, "file_ns"), placed->file_ns)) {
		ret = error_set(
			error, 0, "the agent refuses it: %s", peer_text(refused, "text"));
	} else if (network && !strcmp(peer_text(network, "file_ns"), placed->file_ns)) {
		bool entered =
			cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(network, "entered"));

		if (!strcmp(is, "refused")) {
			ret = error_set(error, 0, "the agent refuses it: %s",
				peer_text(network, "text"));
		} else if (!strcmp(is, "closed")) {
			ret = 1;
		} else if (!strcmp(is, "open")) {
			*open_at = *open_at ? *open_at : wait_now();
			ret = entered || wait_now() - *open_at > ENTER_NS;
		}
		if (ret > 0)
			say_joined(network, name);
	}
	cJSON_Delete(state);
	return ret;
}

/* What keeps it from beginning, as far as it says so. */
static int still_starting(const char *folder, const char *name, struct error *error)
{
	cJSON *state = peer_agent_state(folder);
	const char *text = peer_text(peer_agent_network(state, name), "text");
	int ret = error_set(error, 0, "the agent does not join within %d s: %s",
		(int)(JOIN_NS / MS / 1000), *text ? text : "its log says why");

	cJSON_Delete(state);
	return ret;
}

/* PID: an agent that was started for it, or 0. */
static int wait_joined(const char *folder, const struct placed *placed, const char *name,
	pid_t pid, struct error *error)
{
	uint64_t until = wait_now() + JOIN_NS, open_at = 0;
	char words[200];

	while (wait_now() < until) {
		int ret = look_joined(folder, placed, name, &open_at, error);

		if (ret)
			return ret < 0 ? ret : 0;
		if (pid ? waitpid(pid, NULL, WNOHANG) == pid : !peer_agent_runs(folder)) {
			peer_agent_last_words(folder, words, sizeof(words));
			return error_set(error, 0, "the agent ended: %s",
				words[0] ? words : "its log is agent.log of the folder");
		}
		pause_a_little();
	}
	return still_starting(folder, name, error);
}

/* A service's, which is not running: an agent of this user's would take its place. */
static bool owned_by_another(const char *folder, struct error *error)
{
	struct stat st;

	if (stat(folder, &st) || st.st_uid == geteuid())
		return false;
	error_set(error, 0, "%s is user %u's, and no agent of that user runs: start it first",
		folder, st.st_uid);
	return true;
}

static int join(const struct peer *peer, struct error *error)
{
	struct placed placed = {0};
	struct network network;
	pid_t pid = 0;
	int ret;

	if (!peer->what)
		return error_set(error, 0, "peer join wants a NETWORK.yaml");
	ret = network_read(&network, peer->what, error);
	if (!ret)
		ret = peer_folder_open(peer->folder, error);
	if (!ret)
		ret = peer_secrets_open(peer->folder, &network, error);
	if (!ret)
		ret = place(&placed, peer->folder, &network, error);
	if (ret)
		return ret;
	if (!peer_agent_runs(peer->folder))
		pid = owned_by_another(peer->folder, error)
			      ? -EPERM
			      : peer_agent_start(peer->folder, peer->flags, error);
	else if (peer->flags[0])
		fprintf(stderr, "vcuda: an agent runs already: its flags stay as they are\n");
	ret = pid < 0 ? (int)pid : wait_joined(peer->folder, &placed, network.name, pid, error);
	if (ret)
		take_back(&placed, peer->folder, network.name);
	unlink(placed.before);
	return ret;
}

/* --- leave -------------------------------------------------------------------------------- */

static int wait_left(const struct peer *peer, struct error *error)
{
	uint64_t until = 0;
	bool said = false;

	while (peer_agent_runs(peer->folder)) {
		cJSON *state = peer_agent_state(peer->folder);
		const cJSON *network = peer_agent_network(state, peer->what);
		double sessions = peer_number(network, "sessions");
		double drain = peer_number(state, "drain_seconds");
		bool gone = state && !network;

		cJSON_Delete(state);
		if (gone)
			break;
		if (!until)
			until = wait_now() + (uint64_t)((drain + LEAVE_SLACK_S) * 1000) * MS;
		if (wait_now() > until)
			return error_set(error, 0,
				"%s is not left yet; vcuda peer list shows its sessions",
				peer->what);
		if (sessions > 0 && !said)
			fprintf(stderr, "vcuda: %.0f sessions of %s may go on for %.0f s\n",
				sessions, peer->what, drain);
		said |= sessions > 0;
		pause_a_little();
	}
	printf("%s: left\n", peer->what);
	return 0;
}

static int leave(const struct peer *peer, struct error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	char path[PEER_PATH];
	cJSON *state;
	bool configured, leaving;

	if (!peer->what || peer->what[strspn(peer->what, letters)])
		return error_set(error, 0, "peer leave wants a network's name");
	snprintf(path, sizeof(path), "%s/%.100s.yaml", peer->folder, peer->what);
	state = peer_agent_runs(peer->folder) ? peer_agent_state(peer->folder) : NULL;
	configured = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(
		peer_agent_network(state, peer->what), "configured"));
	leaving = !strcmp(peer_text(peer_agent_network(state, peer->what), "state"), "leaving");
	cJSON_Delete(state);
	if (configured)
		return error_set(error, 0,
			"%s is in the agent's configuration: take it out there and reload",
			peer->what);
	if (unlink(path) && !(errno == ENOENT && leaving))
		return errno == ENOENT
			       ? error_set(error, 0, "this machine is not in a network '%s'",
					 peer->what)
			       : error_set(error, errno, "%s", path);
	peer_secrets_close(peer->folder, peer->what);
	return peer->no_wait ? 0 : wait_left(peer, error);
}

/* --- list --------------------------------------------------------------------------------- */

static void print_networks(const cJSON *state)
{
	const cJSON *one;

	printf("%-20s %-9s %8s %5s  %s\n", "NETWORK", "STATE", "SESSIONS", "GPUS", "DIRECTORY");
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(state, "networks"))
	{
		bool open = !strcmp(peer_text(one, "state"), "open");
		bool entered = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(one, "entered"));

		printf("%-20s %-9s %8.0f %5.0f  %s%s%s\n", peer_text(one, "name"),
			peer_text(one, "state"), peer_number(one, "sessions"),
			peer_number(one, "gpus"), peer_text(one, "directory"),
			open && !entered ? ": " : "",
			open && !entered ? peer_text(one, "directory_text") : "");
	}
	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(state, "refused"))
		printf("%-20s %-9s %8s %5s  %s\n", peer_text(one, "file"), "refused", "", "",
			peer_text(one, "text"));
}

static int list(const struct peer *peer, struct error *error)
{
	cJSON *state = peer_agent_runs(peer->folder) ? peer_agent_state(peer->folder) : NULL;
	char *text;

	if (!state)
		return error_set(error, 0, "no agent has the folder %s", peer->folder);
	if (peer->json) {
		text = cJSON_Print(state);
		puts(text);
		cJSON_free(text);
	} else {
		print_networks(state);
	}
	cJSON_Delete(state);
	return 0;
}

int command_peer(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct peer *peer, struct error *error);
	} verbs[] = {{"join", join}, {"leave", leave}, {"list", list}};
	struct peer peer = {0};
	struct error error = {0};

	if (argc < 2 || !strcmp(argv[1], "--help") ||
		(argc > 2 && !strcmp(argv[2], "--help"))) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].name, argv[1]))
			continue;
		if (!parse(&peer, argc - 1, argv + 1, &error))
			return command_complain(&error, 2);
		if (!peer.folder[0] && peer_folder(peer.folder, &error))
			return command_complain(&error, 1);
		return verbs[i].run(&peer, &error) ? command_complain(&error, 1) : 0;
	}
	error_set(&error, 0, "peer: '%.60s' is not join, leave or list", argv[1]);
	return command_complain(&error, 2);
}
