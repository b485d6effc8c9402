/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/renew.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"

#define STACK (256u * 1024) /* a TLS handshake is made on it */
#define LOOK_MS 2000	    /* longer than the transport goes on with what it read before */
#define ASK_NS 5000000000ull
#define FILES 2

struct seen {
	ino_t inode;
	off_t size;
	struct timespec modified;
};

static void look(const struct options *options, struct seen seen[FILES])
{
	const char *const paths[FILES] = {options->credential, options->tls.cert};
	struct stat st;

	memset(seen, 0, FILES * sizeof(*seen));
	for (int i = 0; i < FILES; i++)
		if (paths[i][0] && !stat(paths[i], &st))
			seen[i] = (struct seen){st.st_ino, st.st_size, st.st_mtim};
}

/* The next session that was not told in this ROUND. */
static bool next(struct server *server, uint32_t round, struct renewal *renewal)
{
	bool found = false;

	pthread_mutex_lock(&server->lock);
	for (struct channel *c = server->channels; c && !found; c = c->next) {
		if (atomic_load(&c->state) != CHANNEL_OPEN || c->renewal.round == round ||
			!c->renewal.place.transport)
			continue;
		c->renewal.round = round;
		*renewal = c->renewal;
		found = true;
	}
	pthread_mutex_unlock(&server->lock);
	return found;
}

static bool tell(const struct options *options, const struct renewal *renewal)
{
	struct session_hello hello = {.role = SESSION_RENEW};
	struct link *none = NULL;
	struct log_subject subject = {0};
	struct error error;
	unsigned number;
	int ret;

	memcpy(hello.session, renewal->session, sizeof(hello.session));
	memcpy(hello.secret, renewal->secret, sizeof(hello.secret));
	memcpy(hello.pod, options->pod, sizeof(hello.pod));
	memcpy(hello.pod_uid, options->pod_uid, sizeof(hello.pod_uid));
	memcpy(hello.token, options->token, sizeof(hello.token));
	ret = renewal->place.transport->open_stripe(
		&renewal->place, &hello, wait_now() + ASK_NS, &number, &none, &error);
	explicit_bzero(&hello, sizeof(hello));
	if (ret < 0) {
		log_session(&subject, renewal->session);
		log_of(&subject, LOG_WARN, "session.renew", "text=\"%s\"", error.text);
	}
	return ret == 0;
}

static bool tell_all(struct server *server, uint32_t round)
{
	struct renewal renewal;
	bool all = true;

	while (next(server, round, &renewal))
		all &= tell(&server->options, &renewal);
	explicit_bzero(&renewal, sizeof(renewal));
	return all;
}

static void *renew_main(void *argument)
{
	struct server *server = argument;
	struct pollfd stop = {.fd = server->stop_fd, .events = POLLIN};
	struct seen before[FILES], now[FILES];
	uint32_t round = 1;
	bool due = false, changed;

	look(&server->options, before);
	while (poll(&stop, 1, LOOK_MS) <= 0) {
		look(&server->options, now);
		changed = memcmp(before, now, sizeof(now)) != 0;
		memcpy(before, now, sizeof(now));
		/* A look later: by then the transport has read the new ones. */
		if (due && !changed) {
			due = !tell_all(server, ++round);
			log_info("identity.renewed", "round=%u text=\"%s\"", round,
				due ? "not everywhere; again" : "the agents were told");
		}
		due |= changed;
	}
	return NULL;
}

void renew_start(struct server *server)
{
	const struct options *options = &server->options;
	pthread_attr_t attributes;
	pthread_t thread;

	if (!options->credential[0] && !options->tls.cert[0])
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, renew_main, server))
		log_warn("identity.renew", "text=\"no thread to look at the files\"");
	pthread_attr_destroy(&attributes);
}
