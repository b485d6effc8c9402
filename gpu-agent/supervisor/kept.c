/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/kept.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct kept *find(
	const struct kept_table *table, pid_t pid, const uint8_t name[CONTROL_NAME])
{
	for (size_t i = 0; i < table->count; i++)
		if (table->list[i].pid == pid &&
			!memcmp(table->list[i].name, name, CONTROL_NAME))
			return &table->list[i];
	return NULL;
}

static void drop(struct kept_table *table, struct kept *kept)
{
	close(kept->fd);
	*kept = table->list[--table->count];
}

static bool grow(struct kept_table *table)
{
	size_t room = table->room ? 2 * table->room : 64;
	struct kept *list;

	if (table->count == table->most)
		return false;
	if (table->count < table->room)
		return true;
	list = realloc(table->list, room * sizeof(*list));
	if (!list)
		return false;
	table->list = list;
	table->room = room;
	return true;
}

bool kept_add(struct kept_table *table, pid_t pid, const uint8_t name[CONTROL_NAME], int fd)
{
	struct kept *kept = find(table, pid, name);

	if (kept) {
		close(kept->fd);
		kept->fd = fd;
		return true;
	}
	if (!grow(table)) {
		close(fd);
		return false;
	}
	kept = &table->list[table->count++];
	kept->pid = pid;
	kept->fd = fd;
	memcpy(kept->name, name, CONTROL_NAME);
	return true;
}

void kept_drop(struct kept_table *table, pid_t pid, const uint8_t name[CONTROL_NAME])
{
	struct kept *kept = find(table, pid, name);

	if (kept)
		drop(table, kept);
}

void kept_forget(struct kept_table *table, pid_t pid)
{
	for (size_t i = table->count; i-- > 0;)
		if (table->list[i].pid == pid)
			drop(table, &table->list[i]);
}

void kept_forget_but(struct kept_table *table, pid_t pid)
{
	for (size_t i = table->count; i-- > 0;)
		if (table->list[i].pid != pid)
			drop(table, &table->list[i]);
}

void kept_clear(struct kept_table *table)
{
	while (table->count)
		drop(table, &table->list[table->count - 1]);
	free(table->list);
	*table = (struct kept_table){.most = table->most};
}
