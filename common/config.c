/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "common/cleanup.h"

/* One open mapping or sequence. */
struct level {
	size_t key;   /* length of the key's text at this level, its own part not included */
	int index;    /* sequence: next element; mapping: -1 */
	bool has_key; /* mapping: a key was read, its value is next */
};

struct reader {
	const char *name;
	config_set set;
	void *argument;
	struct error *error;
	char key[CONFIG_KEY_MAX];
	struct level levels[CONFIG_DEPTH_MAX];
	int depth;
};

static int reader_fail(struct reader *reader, size_t line, const char *text)
{
	return error_set(reader->error, 0, "%s:%zu: %s", reader->name, line, text);
}

static int reader_key(struct reader *reader, struct level *level, const char *text, size_t line)
{
	int n = snprintf(reader->key + level->key, sizeof(reader->key) - level->key, "%s%s",
		level->key ? "." : "", text);

	if (n < 0 || (size_t)n >= sizeof(reader->key) - level->key)
		return reader_fail(reader, line, "the key is too long");
	level->has_key = true;
	return 0;
}

static int reader_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct level *level = reader->depth ? &reader->levels[reader->depth - 1] : NULL;
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	size_t line = event->start_mark.line + 1;
	struct config_item item = {
		.key = reader->key,
		.text = text,
		.index = -1,
		.quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
		.line = (unsigned)line,
	};
	int ret;

	if (strlen(text) != length || length > CONFIG_TEXT_MAX)
		return reader_fail(reader, line, "the value is too long or holds a NUL");
	if (!level)
		return !length ? 0
			       : reader_fail(reader, line, "'key: value' lines are expected");
	if (level->index < 0 && !level->has_key)
		return reader_key(reader, level, text, line);
	if (level->index >= 0)
		item.index = level->index++;
	level->has_key = false;

	ret = reader->set(reader->argument, &item, reader->error);
	if (ret < 0)
		return error_wrap(reader->error, ret, "%s:%zu", reader->name, line);
	return 0;
}

/* A mapping in a sequence: its number is a part of the keys. */
static int reader_element(struct reader *reader, struct level *up, size_t line)
{
	int n = snprintf(
		reader->key + up->key, sizeof(reader->key) - up->key, "[%d]", up->index);

	if (n < 0 || (size_t)n >= sizeof(reader->key) - up->key)
		return reader_fail(reader, line, "the key is too long");
	up->index++;
	return 0;
}

static int reader_open_level(struct reader *reader, bool sequence, size_t line)
{
	struct level *up = reader->depth ? &reader->levels[reader->depth - 1] : NULL;
	struct level *level;

	if (reader->depth == CONFIG_DEPTH_MAX)
		return reader_fail(reader, line, "nested too deeply");
	if (!up && sequence)
		return reader_fail(reader, line, "'key: value' lines are expected, not a list");
	if (up && up->index < 0 && !up->has_key)
		return reader_fail(reader, line, "a key must be plain text");
	if (up && up->index >= 0 && sequence)
		return reader_fail(reader, line, "only plain values may stand in a list");
	if (up && up->index >= 0 && reader_element(reader, up, line))
		return -EINVAL;
	level = &reader->levels[reader->depth++];
	*level =
		(struct level){.key = up ? strlen(reader->key) : 0, .index = sequence ? 0 : -1};
	return 0;
}

static void reader_close_level(struct reader *reader)
{
	struct level *up;

	reader->key[reader->levels[--reader->depth].key] = 0;
	if (!reader->depth)
		return;
	up = &reader->levels[reader->depth - 1];
	up->has_key = false;
	if (up->index >= 0)
		reader->key[up->key] = 0;
}

static int reader_event(struct reader *reader, const yaml_event_t *event)
{
	size_t line = event->start_mark.line + 1;

	switch (event->type) {
	case YAML_SCALAR_EVENT: return reader_scalar(reader, event);
	case YAML_MAPPING_START_EVENT: return reader_open_level(reader, false, line);
	case YAML_SEQUENCE_START_EVENT: return reader_open_level(reader, true, line);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT: reader_close_level(reader); return 0;
	case YAML_ALIAS_EVENT: return reader_fail(reader, line, "aliases are not understood");
	default: return 0;
	}
}

int config_read_bytes(const char *name, const void *bytes, size_t n, config_set set,
	void *argument, struct error *error)
{
	struct reader reader = {.name = name, .set = set, .argument = argument, .error = error};
	yaml_parser_t parser;
	yaml_event_t event;
	bool end = false;
	int ret = 0;

	if (!yaml_parser_initialize(&parser))
		return error_set(error, ENOMEM, "%s", name);
	yaml_parser_set_input_string(&parser, bytes, n);
	while (!ret && !end) {
		if (!yaml_parser_parse(&parser, &event)) {
			ret = error_set(error, 0, "%s:%zu: %s", name,
				parser.problem_mark.line + 1,
				parser.problem ? parser.problem : "not YAML");
			break;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		ret = reader_event(&reader, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return ret;
}

int config_read(const char *path, config_set set, void *argument, struct error *error)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_free char *bytes = NULL;
	struct stat st;
	size_t n = 0;

	if (fd < 0)
		return error_set(error, errno, "%s", path);
	if (fstat(fd, &st))
		return error_set(error, errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return error_set(error, EISDIR, "%s", path);
	bytes = malloc(CONFIG_FILE_MAX + 1);
	if (!bytes)
		return error_set(error, ENOMEM, "%s", path);
	while (n <= CONFIG_FILE_MAX) {
		ssize_t got = read(fd, bytes + n, CONFIG_FILE_MAX + 1 - n);

		if (got < 0)
			return error_set(error, errno, "%s", path);
		if (!got)
			break;
		n += (size_t)got;
	}
	if (n > CONFIG_FILE_MAX)
		return error_set(error, EFBIG, "%s", path);
	return config_read_bytes(path, bytes, n, set, argument, error);
}
