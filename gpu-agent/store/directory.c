/* SPDX-License-Identifier: Apache-2.0
 *
 * agent-directory: keeps an agent's entry in the directory of one network (docs/PEERS.md), by
 * the registry's connection and scripts, with no tensors.  What it says comes from the front by
 * the supervisor; it knows no token of the network and no other network.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/control.h"
#include "gpu-agent/network.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/store/registry/registry.h"

/* For the directory's answer to a leave: with no answer the entry lapses. */
#define LEAVE_NS (1000 * 1000000ull)
#define TURN_MS 60000 /* nothing hangs on it: the registry wakes its descriptor */
#define UUID_TEXT 41
#define ADDRESS ((int)sizeof(((struct registry_config *)0)->at))

struct directory {
	const struct agent_config *config;
	const struct network *network;
	struct registry *registry;		 /* NULL: there is to be no entry */
	char gpus[NETWORK_GPUS * UUID_TEXT + 1]; /* of the entry that is there */
	uint32_t devices;
	char why[160];	    /* there is none though there should be */
	char reported[160]; /* to the supervisor; "": the entry is there */
	bool reported_once, done;
};

/* --- who this is -------------------------------------------------------------------------- */

static bool is_id(const char *text)
{
	size_t n = strlen(text);

	return n && n <= REGISTRY_NODE &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789.-_") == n;
}

/* HOST:PORT by which others reach the agent, and its ID. ID has REGISTRY_NODE + 1 bytes,
 * AT ADDRESS. 0, or -errno with *error. */
static int names_of(const struct agent_config *config, const struct network *network, char *id,
	char *at, struct error *error)
{
	unsigned port = config->bound[LISTEN_RECV];
	const char *bracket = strrchr(network->address, ']');
	const char *colon = strrchr(bracket ? bracket : network->address, ':');
	int n = colon ? (int)(colon - network->address) : (int)strlen(network->address);
	char host[64] = "", base[96];

	if (gethostname(host, sizeof(host) - 1))
		return error_set(error, errno, "the host's name");
	if (config->store.node[0])
		snprintf(base, sizeof(base), "%s", config->store.node);
	else
		snprintf(base, sizeof(base), "%.*s", n, network->address);
	if (!is_id(base))
		snprintf(base, sizeof(base), "%s", host);
	if (!is_id(base))
		return error_set(
			error, 0, "the host's name '%s' is no ID; set store.node", host);
	if (port == SESSION_PORT_RECV)
		snprintf(id, REGISTRY_NODE + 1, "%.63s", base);
	else /* two agents of one machine */
		snprintf(id, REGISTRY_NODE + 1, "%.57s-%u", base, port);
	if (colon)
		n = snprintf(at, ADDRESS, "%s", network->address);
	else
		n = snprintf(at, ADDRESS, "%s:%u", n ? network->address : base, port);
	return n < ADDRESS ? 0 : error_set(error, 0, "the address is too long");
}

/* --- what the registry asks of a store: here it has no tensors ------------------------------
 */

static bool no_tensor(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
	const char *const **holders, size_t *count)
{
	(void)owner, (void)cursor, (void)tensor, (void)holders, (void)count;
	return false;
}

static void no_command(void *owner, const struct registry_command *command)
{
	(void)owner, (void)command;
}

static void no_holder(void *owner, const char *holder)
{
	(void)owner, (void)holder;
}

static void no_name(void *owner, const char *name, const char *node)
{
	(void)owner, (void)name, (void)node;
}

static void no_replica(void *owner, const char *name, bool heir)
{
	(void)owner, (void)name, (void)heir;
}

static void no_loss(void *owner, uint32_t count)
{
	(void)owner;
	(void)count;
}

static uint32_t devices(void *owner)
{
	return ((struct directory *)owner)->devices;
}

/* --- the entry ---------------------------------------------------------------------------- */

static void add_uuid(char *out, size_t n, const uint8_t uuid[16])
{
	size_t at = strlen(out);

	at += (size_t)snprintf(out + at, n - at, "%sGPU-", at ? " " : "");
	for (int i = 0; i < 16; i++)
		at += (size_t)snprintf(out + at, n - at, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void describe(const struct network_report *report, struct registry_about *about)
{
	memset(about, 0, sizeof(*about)); /* it is compared as bytes */
	snprintf(about->network, sizeof(about->network), "%s", report->name);
	snprintf(about->driver, sizeof(about->driver), "%s", report->driver);
	snprintf(about->version, sizeof(about->version), "%s", AGENT_VERSION);
	for (uint32_t i = 0; i < report->gpu_count; i++) {
		size_t at = strlen(about->free_bytes);

		snprintf(about->free_bytes + at, sizeof(about->free_bytes) - at, "%s%" PRIu64,
			i ? " " : "", report->gpus[i].free);
	}
}

static void enter(struct directory *d, const struct network_report *report)
{
	static const struct registry_store calls = {
		no_tensor, no_command, no_holder, no_name, no_replica, no_loss, devices};
	struct registry_config config = {0};
	struct error error;
	struct timespec now;
	int ret = names_of(d->config, d->network, config.node, config.at, &error);

	snprintf(config.address, sizeof(config.address), "%s", d->network->directory);
	snprintf(config.user, sizeof(config.user), "%s", d->network->user);
	snprintf(config.password_file, sizeof(config.password_file), "%s",
		d->network->password_file);
	snprintf(config.gpus, sizeof(config.gpus), "%s", d->gpus);
	for (uint32_t i = 0; i < report->gpu_count; i++)
		config.memory += report->gpus[i].total;
	/* A later process of this agent takes its entry over. */
	clock_gettime(CLOCK_REALTIME, &now);
	config.epoch = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	describe(report, &config.about);
	if (!ret)
		ret = registry_open(&d->registry, &config, &calls, d, &error);
	if (ret)
		snprintf(d->why, sizeof(d->why), "%.150s", error.text);
}

static void leave(struct directory *d)
{
	uint64_t until = wait_now() + LEAVE_NS;

	d->why[0] = 0;
	if (!d->registry)
		return;
	registry_leave(d->registry);
	for (uint64_t now = wait_now(); !registry_left(d->registry) && now < until;
		now = wait_now()) {
		struct pollfd p = {.fd = registry_fd(d->registry), .events = POLLIN};

		poll(&p, 1, (int)((until - now) / 1000000) + 1);
		registry_turn(d->registry);
	}
	registry_close(d->registry);
	d->registry = NULL;
}

static void take_report(struct directory *d, const struct network_report *report)
{
	char gpus[sizeof(d->gpus)] = "";
	struct registry_about about;

	for (uint32_t i = 0; i < report->gpu_count; i++)
		add_uuid(gpus, sizeof(gpus), report->gpus[i].uuid);
	if (report->state != NETWORK_OPEN || strcmp(gpus, d->gpus))
		leave(d);
	if (report->state != NETWORK_OPEN)
		return;
	strcpy(d->gpus, gpus);
	d->devices = report->gpu_count;
	describe(report, &about);
	if (d->registry)
		registry_say_about(d->registry, &about);
	else
		enter(d, report);
}

/* --- the supervisor ------------------------------------------------------------------------
 */

/* When that changes. */
static void tell(struct directory *d)
{
	struct control c = {.what = CONTROL_DIRECTORY, .status = 1};
	const char *why = d->registry ? registry_why(d->registry) : d->why;

	snprintf(c.text, sizeof(c.text), "%.150s", why);
	c.status = !d->registry || *why;
	if (d->reported_once && !strcmp(c.text, d->reported))
		return;
	if (descriptors_send(AGENT_FD_SOCKET, &c, sizeof(c), NULL, 0, MSG_DONTWAIT))
		return; /* the next turn says it */
	d->reported_once = true;
	snprintf(d->reported, sizeof(d->reported), "%.159s", c.text);
}

static void hear(struct directory *d)
{
	static struct network_report report;
	struct control c;
	ssize_t n;
	int fd;

	while ((n = descriptors_receive(AGENT_FD_SOCKET, &c, sizeof(c), &fd, 1,
			MSG_DONTWAIT)) == (ssize_t)sizeof(c)) {
		if (c.what == CONTROL_NETWORK && network_report_read(fd, &report))
			take_report(d, &report);
		if (fd >= 0)
			close(fd);
	}
	d->done = n != -EAGAIN;
}

int directory_main(const struct agent_config *config)
{
	struct directory d = {.config = config, .network = &config->networks[0].is};
	char text[SANDBOX_TEXT];
	uint32_t parts = sandbox_seal();

	sandbox_text(text, parts);
	if (!sandbox_whole(parts) && !config->sandbox_off) {
		log_warn("directory.sandbox", "network=%s text=\"%s\"", d.network->name, text);
		if (config->sandbox_required)
			return 1;
	}
	while (!d.done) {
		struct pollfd p[2] = {{.fd = AGENT_FD_SOCKET, .events = POLLIN},
			{.fd = d.registry ? registry_fd(d.registry) : -1, .events = POLLIN}};

		if (poll(p, 2, TURN_MS) < 0 && errno != EINTR)
			return 1;
		if (d.registry && p[1].revents)
			registry_turn(d.registry);
		if (p[0].revents)
			hear(&d);
		tell(&d);
	}
	leave(&d);
	return 0;
}
