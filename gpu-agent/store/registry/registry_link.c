/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to Redis, see registry_link.h.
 */
#include "gpu-agent/store/registry/registry_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/cleanup.h"
#include "common/wait.h"

#define LOGIN_MS 2000u
#define PORT_MAX 65535

void link_argument_bytes(struct link_arguments *arguments, const void *bytes, size_t n)
{
	if (arguments->count >= LINK_ARGUMENTS)
		abort(); /* ours alone make them */
	arguments->at[arguments->count] = bytes;
	arguments->length[arguments->count++] = n;
}

void link_argument_text(struct link_arguments *arguments, const char *text)
{
	link_argument_bytes(arguments, text, strlen(text));
}

static void put_number(struct link_arguments *arguments, int n, const char *text)
{
	link_argument_bytes(arguments, text, (size_t)n);
	arguments->used += (size_t)n + 1;
}

void link_argument_number(struct link_arguments *arguments, int64_t number)
{
	char *at = arguments->numbers + arguments->used;

	if (arguments->used + 24 > sizeof(arguments->numbers))
		abort();
	put_number(arguments, snprintf(at, 24, "%" PRId64, number), at);
}

void link_argument_unsigned(struct link_arguments *arguments, uint64_t number)
{
	char *at = arguments->numbers + arguments->used;

	if (arguments->used + 24 > sizeof(arguments->numbers))
		abort();
	put_number(arguments, snprintf(at, 24, "%" PRIu64, number), at);
}

/* Replies. As libhiredis makes them, with bounds. */

static redisReply *attach(const redisReadTask *task, redisReply *reply)
{
	redisReply *parent = task->parent ? task->parent->obj : NULL;

	if (reply && parent)
		parent->element[task->idx] = reply;
	return reply;
}

/* A whole answer that no command of ours waits for is none. */
static redisReply *make(const redisReadTask *task)
{
	const struct registry_link *link = task->privdata;
	redisReply *reply;

	if (!task->parent && link && link->redis && !link->redis->replies.head)
		return NULL;
	reply = calloc(1, sizeof(*reply));
	if (reply)
		reply->type = task->type;
	return reply;
}

static void reply_free(void *object)
{
	redisReply *reply = object;

	if (!reply)
		return;
	for (size_t i = 0; i < reply->elements; i++)
		reply_free(reply->element[i]);
	free(reply->element);
	free(reply->str);
	free(reply);
}

static void *reply_string(const redisReadTask *task, char *text, size_t n)
{
	redisReply *reply = make(task);

	if (!reply)
		return NULL;
	reply->str = malloc(n + 1);
	if (!reply->str) {
		free(reply);
		return NULL;
	}
	memcpy(reply->str, text, n);
	reply->str[n] = 0;
	reply->len = n;
	return attach(task, reply);
}

static void *reply_array(const redisReadTask *task, int elements)
{
	redisReply *reply = elements >= 0 && elements <= LINK_ELEMENTS ? make(task) : NULL;

	if (!reply)
		return NULL;
	if (elements) {
		reply->element = calloc((size_t)elements, sizeof(redisReply *));
		if (!reply->element) {
			free(reply);
			return NULL;
		}
	}
	reply->elements = (size_t)elements;
	return attach(task, reply);
}

static void *reply_integer(const redisReadTask *task, long long number)
{
	redisReply *reply = make(task);

	if (reply)
		reply->integer = number;
	return attach(task, reply);
}

static void *reply_nil(const redisReadTask *task)
{
	redisReply *reply = make(task);

	/* The task's type is that of what is missing: a text, or an array. */
	if (reply)
		reply->type = REDIS_REPLY_NIL;
	return attach(task, reply);
}

redisReplyObjectFunctions registry_link_functions = {
	reply_string, reply_array, reply_integer, reply_nil, reply_free};

/* The epoll set. */

static void want(struct registry_link *link, uint32_t mask)
{
	struct epoll_event event = {.events = mask, .data.ptr = &link->watch};

	if (link->mask == mask || link->fd < 0)
		return;
	link->mask = mask;
	epoll_ctl(link->epoll, EPOLL_CTL_MOD, link->fd, &event);
}

static void add_read(void *link)
{
	want(link, ((struct registry_link *)link)->mask | EPOLLIN);
}

static void del_read(void *link)
{
	want(link, ((struct registry_link *)link)->mask & ~(uint32_t)EPOLLIN);
}

static void add_write(void *link)
{
	want(link, ((struct registry_link *)link)->mask | EPOLLOUT);
}

static void del_write(void *link)
{
	want(link, ((struct registry_link *)link)->mask & ~(uint32_t)EPOLLOUT);
}

/* Before the descriptor is closed. */
static void forget(void *argument)
{
	struct registry_link *link = argument;

	if (link->fd >= 0)
		epoll_ctl(link->epoll, EPOLL_CTL_DEL, link->fd, NULL);
	link->fd = -1;
	link->mask = 0;
}

/* libhiredis has freed it, or is about to: all callbacks were called. */
static void over(struct registry_link *link)
{
	link->redis = NULL;
	link->ready = false;
	link->ending = false;
	link->closed(link, link->why.text);
}

static void is_gone(const redisAsyncContext *redis)
{
	struct registry_link *link = redis->data;

	if (!link->why.text[0])
		error_set(&link->why, 0, "%s",
			redis->errstr && redis->errstr[0] ? redis->errstr : "it hung up");
	forget(link);
	link->ending = true; /* ready_again says so when libhiredis is left */
	link->redis = NULL;
}

static void on_connect(const redisAsyncContext *redis, int status)
{
	if (status != REDIS_OK)
		is_gone(redis);
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
	(void)status;
	is_gone(redis);
}

static void ready_again(struct registry_watch *watch, uint32_t mask)
{
	struct registry_link *link = (struct registry_link *)(void *)watch;

	link->turning = true;
	if (link->redis && mask & (EPOLLIN | EPOLLHUP | EPOLLERR))
		redisAsyncHandleRead(link->redis);
	if (link->redis && !link->ending && mask & EPOLLOUT)
		redisAsyncHandleWrite(link->redis);
	link->turning = false;
	if (link->redis && !link->ending &&
		link->redis->c.reader->len - link->redis->c.reader->pos > LINK_ANSWER_BYTES) {
		error_set(&link->why, 0, "an answer of more than %u MiB",
			LINK_ANSWER_BYTES >> 20);
		link->ending = true;
	}
	if (!link->ending)
		return;
	if (link->redis) {
		link->redis->data = link;
		redisAsyncSetDisconnectCallback(link->redis, NULL);
		redisAsyncFree(link->redis);
	}
	over(link);
}

void registry_link_init(struct registry_link *link, int epoll,
	const struct registry_config *config, void *owner,
	void (*opened)(struct registry_link *link),
	void (*closed)(struct registry_link *link, const char *why))
{
	memset(link, 0, sizeof(*link));
	link->watch.ready = ready_again;
	link->epoll = epoll;
	link->config = config;
	link->fd = -1;
	link->owner = owner;
	link->opened = opened;
	link->closed = closed;
}

int registry_link_address(const char *address, char host[256], int *port, struct error *error)
{
	const char *colon;
	char *end;
	size_t n;
	long number;

	*port = 0;
	if (!strncmp(address, "unix://", 7)) {
		if (address[7] != '/' || strlen(address + 7) > 107)
			return error_set(error, 0,
				"%s: unix:// wants an absolute path of up to 107 bytes",
				address);
		strcpy(host, address + 7);
		return 0;
	}
	if (strncmp(address, "tcp://", 6))
		return error_set(error, 0, "%s: unix:///PATH or tcp://HOST:PORT", address);
	address += 6;
	colon = strrchr(address, ':');
	number = colon ? strtol(colon + 1, &end, 10) : 0;
	n = colon ? (size_t)(colon - address) : 0;
	if (n > 2 && address[0] == '[' && address[n - 1] == ']') {
		address++;
		n -= 2;
	}
	if (!n || n > 255 || number < 1 || number > PORT_MAX || *end)
		return error_set(error, 0, "tcp://%s: a host and a port are wanted", address);
	memcpy(host, address, n);
	host[n] = 0;
	*port = (int)number;
	return 0;
}

/* The password file's first line; "" without one. */
static int password(
	const struct registry_config *config, char *out, size_t n, struct error *error)
{
	cleanup_stream FILE *file = NULL;

	out[0] = 0;
	if (!config->password_file[0])
		return 0;
	file = fopen(config->password_file, "re");
	if (!file)
		return error_set(error, errno, "%s", config->password_file);
	if (!fgets(out, (int)n, file))
		return error_set(error, 0, "%s is empty", config->password_file);
	out[strcspn(out, "\r\n")] = 0;
	return 0;
}

static void said_ping(void *argument, const redisReply *reply)
{
	struct registry_link *link = argument;

	if (!reply || link->ending)
		return;
	if (reply->type == REDIS_REPLY_ERROR) {
		error_set(&link->why, 0, "Redis says: %.180s", reply->str);
		registry_link_close(link, NULL);
		return;
	}
	link->ready = true;
	link->opened(link);
}

static void said_auth(void *argument, const redisReply *reply)
{
	struct registry_link *link = argument;

	if (!reply || reply->type != REDIS_REPLY_ERROR)
		return;
	error_set(&link->why, 0, "Redis does not let %s in: %.160s",
		link->config->user[0] ? link->config->user : "the default user", reply->str);
	registry_link_close(link, NULL);
}

static int login(struct registry_link *link, struct error *error)
{
	struct link_arguments arguments = {0};
	char secret[512];
	int ret = password(link->config, secret, sizeof(secret), error);

	if (ret)
		return ret;
	if (secret[0]) {
		link_argument_text(&arguments, "AUTH");
		if (link->config->user[0])
			link_argument_text(&arguments, link->config->user);
		link_argument_text(&arguments, secret);
		ret = registry_link_send(link, &arguments, said_auth, link);
	}
	arguments = (struct link_arguments){0};
	link_argument_text(&arguments, "PING");
	if (!ret)
		ret = registry_link_send(link, &arguments, said_ping, link);
	explicit_bzero(secret, sizeof(secret));
	return ret ? error_set(error, -ret, "Redis") : 0;
}

static int attach_events(struct registry_link *link, struct error *error)
{
	redisAsyncContext *redis = link->redis;
	struct epoll_event event = {.events = 0, .data.ptr = &link->watch};

	link->fd = redis->c.fd;
	link->mask = 0;
	if (epoll_ctl(link->epoll, EPOLL_CTL_ADD, link->fd, &event))
		return error_set(error, errno, "epoll_ctl");
	redis->data = link;
	redis->c.reader->fn = &registry_link_functions;
	redis->c.reader->privdata = link;
	redis->ev.data = link;
	redis->ev.addRead = add_read;
	redis->ev.delRead = del_read;
	redis->ev.addWrite = add_write;
	redis->ev.delWrite = del_write;
	redis->ev.cleanup = forget;
	redisAsyncSetConnectCallback(redis, on_connect);
	redisAsyncSetDisconnectCallback(redis, on_disconnect);
	return 0;
}

int registry_link_open(struct registry_link *link, const char *numeric, struct error *error)
{
	char host[256];
	int port, ret = registry_link_address(link->config->address, host, &port, error);

	if (ret)
		return ret;
	link->why = (struct error){0};
	link->redis = port ? redisAsyncConnect(numeric ? numeric : host, port)
			   : redisAsyncConnectUnix(host);
	if (!link->redis)
		return error_set(error, ENOMEM, "Redis");
	if (link->redis->err)
		ret = error_set(error, 0, "Redis at %s: %s", link->config->address,
			link->redis->errstr);
	if (!ret)
		ret = attach_events(link, error);
	if (!ret)
		ret = login(link, error);
	if (ret) {
		redisAsyncSetDisconnectCallback(link->redis, NULL);
		redisAsyncFree(link->redis);
		link->redis = NULL;
		return ret;
	}
	link->deadline = wait_now() + LOGIN_MS * 1000000ull;
	return 0;
}

void registry_link_close(struct registry_link *link, const char *why)
{
	redisAsyncContext *redis = link->redis;

	if (why && !link->why.text[0])
		error_set(&link->why, 0, "%s", why);
	if (link->turning) {
		link->ending = true;
		return;
	}
	if (!redis)
		return;
	redisAsyncSetDisconnectCallback(redis, NULL);
	redisAsyncFree(redis);
	over(link);
}

struct sent {
	link_reply reply;
	void *argument;
};

static void answered(redisAsyncContext *redis, void *reply, void *argument)
{
	struct sent *sent = argument;

	(void)redis;
	sent->reply(sent->argument, reply);
	free(sent);
}

int registry_link_send(struct registry_link *link, const struct link_arguments *arguments,
	link_reply reply, void *argument)
{
	const char **at = (const char **)arguments->at;
	struct sent *sent;

	if (!link->redis || link->ending)
		return -ENOTCONN;
	sent = malloc(sizeof(*sent));
	if (!sent)
		return -ENOMEM;
	*sent = (struct sent){reply, argument};
	if (redisAsyncCommandArgv(link->redis, answered, sent, (int)arguments->count, at,
		    arguments->length) == REDIS_OK)
		return 0;
	free(sent);
	return -ENOTCONN;
}
