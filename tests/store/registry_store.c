/* SPDX-License-Identifier: Apache-2.0
 *
 * A store whose memory is malloc's, for tests of the registry: it does what Redis' commands and
 * the lines of its standard input say, and prints an answer for each line.
 *
 *     registry_store ADDRESS NODE EPOCH DEVICES [USER PASSWORD_FILE]
 *
 *     create NAME DTYPE 2,3 HOLDER    take NAME HOLDER    drop NAME HOLDER    seal NAME
 *     replica NAME TICKET SPACE    redeem TICKET    yield NAME WHY
 *     lose NAME WHY    delete NAME HOLDER    force NAME HOLDER (whoever holds it)    list
 *     => NUMBER STATUS [what is known of the tensor | why]
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/store/registry/registry.h"
#include "tests/die.h"

#define TENSORS 65536
#define LINE 1024

struct tensor {
	struct registry_tensor is;
	uint64_t number;
	void *memory;
	char **holders;
	size_t count;
};

static struct registry *registry;
static struct tensor *tensors[TENSORS]; /* by number, which rises; NULL: gone */
static uint64_t numbers;
static size_t bytes_held;
static uint32_t device_count;

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static struct tensor *find(const char *name)
{
	for (uint64_t i = 1; i <= numbers; i++) {
		if (tensors[i] && !strcmp(tensors[i]->is.name, name))
			return tensors[i];
	}
	return NULL;
}

static size_t held_by(const struct tensor *tensor, const char *holder)
{
	size_t i = 0;

	while (i < tensor->count && strcmp(tensor->holders[i], holder))
		i++;
	return i;
}

static void hold(struct tensor *tensor, const char *holder)
{
	if (!*holder || held_by(tensor, holder) < tensor->count)
		return;
	tensor->holders = realloc(tensor->holders, (tensor->count + 1) * sizeof(char *));
	tensor->holders[tensor->count++] = strdup(holder);
}

static bool drop(struct tensor *tensor, const char *holder)
{
	size_t i = held_by(tensor, holder);

	if (i == tensor->count)
		return false;
	free(tensor->holders[i]);
	tensor->holders[i] = tensor->holders[--tensor->count];
	return true;
}

static void forget(struct tensor *tensor)
{
	while (tensor->count)
		drop(tensor, tensor->holders[0]);
	bytes_held -= tensor->is.bytes;
	tensors[tensor->number] = NULL;
	free(tensor->holders);
	free(tensor->memory);
	free(tensor);
}

/* One request, of a line or of a command. */
struct ask {
	enum registry_op op;
	uint64_t ticket; /* 0: of a line, NUMBER */
	uint64_t number;
	struct tensor *made; /* of a create; its memory */
	char name[REGISTRY_NAME + 1], holder[REGISTRY_HOLDER + 1];
};

static struct ask *ask(enum registry_op op, uint64_t ticket, uint64_t number, const char *name,
	const char *holder)
{
	struct ask *a = calloc(1, sizeof(*a));

	a->op = op;
	a->ticket = ticket;
	a->number = number;
	snprintf(a->name, sizeof(a->name), "%s", name);
	snprintf(a->holder, sizeof(a->holder), "%s", holder);
	return a;
}

static void say(uint64_t number, const struct registry_result *result)
{
	static const char *const statuses[] = {
		"ok", "made", "here", "elsewhere", "unlike", "missing", "held", "bad", "away"};

	printf("%" PRIu64 " %s", number, statuses[result->status]);
	if (result->tensor)
		printf(" node=%s refcount=%" PRIu64 " error=%s", result->tensor->node,
			result->tensor->refcount, result->tensor->error);
	if (*result->text)
		printf(" (%s)", result->text);
	putchar('\n');
	fflush(stdout);
}

static void made(struct ask *a, const struct registry_result *result)
{
	struct tensor *old = find(a->name);

	if (result->status == REGISTRY_MADE) {
		if (old)
			DIE("%s was made twice", a->name);
		a->made->number = ++numbers;
		if (numbers == TENSORS)
			DIE("too many tensors");
		tensors[numbers] = a->made;
		bytes_held += a->made->is.bytes;
		hold(a->made, a->holder);
		return;
	}
	if (result->status == REGISTRY_HERE) {
		if (!old)
			DIE("%s is here and was never made", a->name);
		hold(old, a->holder);
	}
	free(a->made->memory);
	free(a->made);
}

static void done(void *argument, const struct registry_result *result)
{
	struct ask *a = argument;
	struct tensor *tensor;

	if (a->made) {
		made(a, result);
	} else if (result->status == REGISTRY_OK && (tensor = find(a->name))) {
		if (a->op == REGISTRY_GET)
			hold(tensor, a->holder);
		else if (a->op == REGISTRY_DELETE)
			forget(tensor);
	}
	if (a->ticket)
		registry_answer(registry, a->ticket, result);
	else
		say(a->number, result);
	free(a);
}

static void create(struct ask *a, const struct registry_tensor *wanted)
{
	struct tensor *tensor = calloc(1, sizeof(*tensor));

	tensor->is = *wanted;
	if (wanted->bytes <= 1 << 20)
		tensor->memory = calloc(1, wanted->bytes);
	if (!tensor->memory)
		DIE("no memory of %" PRIu64 " bytes", wanted->bytes);
	snprintf(tensor->is.gpu_uuid, sizeof(tensor->is.gpu_uuid), "GPU-%u", wanted->device);
	memcpy(tensor->is.ipc_handle, &tensor, sizeof(tensor));
	tensor->is.ctime = tensor->is.mtime = now();
	tensor->is.version = 1;
	a->made = tensor;
	registry_create(registry, &tensor->is, a->holder, done, a);
}

/* The copy is there: it is this store's if the index agrees. */
static void replicated(void *argument, const struct registry_result *result)
{
	struct ask *a = argument;

	if (result->status == REGISTRY_OK) {
		a->made->number = ++numbers;
		tensors[numbers] = a->made;
		bytes_held += a->made->is.bytes;
	} else {
		free(a->made);
	}
	say(a->number, result);
	free(a);
}

/* There is a ticket, and so what to copy. */
static void ticketed(void *argument, const struct registry_result *result)
{
	struct ask *a = argument;

	if (result->status != REGISTRY_OK) {
		say(a->number, result);
		free(a);
		return;
	}
	a->made = calloc(1, sizeof(*a->made));
	a->made->is = *result->tensor;
	a->made->is.replica = true;
	snprintf(a->made->is.gpu_uuid, sizeof(a->made->is.gpu_uuid), "GPU-copy");
	registry_replica(registry, &a->made->is, replicated, a);
}

static void redeemed(void *argument, const struct registry_result *result)
{
	struct ask *a = argument;

	printf("%" PRIu64 " %s", a->number, result->status == REGISTRY_OK ? "ok" : "missing");
	if (result->tensor)
		printf(" name=%s for=%s by=%s", result->tensor->name, result->tensor->for_space,
			result->tensor->by);
	putchar('\n');
	fflush(stdout);
	free(a);
}

/* What the registry asks of a store. */

static bool next(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
	const char *const **holders, size_t *count)
{
	(void)owner;
	while (*cursor < numbers) {
		const struct tensor *at = tensors[++*cursor];

		if (!at || !at->is.name[0])
			continue;
		*tensor = at->is;
		*holders = (const char *const *)at->holders;
		*count = at->count;
		return true;
	}
	return false;
}

static void command(void *owner, const struct registry_command *wanted)
{
	struct ask *a = ask(wanted->op, wanted->ticket, 0, wanted->tensor.name, wanted->holder);

	(void)owner;
	if (wanted->op == REGISTRY_CREATE)
		create(a, &wanted->tensor);
	else if (wanted->op == REGISTRY_GET)
		registry_take(registry, a->name, a->holder, done, a);
	else
		registry_delete(registry, a->name, a->holder, true, done, a);
}

static void gone(void *owner, const char *holder)
{
	(void)owner;
	for (uint64_t i = 1; i <= numbers; i++) {
		struct tensor *tensor = tensors[i];

		if (!tensor || !drop(tensor, holder))
			continue;
		registry_drop(registry, tensor->is.name, holder);
		if (!tensor->count)
			registry_delete(registry, tensor->is.name, "", true, done,
				ask(REGISTRY_DELETE, 0, 0, tensor->is.name, ""));
	}
}

static void renamed(void *owner, const char *name, const char *node)
{
	struct tensor *tensor = find(name);

	(void)owner;
	printf("0 renamed %s node=%s\n", name, node);
	fflush(stdout);
	if (tensor)
		tensor->is.name[0] = 0;
}

static uint32_t devices(void *owner)
{
	(void)owner;
	return device_count;
}

static void first(void *owner, const char *name, bool heir)
{
	struct tensor *tensor = find(name);

	(void)owner;
	printf("0 %s %s\n", heir ? "heir" : "first", name);
	fflush(stdout);
	if (tensor)
		tensor->is.replica = false;
}

static void lost(void *owner, uint32_t count)
{
	(void)owner;
	printf("0 lost %u\n", count);
	fflush(stdout);
}

static const struct registry_store store = {next, command, gone, renamed, first, lost, devices};

/* Lines. */

static void line_create(
	uint64_t number, const char *name, const char *dtype, char *shape, const char *holder)
{
	struct registry_tensor wanted = {0};
	struct error error;

	for (char *at = strtok(shape, ","); at; at = strtok(NULL, ","))
		wanted.shape[wanted.dimensions++] = strtoull(at, NULL, 10);
	snprintf(wanted.dtype, sizeof(wanted.dtype), "%s", dtype);
	if (registry_name(wanted.name, REGISTRY_DEFAULT, name, &error) ||
		registry_bytes(
			wanted.dtype, wanted.shape, wanted.dimensions, &wanted.bytes, &error))
		DIE("%s", error.text);
	create(ask(REGISTRY_CREATE, 0, number, wanted.name, holder), &wanted);
}

static void line_update(
	uint64_t number, const char *name, enum registry_state state, const char *why)
{
	struct tensor *tensor = find(name);

	if (!tensor)
		DIE("%s is not here", name);
	tensor->is.state = state;
	tensor->is.version++;
	tensor->is.mtime = now();
	snprintf(tensor->is.error, sizeof(tensor->is.error), "%s", why);
	registry_update(registry, &tensor->is, done, ask(REGISTRY_CREATE, 0, number, name, ""));
}

static void line(uint64_t number, char *text)
{
	char verb[16] = "", name[300] = "", a[256] = "", b[256] = "", c[256] = "";
	size_t held = 0;

	sscanf(text, "%15s %299s %255s %255s %255s", verb, name, a, b, c);
	if (!strcmp(verb, "create")) {
		line_create(number, name, a, b, c);
	} else if (!strcmp(verb, "take")) {
		registry_take(registry, name, a, done, ask(REGISTRY_GET, 0, number, name, a));
	} else if (!strcmp(verb, "drop")) {
		if (find(name))
			drop(find(name), a);
		registry_drop(registry, name, a);
	} else if (!strcmp(verb, "seal")) {
		line_update(number, name, REGISTRY_SEALED, "");
	} else if (!strcmp(verb, "lose")) {
		line_update(number, name, REGISTRY_LOST, a);
	} else if (!strcmp(verb, "delete") || !strcmp(verb, "force")) {
		registry_delete(registry, name, a, !strcmp(verb, "delete"), done,
			ask(REGISTRY_DELETE, 0, number, name, a));
	} else if (!strcmp(verb, "replica")) {
		registry_ticket(
			registry, name, a, b, ticketed, ask(REGISTRY_GET, 0, number, name, ""));
	} else if (!strcmp(verb, "redeem")) {
		registry_redeem(registry, name, redeemed, ask(REGISTRY_GET, 0, number, "", ""));
	} else if (!strcmp(verb, "yield")) {
		if (find(name))
			find(name)->is.name[0] = 0;
		registry_yield(registry, name, a);
	} else if (!strcmp(verb, "list")) {
		for (uint64_t i = 1; i <= numbers; i++)
			held += tensors[i] && tensors[i]->is.name[0];
		printf("%" PRIu64 " tensors=%zu bytes=%zu ready=%d\n", number, held, bytes_held,
			registry_ready(registry));
		fflush(stdout);
	} else {
		DIE("%s?", verb);
	}
}

/* 0 at the end of standard input. */
static bool read_lines(void)
{
	static char kept[1 << 20];
	static size_t n;
	static uint64_t count;
	char *end;
	ssize_t got = read(STDIN_FILENO, kept + n, sizeof(kept) - n);

	if (got <= 0)
		return false;
	n += (size_t)got;
	while ((end = memchr(kept, '\n', n))) {
		*end = 0;
		line(++count, kept);
		n -= (size_t)(end + 1 - kept);
		memmove(kept, end + 1, n);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct registry_config config = {.commands = true, .memory = 1 << 30};
	struct error error = {0};

	if (argc < 5)
		DIE("registry_store ADDRESS NODE EPOCH DEVICES [USER PASSWORD_FILE]");
	log_open("registry_store");
	snprintf(config.address, sizeof(config.address), "%s", argv[1]);
	snprintf(config.node, sizeof(config.node), "%s", argv[2]);
	snprintf(config.at, sizeof(config.at), "%s.example:9997", argv[2]);
	config.epoch = strtoull(argv[3], NULL, 10);
	device_count = (uint32_t)atoi(argv[4]);
	strcpy(config.gpus, "GPU-0");
	if (argc == 7) {
		snprintf(config.user, sizeof(config.user), "%s", argv[5]);
		snprintf(config.password_file, sizeof(config.password_file), "%s", argv[6]);
	}
	if (registry_open(&registry, &config, &store, NULL, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 2;
	}
	for (;;) {
		struct pollfd ready[] = {
			{registry_fd(registry), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

		if (poll(ready, 2, -1) < 0 && errno != EINTR)
			DIE("poll");
		if (ready[0].revents)
			registry_turn(registry);
		if (ready[1].revents && !read_lines())
			break;
	}
	registry_close(registry);
	for (uint64_t i = 1; i <= numbers; i++) {
		if (tensors[i])
			forget(tensors[i]);
	}
	return bytes_held ? 1 : 0;
}
