/* SPDX-License-Identifier: Apache-2.0
 *
 * networks_folder.  Whenever a file of it changes, the table of networks is made anew from the
 * configuration, the folder and those that are being left; what is known of a network goes
 * along by its name.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/network_table.h"
#include "gpu-agent/supervisor/supervisor.h"
#include "gpu-agent/supervisor/settings/token.h"

#define MS 1000000ull
#define FILES_MOST 64

/* --- the files ---------------------------------------------------------------------------- */

static int is_network_file(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot && !strcmp(dot, ".yaml");
}

static int64_t written_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

void network_folder_path(
	const struct supervisor *s, const char *name, char path[AGENT_PATH * 2])
{
	snprintf(path, AGENT_PATH * 2, "%s/%s", s->config->networks_folder, name);
}

static uint64_t mix(uint64_t sum, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
	return sum;
}

/* The folder's files by name, to be freed with free_files. How many, or -errno. */
static int list_files(const struct supervisor *s, struct dirent ***files)
{
	int n = scandir(s->config->networks_folder, files, is_network_file, alphasort);

	if (n < 0)
		*files = NULL;
	return n < 0 ? -errno : n;
}

static void free_files(struct dirent **files, int count)
{
	for (int i = 0; i < count; i++)
		free(files[i]);
	free(files);
}

/* What they are, without reading them. Never 0. */
static uint64_t look_of(const struct supervisor *s, struct dirent **files, int count)
{
	uint64_t sum = 0xcbf29ce484222325u;
	char path[AGENT_PATH * 2];
	struct stat st;

	for (int i = 0; i < count; i++) {
		network_folder_path(s, files[i]->d_name, path);
		sum = mix(sum, files[i]->d_name, strlen(files[i]->d_name) + 1);
		if (stat(path, &st))
			continue;
		sum = mix(sum, &st.st_ino, sizeof(st.st_ino));
		sum = mix(sum, &st.st_size, sizeof(st.st_size));
		sum = mix(sum, &st.st_mtim, sizeof(st.st_mtim));
		sum = mix(sum, &st.st_mode, sizeof(st.st_mode));
	}
	return sum | 1;
}

static void refuse(struct network_table *n, const char *file, int64_t ns, const char *text)
{
	struct network_refused *at = &n->refused[n->refused_count];

	log_error("network.refused", "file=\"%s\" text=\"%s\"", file, text);
	if (n->refused_count == AGENT_NETWORKS)
		return;
	n->refused_count++;
	*at = (struct network_refused){.file_ns = ns};
	snprintf(at->file, sizeof(at->file), "%s", file);
	snprintf(at->text, sizeof(at->text), "%s", text);
}

/* --- the table ---------------------------------------------------------------------------- */

/* What the folder's files say. */
struct found {
	bool bad; /* no network; it was said why */
	struct agent_network network;
	struct stat token;
	int64_t ns;
	char file[NAME_MAX + 1];
};

static uint32_t read_files(
	struct supervisor *s, struct dirent **files, int count, struct found *found)
{
	uint32_t n = 0;

	for (int i = 0; i < count; i++) {
		struct found *at = &found[n];
		struct error error = {0};
		char path[AGENT_PATH * 2];
		struct stat st = {0};

		memset(at, 0, sizeof(*at));
		network_folder_path(s, files[i]->d_name, path);
		stat(path, &st);
		at->ns = written_ns(&st);
		snprintf(at->file, sizeof(at->file), "%s", files[i]->d_name);
		if (n == FILES_MOST) {
			refuse(&s->networks, at->file, at->ns, "there are too many files");
			break;
		}
		if (!network_read(&at->network.is, path, &error)) {
			stat(at->network.is.token_file, &at->token);
			if (!token_read_network(&at->network, &error))
				at->network.dropped = 1;
		}
		at->bad = !at->network.dropped;
		if (at->bad)
			refuse(&s->networks, at->file, at->ns, error.text);
		n++;
	}
	return n;
}

static bool is_among(const struct found *found, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (!found[i].bad && !strcmp(found[i].network.is.name, name))
			return true;
	return false;
}

/* A file that cannot be read any more is nobody's wish to leave. */
static bool is_spoilt(const struct found *found, uint32_t count, const char *file)
{
	for (uint32_t i = 0; i < count; i++)
		if (found[i].bad && !strcmp(found[i].file, file))
			return true;
	return false;
}

/* To what there is now. */
enum kinship { SAME, CHANGED, NEW };

static enum kinship kinship_of(
	const struct agent_config *now, const struct agent_network *network)
{
	int i = network_table_find(now, network->is.name);

	if (i < 0 || now->networks[i].leaving_until)
		return NEW;
	return memcmp(&now->networks[i], network, sizeof(*network)) ? CHANGED : SAME;
}

static void add(struct supervisor *s, struct agent_config *next, const struct found *found)
{
	struct error error;

	if (next->network_count == AGENT_NETWORKS) {
		error_set(&error, 0, "more than %d networks", AGENT_NETWORKS);
	} else if (!network_settings_fits(next, next->network_count, &found->network, &error)) {
		next->networks[next->network_count++] = found->network;
		return;
	}
	refuse(&s->networks, found->file, found->ns, error.text);
	/* What it was stays. */
	if (kinship_of(s->config, &found->network) == CHANGED) {
		const struct agent_network *was = &s->config->networks[network_table_find(
			s->config, found->network.is.name)];

		if (was->dropped && next->network_count < AGENT_NETWORKS &&
			!network_settings_fits(next, next->network_count, was, &error))
			next->networks[next->network_count++] = *was;
	}
}

/* The configuration's own, those that are left, and the files'. */
static void make_list(struct supervisor *s, struct agent_config *next,
	const struct found *found, uint32_t count)
{
	const struct agent_config *now = s->config;

	network_settings_strip(next);
	for (uint32_t i = 0; i < now->network_count; i++) {
		struct agent_network network = now->networks[i];

		if ((!network.dropped && !network.leaving_until) ||
			is_among(found, count, network.is.name))
			continue;
		if (!network.leaving_until && !is_spoilt(found, count, s->networks.at[i].file))
			network.leaving_until = wait_now() + now->drain_ms * MS;
		next->networks[next->network_count++] = network;
	}
	/* One that comes takes nothing from those that are there. */
	for (enum kinship kin = SAME; kin <= NEW; kin++)
		for (uint32_t i = 0; i < count; i++)
			if (!found[i].bad && kinship_of(now, &found[i].network) == kin)
				add(s, next, &found[i]);
}

/* Whether its process would have to be told anew what it is. */
static bool other_entry(const struct network *a, const struct network *b)
{
	return strcmp(a->directory, b->directory) || strcmp(a->user, b->user) ||
	       strcmp(a->password_file, b->password_file) || strcmp(a->address, b->address);
}

/* The places of those that stay go along; who has none more is told so. */
static void move_places(struct supervisor *s, const struct agent_config *next,
	const struct found *found, uint32_t count)
{
	static struct network_place places[AGENT_NETWORKS];
	struct agent_config *now = s->config;

	for (uint32_t i = 0; i < next->network_count; i++) {
		const struct agent_network *network = &next->networks[i];
		int was = network_table_find(now, network->is.name);

		places[i] = network_table_place();
		if (was >= 0 && (network->leaving_until ||
					other_entry(&network->is, &now->networks[was].is)))
			network_process_end(s, (uint32_t)was);
		if (was >= 0) {
			places[i] = s->networks.at[was];
			s->networks.at[was] = network_table_place();
		}
		if (places[i].start_at == UINT64_MAX && !places[i].pid &&
			!network->leaving_until)
			places[i].start_at = 0;
		for (uint32_t f = 0; f < count; f++)
			if (!memcmp(&found[f].network, network, sizeof(*network))) {
				strcpy(places[i].file, found[f].file);
				places[i].file_ns = found[f].ns;
				places[i].token = found[f].token;
			}
	}
	for (uint32_t i = 0; i < now->network_count; i++)
		network_process_end(s, i);
	memcpy(s->networks.at, places, next->network_count * sizeof(places[0]));
	memcpy(now->networks, next->networks, sizeof(now->networks));
	now->network_count = next->network_count;
}

static void say_changes(const struct agent_config *now, const struct agent_config *next)
{
	for (uint32_t i = 0; i < next->network_count; i++) {
		const struct agent_network *network = &next->networks[i];
		int was = network_table_find(now, network->is.name);
		bool left = was >= 0 && now->networks[was].leaving_until;

		if (network->leaving_until ? !left : was < 0 || left)
			log_info(network->leaving_until ? "network.leave" : "network.join",
				"network=%s", network->is.name);
	}
}

static void take_files(struct supervisor *s, struct dirent **files, int count)
{
	static struct found found[FILES_MOST + 1];
	static struct agent_config next;
	uint32_t n;

	s->networks.refused_count = 0;
	n = read_files(s, files, count, found);
	next = *s->config;
	make_list(s, &next, found, n);
	say_changes(s->config, &next);
	move_places(s, &next, found, n);
	s->networks.changed = true;
	supervisor_tell_config(s);
}

void network_folder_look(struct supervisor *s)
{
	struct dirent **files;
	uint64_t seen;
	int count;

	if (!s->config->networks_folder[0])
		return;
	count = list_files(s, &files);
	if (count < 0) {
		if (s->networks.seen)
			log_error("networks.folder", "folder=\"%s\" text=\"%s\"",
				s->config->networks_folder, strerror(-count));
		s->networks.seen = 0;
		return;
	}
	seen = look_of(s, files, count);
	if (seen != s->networks.seen) {
		s->networks.seen = seen;
		take_files(s, files, count);
	}
	free_files(files, count);
}

void network_table_look_again(struct supervisor *s)
{
	s->networks.seen = 0;
	s->networks.look_at = s->networks.tokens_at = 0;
}
