/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a YAML file as a flat list of settings: a nested key is joined with dots, an element of
 * a sequence comes with its index, a key of a mapping in one is "LIST[INDEX].KEY".  What a key
 * means is the caller's; each error names file and line.
 */
#ifndef VCUDA_COMMON_CONFIG_H
#define VCUDA_COMMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define CONFIG_FILE_MAX (256u * 1024) /* a configuration, not data */
#define CONFIG_DEPTH_MAX 8
#define CONFIG_KEY_MAX 128
#define CONFIG_TEXT_MAX 4096

struct config_item {
	const char *key;  /* "ports.send"; lives as long as the callback */
	const char *text; /* the scalar, NUL-terminated, <= CONFIG_TEXT_MAX */
	int index;	  /* in a sequence 0, 1, …; else -1 */
	int quoted;	  /* 'text' or "text": never read as null */
	unsigned line;	  /* from 1 */
};

/* Called for each scalar in the file's order. 0, or -errno with *error saying what is wrong
 * (the reader puts FILE:LINE before it). */
typedef int (*config_set)(void *argument, const struct config_item *item, struct error *error);

/* 0, or -errno with *error "FILE:LINE: …". An empty file is fine. */
int config_read(const char *path, config_set set, void *argument, struct error *error);

/* The same from memory; `name` stands for the file in errors. */
int config_read_bytes(const char *name, const void *bytes, size_t n, config_set set,
	void *argument, struct error *error);

/* Values; -EINVAL with *error naming the key and what is allowed. */
int config_number(const struct config_item *item, uint64_t least, uint64_t most,
	uint64_t *value, struct error *error);
/* As config_number, with a unit behind where wanted: Ki Mi Gi Ti or k M G T; then with a
 * fraction too, as Kubernetes writes quantities (1.5Gi). */
int config_size(const struct config_item *item, uint64_t least, uint64_t most, uint64_t *value,
	struct error *error);
int config_bool(const struct config_item *item, int *value, struct error *error);
/* Copies the text into out[n]; -EINVAL where it does not fit. */
int config_text(const struct config_item *item, char *out, size_t n, struct error *error);

#endif
