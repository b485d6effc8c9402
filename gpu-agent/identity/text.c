/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/identity/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 8
#define ITEMS_MAX 512

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

ssize_t text_decode(const char *text, size_t n, void *out, size_t most)
{
	unsigned char *bytes = out;
	uint32_t bits = 0;
	unsigned have = 0;
	size_t got = 0;

	if (n % 4 == 1)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int d = digit(text[i]);

		if (d < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)d;
		have += 6;
		if (have < 8)
			continue;
		if (got == most)
			return -EINVAL;
		have -= 8;
		bytes[got++] = (unsigned char)(bits >> have);
	}
	return bits & ((1u << have) - 1) ? -EINVAL : (ssize_t)got;
}

/* The length of the character at text, 1 to 4; 0: it is not UTF-8. */
static size_t character(const unsigned char *text, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = text[0] < 0x80	     ? 1
			: text[0] >> 5 == 6  ? 2
			: text[0] >> 4 == 14 ? 3
			: text[0] >> 3 == 30 ? 4
					     : 0;
	uint32_t code = length > 1 ? text[0] & (0x7fu >> length) : text[0];

	if (!length || length > n)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if (text[i] >> 6 != 2)
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/* The bytes of one character of a string, an escape counted as one; 0: it may not be there. */
static size_t in_string(const char *text, size_t n)
{
	if ((unsigned char)*text < ' ')
		return 0;
	if (*text != '\\')
		return character((const unsigned char *)text, n);
	/* cJSON ends a string there, and would find another name than who signed it. */
	return n < 2 || (n >= 6 && !strncmp(text + 1, "u0000", 5)) ? 0 : 2;
}

/* What cJSON does not look at, or would spend much on. */
static bool plausible(const char *text, size_t n)
{
	unsigned depth = 0, items = 0;
	bool string = false;
	size_t step;

	for (size_t i = 0; i < n; i += step) {
		char c = text[i];

		step = string ? in_string(text + i, n - i) : (unsigned char)c < 0x80 && c;
		if (!step)
			return false;
		if (c == '"')
			string = !string;
		if (string)
			continue;
		if ((c == '{' || c == '[') && ++depth > DEPTH_MAX)
			return false;
		if ((c == '}' || c == ']') && !depth--)
			return false;
		if (c == ',' && ++items > ITEMS_MAX)
			return false;
	}
	return !string && !depth;
}

/* Members of an object have names of their own, all the way down. */
static bool names_differ(const cJSON *value)
{
	for (const cJSON *one = value->child; one; one = one->next) {
		if (!names_differ(one))
			return false;
		for (const cJSON *other = one->next; cJSON_IsObject(value) && other;
			other = other->next)
			if (!strcmp(one->string, other->string))
				return false;
	}
	return true;
}

cJSON *text_json(const char *text, size_t n)
{
	const char *end = text;
	cJSON *root = plausible(text, n) ? cJSON_ParseWithLengthOpts(text, n, &end, 0) : NULL;

	if (root && (!cJSON_IsObject(root) || end != text + n || !names_differ(root))) {
		cJSON_Delete(root);
		root = NULL;
	}
	return root;
}

const char *text_string(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}
