/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of agent-store.  Its two peers are the supervisor, which keeps table and descriptors
 * for the store after this one, and the front, which asks for its sessions.
 */
#include "gpu-agent/store/index.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/control.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/store/replicas.h"

#define MESSAGES_A_TURN 64
/* The front reads all the time; one that does not for so long is as good as dead. */
#define FRONT_READS_MS 2000
#define SUPERVISOR_READS_MS 5000
#define BEGIN_MS 10000

/* ---- the supervisor ---- */

static bool tell_supervisor(struct store *s, uint32_t what, const uint8_t name[16], int fd)
{
	struct control c = {.what = what};
	struct pollfd p = {.fd = s->supervisor.fd, .events = POLLOUT};
	uint64_t end = wait_now() + SUPERVISOR_READS_MS * 1000000ull;
	int ret;

	memcpy(c.text, name, 16);
	while ((ret = descriptors_send(p.fd, &c, sizeof(c), &fd, fd >= 0, MSG_DONTWAIT)) &&
		wait_now() < end) {
		if (ret == -EAGAIN)
			poll(&p, 1, SUPERVISOR_READS_MS);
		else if (ret == -ENOBUFS || ret == -ENOMEM)
			usleep(1000); /* the kernel's, for a moment */
		else
			break;
	}
	if (ret && ret != -EPIPE && ret != -ECONNRESET)
		log_warn("supervisor.slow", "what=%u text=\"%s\"", what, strerror(-ret));
	return !ret;
}

bool store_keep(struct store *s, const uint8_t name[16], int fd)
{
	return tell_supervisor(s, CONTROL_KEEP, name, fd);
}

void store_let_go(struct store *s, const uint8_t name[16])
{
	/* The next store finds out what is nobody's; else the memory would stay for ever. */
	s->done |= !tell_supervisor(s, CONTROL_DROP, name, -1);
}

static int map_table(struct store *s, int fd)
{
	struct tensor_table *table =
		mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (table == MAP_FAILED)
		return -errno;
	s->table = table;
	s->table_fd = fd;
	return 0;
}

/* A table that the store before left; takes FD. */
static void take_table(struct store *s, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (s->table || size != (off_t)sizeof(struct tensor_table) || map_table(s, fd)) {
		close(fd);
	} else if (s->table->magic != TENSOR_TABLE_MAGIC) {
		log_warn("store.table", "text=\"another release's: its tensors are lost\"");
		munmap(s->table, sizeof(*s->table));
		s->table = NULL;
		close(fd);
	}
}

static int make_table(struct store *s)
{
	struct timespec now;
	int fd = memfd_create("vcuda-tensors", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct tensor_table)) || map_table(s, fd)) {
		close(fd);
		return -ENOMEM;
	}
	s->table->magic = TENSOR_TABLE_MAGIC;
	clock_gettime(CLOCK_REALTIME, &now);
	s->table->epoch = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return store_keep(s, TENSOR_TABLE_NAME, fd) ? 0 : -EPIPE;
}

/* A tensor's memory; the table comes before. Takes FD. */
static void take_memory(struct store *s, const uint8_t name[16], int fd)
{
	for (uint32_t i = 0; s->table && i < TENSORS_MAX; i++)
		if (!memcmp(s->table->records[i].id, name, 16) && s->fds[i] < 0) {
			s->fds[i] = fd;
			return;
		}
	/* Nobody knows it any more. */
	close(fd);
	store_let_go(s, name);
}

static void begin(struct store *s)
{
	struct error error = {0};

	if (!s->table && make_table(s)) {
		log_error("store.table", "text=\"no memory for the table of tensors\"");
		s->done = true;
		return;
	}
	s->table->restarts++;
	s->table->sandbox = s->sandbox;
	store_table_check(s);
	if (index_open(s, &error)) {
		log_error("store.registry", "text=\"%s\"", error.text);
		s->done = true;
		return;
	}
	s->begun = true;
	log_info("store.ready", "tensors=%u bytes=%llu restarts=%u", s->table->count,
		(unsigned long long)store_table_bytes(s, NULL, NULL), s->table->restarts - 1);
}

/* ---- the front ---- */

static void lose_front(struct store *s)
{
	int fd = events_forget(&s->events, &s->front);

	if (fd >= 0)
		close(fd);
	replicas_front_gone(s);
}

/* It may live, and not know that it lost this one: the supervisor joins the two again. */
static void break_with_front(struct store *s)
{
	static const uint8_t none[16];

	lose_front(s);
	tell_supervisor(s, CONTROL_STORE, none, -1);
}

void store_say(struct store *s, const struct tensor_message *message, int fd)
{
	struct pollfd p = {.fd = s->front.fd, .events = POLLOUT};
	int ret;

	if (p.fd < 0)
		return;
	ret = descriptors_send(p.fd, message, sizeof(*message), &fd, fd >= 0, MSG_DONTWAIT);
	if (ret == -EAGAIN && poll(&p, 1, FRONT_READS_MS) == 1)
		ret = descriptors_send(
			p.fd, message, sizeof(*message), &fd, fd >= 0, MSG_DONTWAIT);
	/* The next one asks anew. */
	if (ret)
		break_with_front(s);
}

static void note_running(struct store *s, uint64_t session)
{
	if (s->running_count == s->running_room) {
		uint32_t room = s->running_room ? 2 * s->running_room : 64;
		uint64_t *list = realloc(s->running, room * sizeof(*list));

		if (!list)
			return;
		s->running = list;
		s->running_room = room;
	}
	s->running[s->running_count++] = session;
}

static bool runs(const struct store *s, uint64_t session)
{
	for (uint32_t i = 0; i < s->running_count; i++)
		if (s->running[i] == session)
			return true;
	return false;
}

/* Sessions that ended while there was no front, or no store. */
static void drop_others(struct store *s)
{
	for (uint32_t i = 0; i < s->table->hold_count;) {
		uint64_t session = s->table->holds[i].session;

		if (index_made_holder(session) || runs(s, session)) {
			i++;
			continue;
		}
		store_table_session_over(s, session);
		i = 0;
	}
	s->running_count = 0;
}

/* It may be killed in any of these, and the front says it again. */
void store_hear(struct store *s, const struct tensor_message *message)
{
	struct tensor_message asked = *message, *m = &asked;
	uint32_t holds = s->table->hold_count;
	int fd = -1;

	switch (m->what) {
	case TENSOR_SESSIONS: s->running_count = 0; return;
	case TENSOR_SESSION: note_running(s, m->session); return;
	case TENSOR_END:
		drop_others(s);
		store_table_tell_sealed(s, UINT32_MAX);
		return;
	case TENSOR_OVER:
		replicas_session_over(s, m->session);
		store_table_session_over(s, m->session);
		return;
	case TENSOR_FOLLOWED: store_table_followed(s, m->id, m->session); return;
	case TENSOR_COPIED: replicas_copied(s, m); return;
	case TENSOR_REDEEM: replicas_redeem(s, m); return;
	case TENSOR_FELL: replicas_fell(s, m); return;
	default: break;
	}
	if (index_allows(s, m))
		fd = store_ask(s, m);
	if (m->status == STATUS_INVALID_DEVICE && replicas_local(s, message))
		return;
	index_say(s, message, m, fd, holds);
}

static void front_ready(struct watch *watch, uint32_t mask)
{
	struct store *s = watch->owner;

	(void)mask;
	for (int i = 0; i < MESSAGES_A_TURN && watch->fd >= 0; i++) {
		struct tensor_message m;
		int none;
		ssize_t n =
			descriptors_receive(watch->fd, &m, sizeof(m), &none, 0, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n != (ssize_t)sizeof(m) || m.version != TENSOR_VERSION) {
			break_with_front(s);
			return;
		}
		m.space[sizeof(m.space) - 1] = 0;
		m.name[sizeof(m.name) - 1] = 0;
		m.text[sizeof(m.text) - 1] = 0;
		store_hear(s, &m);
	}
}

/* Takes FD. */
static bool first_of_gpu(const struct tensor_table *table, uint32_t index)
{
	const uint8_t *gpu = table->records[index].gpu;

	for (uint32_t i = 0; i < index; i++)
		if (!memcmp(table->records[i].gpu, gpu, sizeof(table->records[i].gpu)))
			return false;
	return true;
}

static void take_front(struct store *s, int fd)
{
	struct tensor_message ready = {.version = TENSOR_VERSION, .what = TENSOR_READY};

	lose_front(s);
	if (fd < 0)
		return;
	if (events_watch(&s->events, &s->front, fd, EPOLLIN, front_ready)) {
		close(fd);
		return;
	}
	store_say(s, &ready, s->table_fd);
	/* Of GPUs that have no tensor any more, too: the word of that may be what was lost. */
	for (uint32_t i = 0; i < s->table->count; i++)
		if (first_of_gpu(s->table, i))
			store_table_tell(s, s->table->records[i].gpu);
}

/* ---- the loop ---- */

static void supervisor_ready(struct watch *watch, uint32_t mask)
{
	struct store *s = watch->owner;
	struct control c;
	int fd, ret;

	(void)mask;
	while ((ret = control_hear(watch->fd, &c, &fd)) > 0) {
		if (c.what == CONTROL_BEGIN && !s->begun)
			begin(s);
		else if (c.what == CONTROL_STORE && s->begun && fd >= 0) {
			take_front(s, fd);
			continue;
		} else if (c.what == CONTROL_KEPT && !s->begun && fd >= 0) {
			if (!memcmp(c.text, TENSOR_TABLE_NAME, 16))
				take_table(s, fd);
			else
				take_memory(s, (const uint8_t *)c.text, fd);
			continue;
		}
		if (fd >= 0)
			close(fd);
	}
	s->done |= ret < 0;
}

/* Tensors' memory; without the sandbox that is required there is none, and who asks is told. */
static void open_memory(struct store *s)
{
	struct error error = {0};
	char text[SANDBOX_TEXT];

	s->memory = store_memory_open(s->config, &error);
	s->sandbox = sandbox_seal();
	sandbox_text(text, s->sandbox);
	if (sandbox_whole(s->sandbox) || s->config->sandbox_off)
		log_info("store.sandbox", "text=\"%s\"", text);
	else
		log_warn("store.sandbox", "text=\"%s\"", text);
	if (s->memory && s->config->sandbox_required && !sandbox_whole(s->sandbox)) {
		s->memory = NULL;
		error_set(&error, 0, "sandbox: required, and the store has only: %s", text);
	}
	if (!s->memory) {
		log_error("store.memory", "text=\"%s\"", error.text);
		snprintf(s->memory_text, sizeof(s->memory_text), "%.190s", error.text);
	}
}

int store_main(const struct agent_config *config)
{
	static struct store store;
	struct store *s = &store;
	struct error error = {0};

	s->config = config;
	s->front.fd = s->supervisor.fd = s->index.fd = -1;
	for (uint32_t i = 0; i < TENSORS_MAX; i++)
		s->fds[i] = -1;
	open_memory(s);
	if (events_open(&s->events, s, &error) ||
		events_watch(&s->events, &s->supervisor, AGENT_FD_SOCKET, EPOLLIN,
			supervisor_ready)) {
		fprintf(stderr, "gpu-agent: store: no loop: %s\n", error.text);
		return 1;
	}
	while (!s->done)
		events_turn(&s->events, UINT64_MAX);
	return 0;
}
