/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/cache/compiled.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/folder.h"
#include "common/log.h"
#include "gpu-agent/cache/tenant_folder.h"

#define FOLDERS_DEEP 6 /* the driver's are two */
#define OWN "agent-XXXXXX"
#define GIVEN ".given" /* in a worker's folder: all is there that it gets */
#define GIVEN_US 200000
#define GIVEN_STEP_US 1000

static int lock_fd = -1;

/* What a walk has met so far. */
struct amount {
	uint64_t bytes;
	uint32_t files;
	uid_t user; /* whose copies are to be */
	gid_t group;
};

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* For a name in a folder whose descriptor is used up by it. */
static DIR *list(int folder)
{
	int fd = open_folder(folder, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* What is ours among the driver's files. */
static bool is_hidden(const char *name)
{
	return name[0] == '.';
}

/* --- removing ----------------------------------------------------------------------------- */

static void remove_in(int at, const char *name, unsigned deep)
{
	cleanup_close int folder = open_folder(at, name);
	struct dirent *entry;
	DIR *dir = folder < 0 ? NULL : list(folder);

	while (dir && (entry = readdir(dir))) {
		if (is_dots(entry->d_name))
			continue;
		if (unlinkat(folder, entry->d_name, 0) && errno == EISDIR &&
			deep < FOLDERS_DEEP)
			remove_in(folder, entry->d_name, deep + 1);
	}
	if (dir)
		closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

/* --- copying ------------------------------------------------------------------------------ */

static int copy_bytes(int from, int to, uint64_t left)
{
	while (left) {
		char bytes[1 << 16];
		ssize_t n = read(from, bytes, left < sizeof(bytes) ? left : sizeof(bytes));

		if (n <= 0 || write(to, bytes, (size_t)n) != n)
			return -EIO;
		left -= (uint64_t)n;
	}
	return 0;
}

/* A plain file that nothing else names, under its name only when it is whole, and never in the
 * place of one that is there. */
static void copy_file(int from, int to, const char *name, struct amount *amount)
{
	cleanup_close int in =
		openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (in < 0 || fstat(in, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
		st.st_size < 0 || amount->bytes + (uint64_t)st.st_size > COMPILED_BYTES_MAX ||
		++amount->files > COMPILED_FILES_MAX)
		return;
	amount->bytes += (uint64_t)st.st_size;
	cleanup_close int out =
		openat(to, ".part", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return;
	if (!copy_bytes(in, out, (uint64_t)st.st_size) &&
		!fchown(out, amount->user, amount->group))
		renameat2(to, ".part", to, name, RENAME_NOREPLACE);
	unlinkat(to, ".part", 0);
}

/* Folders before files: the index, which the driver reads first, lies at the top. */
static void copy_all(int from, int to, struct amount *amount, unsigned deep)
{
	struct dirent *entry;
	DIR *dir = list(from);

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		cleanup_close int in = -1, out = -1;

		if (is_hidden(entry->d_name) || deep == FOLDERS_DEEP)
			continue;
		in = open_folder(from, entry->d_name);
		if (in < 0 || (mkdirat(to, entry->d_name, 0700) && errno != EEXIST))
			continue;
		out = open_folder(to, entry->d_name);
		if (out >= 0 && !fchown(out, amount->user, amount->group))
			copy_all(in, out, amount, deep + 1);
	}
	rewinddir(dir);
	while ((entry = readdir(dir)))
		if (!is_hidden(entry->d_name))
			copy_file(from, to, entry->d_name, amount);
	closedir(dir);
}

static void weigh(int at, const char *name, struct amount *amount, unsigned deep)
{
	cleanup_close int folder = open_folder(at, name);
	struct dirent *entry;
	DIR *dir = folder < 0 ? NULL : list(folder);
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (is_hidden(entry->d_name) ||
			fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && deep < FOLDERS_DEEP) {
			weigh(folder, entry->d_name, amount, deep + 1);
			continue;
		}
		amount->bytes += (uint64_t)st.st_size;
		amount->files++;
	}
	if (dir)
		closedir(dir);
}

/* --- the supervisor ----------------------------------------------------------------------- */

static int open_root(const struct agent_config *config)
{
	char path[AGENT_PATH + 32];

	snprintf(path, sizeof(path), "%s.compiled/kept", config->cache_dir);
	if (folder_make(path))
		return -1;
	*strrchr(path, '/') = 0;
	return open_folder(AT_FDCWD, path);
}

static int lock_of(int root, const char *agent)
{
	cleanup_close int folder = open_folder(root, agent);

	return folder < 0 ? -1
			  : openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				    0600);
}

/* Folders of agents that no longer hold their lock. */
static void remove_waste(int root)
{
	struct dirent *entry;
	DIR *dir = list(root);

	while (dir && (entry = readdir(dir))) {
		cleanup_close int lock = -1;

		if (strncmp(entry->d_name, OWN, strlen("agent-")))
			continue;
		lock = lock_of(root, entry->d_name);
		if (lock >= 0 && !flock(lock, LOCK_EX | LOCK_NB))
			remove_in(root, entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Workers of other users get to their folders, which are their own; the lists stay ours. */
#define FOR_OTHERS 0711

static bool opened_for_others(const struct agent_config *config)
{
	char path[sizeof(config->compiled)];
	struct stat st;
	char *slash;

	memcpy(path, config->compiled, sizeof(path));
	if (chmod(path, FOR_OTHERS)) {
		log_warn("compiled.off", "folder=%s error=\"%s\"", path, strerror(errno));
		return false;
	}
	while ((slash = strrchr(path, '/')) && slash != path) {
		*slash = 0;
		if (stat(path, &st) || st.st_mode & S_IXOTH)
			continue;
		log_warn("compiled.off",
			"folder=%s text=\"worker_users: others must be able to pass it: chmod "
			"o+x\"",
			path);
		return false;
	}
	return true;
}

void compiled_open(struct agent_config *config)
{
	cleanup_close int root = -1;
	const char *agent;

	if (config->driver == DRIVER_SOFTWARE)
		return; /* it compiles nothing for later */
	if (strlen(config->cache_dir) + sizeof(".compiled/" OWN) >= sizeof(config->compiled))
		return;
	root = open_root(config);
	if (root >= 0) {
		remove_waste(root);
		if (config->user_first && fchmod(root, FOR_OTHERS))
			log_warn("compiled.off", "error=\"%s\"", strerror(errno));
		snprintf(config->compiled, sizeof(config->compiled), "%s.compiled/" OWN,
			config->cache_dir);
	}
	if (root < 0 || !mkdtemp(config->compiled)) {
		log_warn("compiled.off", "cache_dir=%s error=\"%s\"", config->cache_dir,
			strerror(errno));
		config->compiled[0] = 0;
		return;
	}
	if (config->user_first && !opened_for_others(config)) {
		compiled_close(config);
		config->compiled[0] = 0;
		return;
	}
	agent = strrchr(config->compiled, '/') + 1;
	lock_fd = lock_of(root, agent);
	if (lock_fd >= 0)
		flock(lock_fd, LOCK_EX | LOCK_NB);
}

void compiled_close(const struct agent_config *config)
{
	if (config->compiled[0])
		remove_in(AT_FDCWD, config->compiled, 0);
}

int compiled_lock(void)
{
	return lock_fd;
}

void compiled_take(int lock)
{
	lock_fd = lock;
}

static int open_kept(const struct agent_config *config)
{
	cleanup_close int root = open_root(config);

	return root < 0 ? -1 : open_folder(root, "kept");
}

void compiled_begin(const struct agent_config *config, pid_t worker, const char *tenant)
{
	cleanup_close int kept = -1, from = -1, own = -1, to = -1;
	struct amount amount = {0};
	char name[TENANT_FOLDER], pid[16];
	struct stat st;

	if (!config->compiled[0] || !*tenant)
		return;
	snprintf(pid, sizeof(pid), "%d", worker);
	tenant_folder(name, tenant);
	kept = open_kept(config);
	own = open_folder(AT_FDCWD, config->compiled);
	if (kept < 0 || own < 0)
		return;
	from = open_folder(kept, name);
	to = open_folder(own, pid);
	if (from >= 0 && to >= 0 && !fstat(to, &st)) {
		amount.user = st.st_uid;
		amount.group = st.st_gid;
		copy_all(from, to, &amount, 0);
	}
	if (from >= 0)
		futimens(from, NULL); /* used now: the oldest go first */
	if (to >= 0) {
		int given = openat(
			to, GIVEN, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (given >= 0)
			close(given);
	}
}

/* Drops the tenants that were here longest ago, where there are too many. */
static void trim(int kept)
{
	for (;;) {
		struct dirent *entry;
		DIR *dir = list(kept);
		char oldest[64] = "";
		time_t when = 0;
		unsigned count = 0;
		struct stat st;

		while (dir && (entry = readdir(dir))) {
			if (is_dots(entry->d_name) ||
				fstatat(kept, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			count++;
			if (!oldest[0] || st.st_mtim.tv_sec < when) {
				when = st.st_mtim.tv_sec;
				snprintf(oldest, sizeof(oldest), "%.63s", entry->d_name);
			}
		}
		if (dir)
			closedir(dir);
		if (count <= COMPILED_TENANTS)
			return;
		remove_in(kept, oldest, 0);
	}
}

/* It takes the place of what the tenant had, where it has more. */
static void keep(int kept, int own, const char *pid, const char *tenant)
{
	struct amount now = {0}, before = {0};
	char name[TENANT_FOLDER], old[40];

	tenant_folder(name, tenant);
	weigh(own, pid, &now, 0);
	weigh(kept, name, &before, 0);
	if (now.files <= before.files || now.bytes > COMPILED_BYTES_MAX ||
		now.files > COMPILED_FILES_MAX)
		return;
	snprintf(old, sizeof(old), "%s.old", name);
	remove_in(kept, old, 0);
	renameat(kept, name, kept, old);
	renameat(own, pid, kept, name);
	remove_in(kept, old, 0);
	trim(kept);
}

void compiled_end(const struct agent_config *config, pid_t worker, const char *tenant)
{
	cleanup_close int own = -1, kept = -1;
	char pid[16];

	if (!config->compiled[0])
		return;
	snprintf(pid, sizeof(pid), "%d", worker);
	own = open_folder(AT_FDCWD, config->compiled);
	kept = open_kept(config);
	if (own >= 0 && kept >= 0 && *tenant)
		keep(kept, own, pid, tenant);
	if (own >= 0)
		remove_in(own, pid, 0);
}

/* --- the worker --------------------------------------------------------------------------- */

bool compiled_folder(const struct agent_config *config, char path[AGENT_PATH + 32])
{
	snprintf(path, AGENT_PATH + 32, "%s/%d", config->compiled, getpid());
	return config->compiled[0];
}

void compiled_enter(const struct agent_config *config)
{
	char path[AGENT_PATH + 32], bytes[24];

	if (!compiled_folder(config, path) || mkdir(path, 0700))
		return;
	if (config->worker_user && chown(path, config->worker_user, config->worker_user))
		return;
	snprintf(bytes, sizeof(bytes), "%llu", COMPILED_BYTES);
	setenv("CUDA_CACHE_PATH", path, 1);
	setenv("CUDA_CACHE_MAXSIZE", bytes, 1);
	setenv("CUDA_CACHE_DISABLE", "0", 1);
}

void compiled_leave(void)
{
	setenv("CUDA_CACHE_DISABLE", "1", 1);
}

/* The session has begun, and its tenant's kernels are on their way: 0.3 ms where there are
 * none, a few milliseconds else. */
void compiled_wait(const struct agent_config *config)
{
	char path[AGENT_PATH + 32 + sizeof(GIVEN)];
	const char *off = getenv("CUDA_CACHE_DISABLE");

	if (!compiled_folder(config, path) || !off || strcmp(off, "0"))
		return;
	strcat(path, "/" GIVEN);
	for (unsigned us = 0, step = 50; us < GIVEN_US && access(path, F_OK); us += step) {
		usleep(step);
		step = step < GIVEN_STEP_US / 2 ? step * 2 : GIVEN_STEP_US;
	}
}
