/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/settings/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "gpu-agent/supervisor/settings/parse_value.h"

#define FILE_MAX ((size_t)128 * 1024) /* AGENT_TOKENS lines as long as they may be */
#define MADE_BYTES 24
#define FIELDS 4

_Static_assert(SHA256_DIGEST_LENGTH == AGENT_TOKEN_HASH, "what stands for a token");

static int token_add(struct agent_tokens *tokens, const char *token,
	const struct agent_tenant *tenant, struct error *error)
{
	struct agent_tenant *at = &tokens->list[tokens->count];
	size_t n = strlen(token);

	if (!n || n > AGENT_TOKEN_MAX)
		return error_set(error, 0, "a token has 1 to %d bytes", AGENT_TOKEN_MAX);
	if (tokens->count == AGENT_TOKENS)
		return error_set(error, 0, "more than %d tokens", AGENT_TOKENS);
	*at = *tenant;
	SHA256((const unsigned char *)token, n, at->hash);
	for (uint32_t i = 0; i < tokens->count; i++) {
		const struct agent_tenant *other = &tokens->list[i];

		if (!memcmp(other->hash, at->hash, sizeof(at->hash)))
			return error_set(error, 0, "the token is another line's too");
		if (!strcmp(other->name, at->name) &&
			(other->bytes != at->bytes || other->sessions != at->sessions))
			return error_set(
				error, 0, "'%s' has other limits further up", at->name);
	}
	tokens->count++;
	return 0;
}

static bool is_name(const char *text)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_./";

	return strlen(text) < sizeof(((struct agent_tenant *)0)->name) &&
	       !text[strspn(text, known)];
}

/* Its text is in no error: it may be a secret in the wrong place. */
static int read_fields(char *const field[FIELDS], unsigned count, struct agent_tenant *tenant,
	struct error *error)
{
	const char *end;
	uint64_t n;

	strcpy(tenant->name, TOKEN_TENANT);
	if (count > 1) {
		if (!is_name(field[1]))
			return error_set(error, 0,
				"the second field is no tenant's name: at most 63 of a-z A-Z "
				"0-9 - _ . /");
		strcpy(tenant->name, field[1]);
	}
	if (count > 2 &&
		(parse_bytes(field[2], &tenant->bytes) || tenant->bytes > AGENT_BYTES_MAX))
		return error_set(error, 0,
			"the third field is not bytes of device memory like 8GiB (0 = no "
			"limit)");
	if (count > 3) {
		if (parse_number(field[3], &n, &end) || *end || n > AGENT_SESSIONS_MAX)
			return error_set(error, 0,
				"the fourth field is not a number of sessions, 0-%d (0 = no "
				"limit)",
				AGENT_SESSIONS_MAX);
		tenant->sessions = (uint32_t)n;
	}
	return 0;
}

static int read_line(struct agent_tokens *tokens, char *line, struct error *error)
{
	struct agent_tenant tenant = {0};
	char *field[FIELDS], *word, *rest = line;
	unsigned count = 0;
	int ret;

	while ((word = strsep(&rest, " \t\r"))) {
		if (!*word)
			continue;
		if (*word == '#')
			break;
		if (count == FIELDS)
			return error_set(error, 0,
				"more than TOKEN NAME DEVICE-BYTES SESSIONS on a line");
		field[count++] = word;
	}
	if (!count)
		return 0;
	ret = read_fields(field, count, &tenant, error);
	return ret ? ret : token_add(tokens, field[0], &tenant, error);
}

static int read_lines(struct agent_tokens *tokens, char *text, const char *key,
	const char *path, struct error *error)
{
	char *line, *rest = text;
	int number = 0, ret;

	while ((line = strsep(&rest, "\n"))) {
		number++;
		ret = read_line(tokens, line, error);
		if (ret)
			return error_wrap(error, ret, "%s: %s:%d", key, path, number);
	}
	if (!tokens->count)
		return error_set(error, 0, "%s: %s: there is no token in it", key, path);
	return 0;
}

/* The file of KEY in fresh. */
static int read_file(
	struct agent_tokens *fresh, const char *key, const char *path, struct error *error)
{
	static char text[FILE_MAX + 1];
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	ssize_t n = 1;
	int ret;

	memset(fresh, 0, sizeof(*fresh));
	if (strlen(path) >= sizeof(fresh->file))
		return error_set(error, ENAMETOOLONG, "%s: %.100s", key, path);
	if (fd < 0)
		return error_set(error, errno, "%s: %s", key, path);
	while (n > 0 && got < FILE_MAX) {
		n = read(fd, text + got, FILE_MAX - got);
		if (n < 0)
			return error_set(error, errno, "%s: %s", key, path);
		got += (size_t)n;
	}
	text[got] = 0;
	strcpy(fresh->file, path);
	if (got == FILE_MAX)
		ret = error_set(
			error, 0, "%s: %s: larger than %zu KiB", key, path, FILE_MAX / 1024);
	else
		ret = read_lines(fresh, text, key, path, error);
	OPENSSL_cleanse(text, sizeof(text));
	return ret;
}

int token_read(struct agent_tokens *tokens, const char *path, struct error *error)
{
	static struct agent_tokens fresh;
	int ret = read_file(&fresh, "token_file", path, error);

	if (!ret)
		*tokens = fresh;
	return ret;
}

int token_read_http(struct agent_tokens *tokens, const char *path, struct error *error)
{
	static struct agent_tokens fresh;
	int ret = read_file(&fresh, "http.token_file", path, error);

	for (uint32_t i = 0; !ret && i < fresh.count; i++)
		if (fresh.list[i].bytes || fresh.list[i].sessions)
			ret = error_set(error, 0,
				"http.token_file: %s: '%s' has limits, as a tenant has; a line "
				"here is a token, and at most the name of who has it",
				path, fresh.list[i].name);
	if (!ret)
		*tokens = fresh;
	return ret;
}

int token_read_network(struct agent_network *network, struct error *error)
{
	static struct agent_tokens fresh;
	const char *path = network->is.token_file;
	int ret = read_file(&fresh, "token_file", path, error);

	for (uint32_t i = 0; !ret && i < fresh.count; i++)
		if (fresh.list[i].bytes || fresh.list[i].sessions ||
			strcmp(fresh.list[i].name, TOKEN_TENANT))
			ret = error_set(error, 0,
				"token_file: %s: a line of a network's is a token and nothing "
				"else",
				path);
	if (!ret && fresh.count > AGENT_NETWORK_TOKENS)
		ret = error_set(error, 0, "token_file: %s: more than %d tokens", path,
			AGENT_NETWORK_TOKENS);
	if (ret)
		return ret;
	memset(network->tokens, 0, sizeof(network->tokens));
	for (uint32_t i = 0; i < fresh.count; i++)
		memcpy(network->tokens[i], fresh.list[i].hash, sizeof(network->tokens[i]));
	network->token_count = fresh.count;
	return 0;
}

int token_set(struct agent_tokens *tokens, const char *token)
{
	const struct agent_tenant tenant = {.name = TOKEN_TENANT};

	memset(tokens, 0, sizeof(*tokens));
	return *token ? token_add(tokens, token, &tenant, NULL) : 0;
}

/* --- one of our own ----------------------------------------------------------------------- */

static int default_path(char path[AGENT_PATH], struct error *error)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(path, AGENT_PATH, "%s/vcuda/token", state);
	else if (!geteuid())
		n = snprintf(path, AGENT_PATH, "/var/lib/vcuda/token");
	else if (home && home[0] == '/')
		n = snprintf(path, AGENT_PATH, "%s/.local/state/vcuda/token", home);
	else
		n = AGENT_PATH;
	if (n < AGENT_PATH)
		return 0;
	return error_set(error, 0, "there is no $HOME for a token");
}

/* The folders above a file, for this user alone. */
static void make_folders(const char *path)
{
	char folder[AGENT_PATH];

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *at = folder + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(folder, 0700); /* who cannot be made is told by the open */
		*at = '/';
	}
}

/* Written whole and then given its name: another agent's start finds all of it or none. */
static int write_token(const char *path, struct error *error)
{
	unsigned char random[MADE_BYTES];
	char text[2 * MADE_BYTES + 2], part[AGENT_PATH + 16];
	cleanup_close int fd = -1;
	int ret = token_random(random, sizeof(random), error);

	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	strcat(text, "\n");
	snprintf(part, sizeof(part), "%s.%d", path, getpid());
	unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(error, errno, "%s", part);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		ret = error_set(error, errno, "%s", part);
	else if (link(part, path) && errno != EEXIST)
		ret = error_set(error, errno, "%s", path);
	unlink(part);
	OPENSSL_cleanse(text, sizeof(text));
	return ret;
}

/* A file that others can read or write keeps no secret. */
static int check_owner(const char *path, struct error *error)
{
	struct stat st;

	if (lstat(path, &st))
		return error_set(error, errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return error_set(error, 0,
			"%s is not a file of this user's alone (chmod 600), and so no token",
			path);
	return 0;
}

int token_make(struct agent_tokens *tokens, struct error *error)
{
	char path[AGENT_PATH];
	int ret = default_path(path, error);

	if (!ret && access(path, F_OK)) {
		make_folders(path);
		ret = write_token(path, error);
	}
	if (!ret)
		ret = check_owner(path, error);
	if (!ret)
		ret = token_read(tokens, path, error);
	if (ret)
		return error_wrap(error, ret,
			"no token is configured (token_file), and none can be kept; "
			"--insecure serves without");
	tokens->made = true;
	return 0;
}

/* --- what peers bring --------------------------------------------------------------------- */

int token_find(const struct agent_tokens *tokens, const char offered[AGENT_TOKEN_MAX + 1])
{
	uint8_t hash[AGENT_TOKEN_HASH];
	int found = -1;

	SHA256((const unsigned char *)offered, strnlen(offered, AGENT_TOKEN_MAX + 1), hash);
	for (uint32_t i = 0; i < tokens->count; i++)
		if (token_same(hash, tokens->list[i].hash, sizeof(hash)))
			found = (int)i;
	OPENSSL_cleanse(hash, sizeof(hash));
	return found;
}

bool token_same(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

int token_random(void *out, size_t n, struct error *error)
{
	if (getrandom(out, n, 0) != (ssize_t)n)
		return error_set(error, errno, "getrandom");
	return 0;
}
