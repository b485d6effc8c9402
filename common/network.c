/* SPDX-License-Identifier: Apache-2.0 */
#include "common/network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define FILE_MAX 65536u

enum {
	NAME,
	DIRECTORY,
	USER,
	PASSWORD_FILE,
	TOKEN_FILE,
	ADDRESS,
	MEMORY,
	SESSIONS,
	GPUS,
	HOURS,
	RAY_TOKEN_FILE /* the users' alone (python/vcuda-peers): passed over */
};
#define NEEDED (1u << NAME | 1u << DIRECTORY | 1u << TOKEN_FILE)

static const char *const keys[] = {
	[NAME] = "name",
	[DIRECTORY] = "directory",
	[USER] = "user",
	[PASSWORD_FILE] = "password_file",
	[TOKEN_FILE] = "token_file",
	[ADDRESS] = "address",
	[MEMORY] = "memory",
	[SESSIONS] = "sessions",
	[GPUS] = "gpus",
	[HOURS] = "hours",
	[RAY_TOKEN_FILE] = "ray_token_file",
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int unknown_key(const char *key, struct error *error)
{
	char known[200] = "";
	size_t at = 0;

	for (size_t i = 0; i < KEYS; i++)
		at += (size_t)snprintf(
			known + at, sizeof(known) - at, "%s%s", i ? ", " : "", keys[i]);
	return error_set(error, 0, "unknown key '%.40s'; known are %s", key, known);
}

/* --- values ------------------------------------------------------------------------------- */

static int set_name(char name[NETWORK_NAME], const char *text, struct error *error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(text);

	if (!n || n >= NETWORK_NAME || text[strspn(text, letters)] || text[0] == '-' ||
		text[n - 1] == '-')
		return error_set(
			error, 0, "name is not 1 to 63 of a-z, 0-9 and '-': '%.70s'", text);
	strcpy(name, text);
	return 0;
}

/* PORT behind the last ':' of TEXT; 0: there is none that can be. */
static unsigned port_of(const char *text)
{
	const char *colon = strrchr(text, ':');
	unsigned port = 0;

	if (!colon || !colon[1] || strlen(colon + 1) > 5 ||
		colon[1 + strspn(colon + 1, "0123456789")])
		return 0;
	port = (unsigned)atoi(colon + 1);
	return port < 65536 ? port : 0;
}

/* A host's name or address, the latter in brackets where it has colons. */
static bool is_host(const char *text, size_t n)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789.-_";

	if (n > 2 && text[0] == '[')
		return strspn(text + 1, "0123456789abcdefABCDEF:.") == n - 2 &&
		       text[n - 1] == ']';
	return n && n < 254 && strspn(text, name) >= n;
}

bool network_is_redis(const char *text)
{
	const char *host = text + 6, *colon = strrchr(text, ':');

	if (!strncmp(text, "unix:///", 8))
		return text[8] && strlen(text + 7) < 108;
	return !strncmp(text, "tcp://", 6) && port_of(host) && colon > host &&
	       is_host(host, (size_t)(colon - host));
}

static int set_directory(char *directory, size_t room, const char *text, struct error *error)
{
	if (strlen(text) >= room || !network_is_redis(text))
		return error_set(error, 0,
			"directory is not unix:///PATH or tcp://HOST:PORT: '%.100s'", text);
	strcpy(directory, text);
	return 0;
}

static int set_address(char *address, size_t room, const char *text, struct error *error)
{
	const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
	bool port = colon && colon > (bracket ? bracket : text);
	size_t n = port ? (size_t)(colon - text) : strlen(text);

	if (strlen(text) >= room || !is_host(text, n) || (port && !port_of(text)))
		return error_set(error, 0, "address is not HOST or HOST:PORT: '%.100s'", text);
	strcpy(address, text);
	return 0;
}

/* "8GiB" as "8Gi": both are written. */
static int set_memory(
	struct network *network, const struct config_item *item, struct error *error)
{
	struct config_item bare = *item;
	char text[40];
	size_t n = strlen(item->text);

	if (n && n < sizeof(text)) {
		memcpy(text, item->text, n + 1);
		if (text[n - 1] == 'B')
			text[n - 1] = 0;
		bare.text = text;
	}
	if (config_size(&bare, 0, NETWORK_BYTES_MAX, &network->memory, error))
		return error_set(error, 0,
			"memory: '%.40s' is not bytes like 8GiB (0 = no limit)", item->text);
	return 0;
}

/* One number, or FIRST-LAST, of a list. */
static int add_gpus(struct network *network, const char *word, size_t n)
{
	char text[16], *end;
	unsigned long first, last;

	if (!n || n >= sizeof(text) || strspn(word, "0123456789-") < n || word[0] == '-')
		return -EINVAL;
	memcpy(text, word, n);
	text[n] = 0;
	first = last = strtoul(text, &end, 10);
	if (*end == '-' && (end[1] < '0' || end[1] > '9'))
		return -EINVAL;
	if (*end == '-')
		last = strtoul(end + 1, &end, 10);
	if (*end || last < first || last >= NETWORK_GPUS)
		return -EINVAL;
	for (; first <= last; first++) {
		if (network->gpus >> first & 1)
			return -EINVAL;
		network->gpus |= 1u << first;
	}
	return 0;
}

/* "22:00" in minutes; -1. */
static int minute_of(const char *text)
{
	static const char form[] = "00:00";
	int minutes;

	for (int i = 0; i < 5; i++)
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return -1;
	minutes = (text[3] - '0') * 10 + text[4] - '0';
	if (minutes > 59)
		return -1;
	minutes += ((text[0] - '0') * 10 + text[1] - '0') * 60;
	return minutes <= NETWORK_DAY ? minutes : -1;
}

static int add_hours(struct network *network, const char *word, size_t n)
{
	int from = n == 11 ? minute_of(word) : -1;
	int until = n == 11 && word[5] == '-' ? minute_of(word + 6) : -1;

	if (from < 0 || until < 0 || from == until || from == NETWORK_DAY ||
		network->hour_count == NETWORK_HOURS)
		return -EINVAL;
	network->hours[network->hour_count++] =
		(struct network_hours){(uint16_t)from, (uint16_t)until};
	return 0;
}

/* Each part of TEXT between commas; -EINVAL where one is none. */
static int each_word(struct network *network, const char *text,
	int (*add)(struct network *network, const char *word, size_t n))
{
	for (;;) {
		size_t n;

		text += strspn(text, " ");
		n = strcspn(text, ", ");
		if (add(network, text, n))
			return -EINVAL;
		text += n;
		text += strspn(text, " ");
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

static int set_gpus(struct network *network, const char *text, struct error *error)
{
	if (!strcmp(text, "all") && !network->gpus)
		return 0;
	if (!each_word(network, text, add_gpus))
		return 0;
	return error_set(error, 0, "gpus: '%.40s' is not all or a list like [0, 1]", text);
}

static int set_hours(struct network *network, const char *text, struct error *error)
{
	if (!each_word(network, text, add_hours))
		return 0;
	return error_set(error, 0,
		"hours: '%.40s' is not HH:MM-HH:MM, like 22:00-06:00 (%d of them at most)",
		text, NETWORK_HOURS);
}

static int set_path(
	char path[NETWORK_PATH], const char *key, const char *text, struct error *error)
{
	for (const char *at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			return error_set(error, 0, "%s is not a path", key);
	if (!*text || strlen(text) >= NETWORK_PATH)
		return error_set(error, 0, "%s is not a path", key);
	strcpy(path, text);
	return 0;
}

static int set_value(
	struct network *n, size_t key, const struct config_item *item, struct error *error)
{
	uint64_t number;
	int ret;

	switch (key) {
	case NAME: return set_name(n->name, item->text, error);
	case DIRECTORY:
		return set_directory(n->directory, sizeof(n->directory), item->text, error);
	case USER:
		if (!item->text[0] || strlen(item->text) >= sizeof(n->user) ||
			strpbrk(item->text, " \t\r\n"))
			return error_set(error, 0, "user is not a user of Redis' ACL");
		strcpy(n->user, item->text);
		return 0;
	case PASSWORD_FILE: return set_path(n->password_file, keys[key], item->text, error);
	case TOKEN_FILE: return set_path(n->token_file, keys[key], item->text, error);
	case ADDRESS: return set_address(n->address, sizeof(n->address), item->text, error);
	case MEMORY: return set_memory(n, item, error);
	case SESSIONS:
		ret = config_number(item, 0, NETWORK_SESSIONS_MAX, &number, NULL);
		if (ret)
			return error_set(error, 0,
				"sessions: '%.40s' is not a number from 0 to %u (0 = no limit)",
				item->text, NETWORK_SESSIONS_MAX);
		n->sessions = (uint32_t)number;
		return 0;
	case GPUS: return set_gpus(n, item->text, error);
	case RAY_TOKEN_FILE: return 0;
	default: return set_hours(n, item->text, error);
	}
}

int network_set(struct network *network, const char *key, const struct config_item *item,
	struct error *error)
{
	size_t k = 0;

	while (k < KEYS && strcmp(keys[k], key))
		k++;
	if (k == KEYS)
		return unknown_key(key, error);
	if (item->index >= 0 && k != GPUS && k != HOURS)
		return error_set(error, 0, "%s is not a list", key);
	if (item->index < 1 && network->keys >> k & 1)
		return error_set(error, 0, "'%s' is given twice", key);
	network->keys |= 1u << k;
	return set_value(network, k, item, error);
}

/* --- the whole ---------------------------------------------------------------------------- */

static int make_absolute(
	char path[NETWORK_PATH], const char *folder, const char *key, struct error *error)
{
	char whole[2 * NETWORK_PATH];

	if (!path[0] || path[0] == '/')
		return 0;
	if ((size_t)snprintf(whole, sizeof(whole), "%s/%s", folder, path) >= NETWORK_PATH)
		return error_set(error, ENAMETOOLONG, "%s: %.100s", key, path);
	strcpy(path, whole);
	return 0;
}

int network_complete(struct network *network, const char *folder, struct error *error)
{
	int ret;

	for (size_t k = 0; k < KEYS; k++)
		if (NEEDED >> k & 1 && !(network->keys >> k & 1))
			return error_set(error, 0, "%s is missing", keys[k]);
	if (network->user[0] && !network->password_file[0])
		return error_set(error, 0, "user wants a password_file");
	ret = make_absolute(network->token_file, folder, keys[TOKEN_FILE], error);
	if (!ret)
		ret = make_absolute(network->password_file, folder, keys[PASSWORD_FILE], error);
	network->keys = 0;
	return ret;
}

static int read_item(void *argument, const struct config_item *item, struct error *error)
{
	return network_set(argument, item->key, item, error);
}

/* Of the file that was looked at, not of one that took its name since. Bytes, or -errno. */
static ssize_t read_text(const char *path, char text[FILE_MAX + 1], struct error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &st))
		return error_set(error, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(error, 0, "%s: no regular file", path);
	if (st.st_mode & 077)
		return error_set(error, 0,
			"%s: others than its owner may read it (mode %o): chmod 600 it", path,
			st.st_mode & 0777);
	while (got > 0 && n <= FILE_MAX) {
		got = read(fd, text + n, FILE_MAX + 1 - n);
		if (got < 0)
			return error_set(error, errno, "%s", path);
		n += (size_t)got;
	}
	if (n > FILE_MAX)
		return error_set(error, 0, "%s: longer than %u bytes", path, FILE_MAX);
	return (ssize_t)n;
}

static int folder_of(const char *path, char folder[NETWORK_PATH], struct error *error)
{
	cleanup_free char *whole = realpath(path, NULL);
	char *slash = whole ? strrchr(whole, '/') : NULL;

	if (!slash)
		return error_set(error, errno, "%s", path);
	*slash = 0;
	if (strlen(whole) >= NETWORK_PATH)
		return error_set(error, ENAMETOOLONG, "%s", path);
	strcpy(folder, whole);
	return 0;
}

int network_read(struct network *network, const char *path, struct error *error)
{
	cleanup_free char *text = malloc(FILE_MAX + 1);
	char folder[NETWORK_PATH];
	ssize_t n;
	int ret;

	memset(network, 0, sizeof(*network));
	n = text ? read_text(path, text, error) : error_set(error, ENOMEM, "%s", path);
	if (n < 0)
		return (int)n;
	ret = config_read_bytes(path, text, (size_t)n, read_item, network, error);
	if (!ret)
		ret = folder_of(path, folder, error);
	if (ret)
		return ret;
	ret = network_complete(network, folder, error);
	return ret ? error_wrap(error, ret, "%s", path) : 0;
}

static void write_text(FILE *out, const char *key, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "%s: \"", key);
	for (; *text; text++)
		fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	fputs("\"\n", out);
}

void network_write(FILE *out, const struct network *network)
{
	char hours[NETWORK_HOURS * 13 + 1];
	const char *between = "";

	write_text(out, keys[NAME], network->name);
	write_text(out, keys[DIRECTORY], network->directory);
	write_text(out, keys[USER], network->user);
	write_text(out, keys[PASSWORD_FILE], network->password_file);
	write_text(out, keys[TOKEN_FILE], network->token_file);
	write_text(out, keys[ADDRESS], network->address);
	if (network->memory)
		fprintf(out, "memory: %llu\n", (unsigned long long)network->memory);
	if (network->sessions)
		fprintf(out, "sessions: %u\n", network->sessions);
	if (network->gpus) {
		fputs("gpus: [", out);
		for (unsigned i = 0; i < NETWORK_GPUS; i++)
			if (network->gpus >> i & 1) {
				fprintf(out, "%s%u", between, i);
				between = ", ";
			}
		fputs("]\n", out);
	}
	network_hours_text(hours, sizeof(hours), network);
	write_text(out, keys[HOURS], hours);
}

int network_is_open(const struct network *network, unsigned minute)
{
	for (uint32_t i = 0; i < network->hour_count; i++) {
		const struct network_hours *h = &network->hours[i];

		if (h->from < h->until ? minute >= h->from && minute < h->until
				       : minute >= h->from || minute < h->until)
			return 1;
	}
	return !network->hour_count;
}

void network_hours_text(char *out, size_t n, const struct network *network)
{
	size_t at = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < network->hour_count && at < n; i++) {
		const struct network_hours *h = &network->hours[i];

		at += (size_t)snprintf(out + at, n - at, "%s%02u:%02u-%02u:%02u", i ? ", " : "",
			h->from / 60u, h->from % 60u, h->until / 60u, h->until % 60u);
	}
}
