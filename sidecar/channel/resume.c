/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/resume.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"

#define MS 1000000ull
#define STACK (256u * 1024) /* a TLS handshake is made on it */
#define ATTEMPT_NS (3000 * MS)
#define PAUSE_LEAST_NS (50 * MS)
#define PAUSE_MOST_NS (1000 * MS)
/* An agent whose port is closed has no workers either; it is asked for so long, since there may
 * be somebody in between who says so. */
#define CLOSED_NS (2000 * MS)
#define CLOSED_SEVERAL_NS                                                                      \
	(250 * MS) /* of several agents: the program goes on with the others */
#define PART_NS (2000 * MS)
#define ASK_NS                                                                                 \
	(500 * MS) /* its program waits for that, and a black hole is to take 8 s at most */
#define ASKS 3

void resume_init(struct resume *resume, const char *address, const struct session_hello *hello,
	const struct session_welcome *welcome, bool several, int wake)
{
	*resume = (struct resume){
		.possible = welcome->features & SESSION_FEATURE_RESUME && welcome->granted_ms,
		.grace = welcome->granted_ms * MS,
		.hello = *hello,
		.wake = wake,
		.carry = -1,
		.closed_ns = several ? CLOSED_SEVERAL_NS : CLOSED_NS,
	};
	snprintf(resume->address, sizeof(resume->address), "%s", address);
	memcpy(resume->hello.session, welcome->session, sizeof(welcome->session));
	memcpy(resume->hello.secret, welcome->secret, sizeof(welcome->secret));
}

static bool has_secret(const struct session_welcome *welcome)
{
	static const uint8_t none[sizeof(welcome->secret)];

	return memcmp(welcome->secret, none, sizeof(none)) != 0;
}

/* The newest secret that came is the one that serves. */
static void take_secret(struct resume *resume, const struct session_welcome *welcome)
{
	if (has_secret(welcome))
		memcpy(resume->hello.secret, welcome->secret, sizeof(welcome->secret));
}

/* Not by the mapping: the program may have cut the file off, and this thread has no guard. */
static bool carry_put(const struct resume *resume, size_t at, const void *bytes, size_t n)
{
	off_t to = (off_t)(offsetof(struct channel_page, carry) + at);

	return pwrite(resume->carry, bytes, n, to) == (ssize_t)n;
}

/* Who dies behind this has left the secret that it may have shown; before it, the one that
 * serves still. */
static void carry_secret(struct resume *resume, const uint8_t secret[16])
{
	uint32_t next = resume->serves + 1;
	size_t at = offsetof(struct channel_carry, secrets) + 16 * (next & 1);

	if (carry_put(resume, at, secret, 16) &&
		carry_put(resume, offsetof(struct channel_carry, serves), &next, sizeof(next)))
		resume->serves = next;
}

static void heard_secret(void *argument, const struct session_welcome *welcome)
{
	struct resume *resume = argument;

	if (resume->carry >= 0 && has_secret(welcome))
		carry_secret(resume, welcome->secret);
}

void resume_carry(struct resume *resume, struct channel_page *page, int fd)
{
	struct channel_carry *carry = &page->carry;

	carry->uid = resume->hello.uid;
	carry->features = resume->hello.features;
	memcpy(carry->session, resume->hello.session, sizeof(carry->session));
	snprintf(carry->address, sizeof(carry->address), "%s", resume->address);
	memcpy(carry->secrets[0], resume->hello.secret, sizeof(carry->secrets[0]));
	carry->grace_ms = (uint32_t)(resume->grace / MS);
	resume->carry = fd;
}

void resume_carried(struct resume *resume, const struct channel_carry *carry, int fd)
{
	resume->serves = atomic_load(&carry->serves);
	resume->carry = fd;
}

static void pause_for(struct resume *resume, uint64_t ns)
{
	uint64_t until = wait_now() + ns, now;

	while (!atomic_load(&resume->stop) && (now = wait_now()) < until)
		wait_sleep(&resume->stop, 0, until - now);
}

/* Once. True: there is no use in more. */
static bool attempt(struct resume *resume, uint64_t until, uint64_t *closed_since)
{
	uint64_t now = wait_now();
	uint64_t deadline = now + ATTEMPT_NS < until ? now + ATTEMPT_NS : until;
	int ret = transport_dial(resume->address, &resume->hello, &resume->welcome, deadline,
		&resume->link, &resume->error);
	bool refused = ret == -ECONNREFUSED && resume->welcome.status;

	take_secret(resume, &resume->welcome);
	if (!ret || (refused && resume->welcome.status == STATUS_NOT_PERMITTED))
		return true;
	if (ret != -ECONNREFUSED || refused)
		*closed_since = 0;
	else if (!*closed_since)
		*closed_since = now;
	else if (now - *closed_since >= resume->closed_ns)
		return true;
	return wait_now() >= until;
}

/* A session without a grace is not resumed, but the agent may know why it is over: as soon as
 * it has seen its worker's end, which may be after we have. */
static void ask_why(struct resume *resume)
{
	uint64_t until = wait_now() + ASK_NS;

	for (int i = 0; i < ASKS && !atomic_load(&resume->stop); i++) {
		if (i)
			pause_for(resume, PAUSE_LEAST_NS);
		if (transport_dial(resume->address, &resume->hello, &resume->welcome, until,
			    &resume->link, &resume->error))
			break;
		link_close(resume->link);
		resume->link = NULL;
	}
}

static void dial_until_taken(struct resume *resume)
{
	uint64_t until = resume->cut_at + resume->grace, closed_since = 0;
	uint64_t pause = PAUSE_LEAST_NS;

	while (!attempt(resume, until, &closed_since) && !atomic_load(&resume->stop)) {
		log_debug("resume.again", "text=\"%s\"", resume->error.text);
		pause_for(resume, pause);
		pause = 2 * pause < PAUSE_MOST_NS ? 2 * pause : PAUSE_MOST_NS;
	}
}

static void *resume_main(void *argument)
{
	struct resume *resume = argument;
	uint64_t one = 1;

	transport_when_told(heard_secret, resume);
	if (resume->possible)
		dial_until_taken(resume);
	else
		ask_why(resume);
	atomic_store(&resume->state, resume->link ? RESUME_DONE : RESUME_FAILED);
	(void)!write(resume->wake, &one, sizeof(one));
	return NULL;
}

bool resume_start(struct resume *resume, uint64_t received, uint64_t now, const char *text)
{
	pthread_attr_t attributes;

	resume->hello.role = resume->possible ? SESSION_RESUME : SESSION_END;
	resume->hello.counted = received;
	memset(&resume->welcome, 0, sizeof(resume->welcome));
	error_set(&resume->cut, 0, "%s", text);
	resume->cut_at = now;
	resume->link = NULL;
	atomic_store(&resume->stop, 0);
	atomic_store(&resume->state, RESUME_DIALING);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	resume->started = !pthread_create(&resume->thread, &attributes, resume_main, resume);
	pthread_attr_destroy(&attributes);
	if (!resume->started)
		atomic_store(&resume->state, RESUME_IDLE);
	return resume->started;
}

struct link *resume_finish(struct resume *resume)
{
	struct link *link;

	/* Until then it may still make one. */
	pthread_join(resume->thread, NULL);
	link = resume->link;
	resume->started = false;
	resume->link = NULL;
	atomic_store(&resume->state, RESUME_IDLE);
	return link;
}

void resume_stop(struct resume *resume)
{
	if (!resume->started)
		return;
	atomic_store(&resume->stop, 1);
	wait_wake(&resume->stop);
	link_close(resume_finish(resume));
}

void resume_part(struct resume *resume, bool tell)
{
	struct session_welcome welcome;
	struct link *link = NULL;
	struct error error;

	resume_stop(resume);
	if (resume->possible && tell) {
		resume->hello.role = SESSION_END;
		if (transport_dial(resume->address, &resume->hello, &welcome,
			    wait_now() + PART_NS, &link, &error))
			log_debug("resume.part", "text=\"%s\"", error.text);
	}
	explicit_bzero(&resume->hello, sizeof(resume->hello));
}
