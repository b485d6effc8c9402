/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a worker reaches, by Landlock: what a driver and its libraries read, the
 * devices, its own folder of compiled kernels, and nothing of other processes.  It is a list of
 * what is allowed, so a token is out of reach wherever it lies but in a folder of libraries.
 *
 * Landlock also keeps processes apart: one that is confined traces, and from ABI 6 signals,
 * only what it started itself, and from ABI 4 it makes no TCP connection.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/sandbox/sandbox.h"

/* Newer than the headers of Debian 12. */
#define FS_TRUNCATE (1ull << 14)
#define FS_IOCTL_DEV (1ull << 15)
#define NET_BIND_TCP (1ull << 0)
#define NET_CONNECT_TCP (1ull << 1)
#define SCOPE_ABSTRACT_UNIX (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)

/* struct landlock_ruleset_attr as of ABI 6; an older kernel takes the front part. */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define WRITE_FILE LANDLOCK_ACCESS_FS_WRITE_FILE
#define READ (READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define DEVICE (READ_FILE | WRITE_FILE | FS_IOCTL_DEV)
#define CACHE                                                                                  \
	(READ | WRITE_FILE | FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG |                       \
		LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define FOLDERS                                                                                \
	(LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER)
/* What a rule for a file may say. */
#define OF_FILES                                                                               \
	(READ_FILE | WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE | FS_TRUNCATE | FS_IOCTL_DEV)

/* Links out of a folder of libraries that are followed. */
#define LINKS_MAX 256

static const struct place {
	const char *pattern;
	uint64_t access;
} places[] = {
	/* The loader's, and where drivers and toolkits are installed. */
	{"/lib*", READ},
	{"/usr", READ},
	{"/etc/ld.so.*", READ},
	{"/opt/cuda*", READ},
	{"/opt/nvidia", READ},
	{"/run/nvidia", READ},
	{"/run/opengl-driver", READ},
	{"/nix/store", READ},
	{"/gnu/store", READ},
	/* What libraries look up about the machine. */
	{"/etc/nvidia", READ},
	{"/etc/localtime", READ_FILE},
	{"/etc/passwd", READ_FILE},
	{"/etc/nsswitch.conf", READ_FILE},
	{"/etc/machine-id", READ_FILE},
	{"/etc/ssl/openssl.cnf", READ_FILE},
	{"/sys/bus", READ},
	{"/sys/class", READ},
	{"/sys/dev", READ},
	{"/sys/devices", READ},
	{"/sys/fs/cgroup", READ},
	{"/sys/kernel/mm", READ},
	{"/sys/module", READ},
	{"/proc/cpuinfo", READ_FILE},
	{"/proc/devices", READ_FILE},
	{"/proc/driver", READ},
	{"/proc/filesystems", READ_FILE},
	{"/proc/meminfo", READ_FILE},
	{"/proc/modules", READ_FILE},
	{"/proc/stat", READ_FILE},
	{"/proc/sys/kernel", READ},
	{"/proc/sys/vm", READ},
	{"/proc/version", READ_FILE},
	{"/proc/self", READ},
	{"/proc/self/task", READ | WRITE_FILE | FS_TRUNCATE}, /* names of threads */
	/* Devices. */
	{"/dev/null", DEVICE},
	{"/dev/zero", DEVICE},
	{"/dev/full", DEVICE},
	{"/dev/random", READ_FILE},
	{"/dev/urandom", READ_FILE},
	{"/dev/nvidia*", DEVICE | READ},
	{"/dev/dxg", DEVICE},
};

/* What NCCL reaches beside: memory that ranks on one machine have in common, networks' devices,
 * and how many connections may wait. */
static const struct place nccl_places[] = {
	{"/dev/shm", CACHE},
	{"/dev/infiniband", DEVICE | READ},
	{"/proc/sys/net", READ},
};

/* What finding a registry by its name reads. */
static const struct place resolver_places[] = {
	{"/etc/gai.conf", READ_FILE},
	{"/etc/host.conf", READ_FILE},
	{"/etc/hosts", READ_FILE},
	{"/etc/resolv.conf", READ_FILE},
	{"/etc/services", READ_FILE},
	{"/run/systemd/resolve", READ},
};

/* When a process that a registry's command names began. What tells more of one (memory,
 * environment, descriptors) the kernel keeps for who may trace it, and a confined process may
 * not.
 */
static const struct place watched_places[] = {
	{"/proc", READ_FILE},
};

struct rules {
	int fd;
	uint64_t handled;
	int links; /* followed so far */
	struct error *error;
};

/* What is not there, or out of reach anyway, needs no rule.  Anything else (no descriptor, no
 * memory) would be a rule that is left out: a worker whose driver fails later, for no reason
 * that anybody can see. */
static int files_missing(const char *path, int code)
{
	(void)path;
	return code == ENOENT || code == ENOTDIR || code == EACCES || code == ELOOP ||
	       code == ENAMETOOLONG;
}

static int files_stops(const char *path, int code)
{
	(void)path;
	return !files_missing(path, code);
}

static void files_failed(struct rules *rules, const char *path, int code)
{
	if (!rules->error->code && !files_missing(path, code))
		error_set(rules->error, code, "sandbox: a rule for %.120s", path);
}

static void files_allow(struct rules *rules, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & rules->handled};
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		files_failed(rules, path, errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_FILES;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		files_failed(rules, path, errno);
	/* A rule holds for an inode, and procfs makes another for the same name once nobody
	 * uses the first: those stay open. */
	if (strncmp(path, "/proc/", 6))
		close(fd);
}

static void files_allow_places(struct rules *rules, const struct place *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		glob_t found = {0};
		int ret = glob(list[i].pattern, 0, files_stops, &found);

		if (ret == GLOB_NOSPACE || ret == GLOB_ABORTED)
			files_failed(
				rules, list[i].pattern, ret == GLOB_NOSPACE ? ENOMEM : errno);
		for (size_t p = 0; !ret && p < found.gl_pathc; p++)
			files_allow(rules, found.gl_pathv[p], list[i].access);
		globfree(&found);
	}
}

static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash && slash != path)
		*slash = 0;
}

/* The folder in which the file really lies. */
static void files_allow_target(struct rules *rules, const char *file)
{
	char real[PATH_MAX];

	if (!realpath(file, real))
		return;
	cut_last(real);
	files_allow(rules, real, READ);
}

/* A link to another library of its folder, as most are: that is allowed, or a link itself. */
static bool files_link_stays(int folder, const char *name)
{
	char target[NAME_MAX + 1];
	ssize_t n = readlinkat(folder, name, target, sizeof(target) - 1);

	if (n <= 0)
		return false;
	target[n] = 0;
	return !strchr(target, '/') && strstr(target, ".so");
}

/* A folder of libraries, those that its links lead to, and of Python's packages
 * (…/nvidia/cudnn/lib) the ones beside it: they find each other by $ORIGIN. */
static void files_allow_libraries(struct rules *rules, const char *folder)
{
	char real[PATH_MAX], path[PATH_MAX + 256];
	struct dirent *entry;
	char *up;
	DIR *dir;

	files_allow(rules, folder, READ);
	if (realpath(folder, real) && (up = strstr(real, "/nvidia/"))) {
		up[strlen("/nvidia")] = 0;
		files_allow(rules, real, READ);
	}
	dir = opendir(folder);
	if (!dir)
		files_failed(rules, folder, errno);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_LNK || !strstr(entry->d_name, ".so") ||
			rules->links >= LINKS_MAX ||
			files_link_stays(dirfd(dir), entry->d_name))
			continue;
		rules->links++;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		files_allow_target(rules, path);
	}
	if (dir)
		closedir(dir);
}

/* Folders and files, ':' between. */
static void files_allow_list(struct rules *rules, const char *entries)
{
	char *copy = strdup(entries), *rest = copy, *entry;
	struct stat st;

	if (!copy)
		files_failed(rules, entries, ENOMEM);
	while (copy && (entry = strsep(&rest, ":"))) {
		if (*entry != '/' || stat(entry, &st))
			continue;
		if (!S_ISDIR(st.st_mode)) {
			files_allow_target(rules, entry);
			cut_last(entry);
		}
		files_allow_libraries(rules, entry);
	}
	free(copy);
}

static void files_allow_configured(struct rules *rules, const struct agent_config *config)
{
	const char *path = getenv("LD_LIBRARY_PATH");
	char own[PATH_MAX] = "";

	for (int i = 0; i < AGENT_LIBRARIES; i++)
		files_allow_list(rules, config->libraries[i]);
	files_allow_list(rules, config->library_path);
	files_allow_list(rules, path ? path : "");
	files_allow_list(rules, config->driver_path);
	/* What came with this program, and where the loader looks for it (RUNPATH). */
	if (readlink("/proc/self/exe", own, sizeof(own) - 16) > 0) {
		cut_last(own);
		strcat(own, "/../lib");
		files_allow_libraries(rules, own);
		strcat(own, "/deps");
		files_allow_libraries(rules, own);
	}
}

static void files_allow_compiled(struct rules *rules, const struct agent_config *config)
{
	char own[PATH_MAX];

	if (compiled_folder(config, own))
		files_allow(rules, own, CACHE | FOLDERS);
}

/* The file is replaced, often by a link to another folder's, and read again: so its folder. */
static void files_allow_password(struct rules *rules, const struct agent_config *config)
{
	char path[AGENT_PATH];

	if (!config->store.registry_password_file[0])
		return;
	snprintf(path, sizeof(path), "%s", config->store.registry_password_file);
	cut_last(path);
	files_allow(rules, path, READ);
}

/* A set of rules that allows nothing, and connections where DIALS, memory and names in common
 * where SHARES. 0, or -errno where this kernel cannot. */
static int files_begin(struct rules *rules, bool dials, bool shares)
{
	struct ruleset set = {.fs = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1};
	long abi =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	size_t bytes = sizeof(set.fs);

	if (abi < 1)
		return -errno;
	if (SANDBOX_SANITIZER) /* the symbolizer */
		set.fs &= ~LANDLOCK_ACCESS_FS_EXECUTE;
	if (abi >= 2)
		set.fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		set.fs |= FS_TRUNCATE;
	if (abi >= 4 && !shares) {
		set.net = NET_BIND_TCP | (dials ? 0 : NET_CONNECT_TCP);
		bytes = sizeof(set.fs) + sizeof(set.net);
	}
	if (abi >= 5)
		set.fs |= FS_IOCTL_DEV;
	if (abi >= 6) {
		set.scoped = SCOPE_SIGNAL | (shares ? 0 : SCOPE_ABSTRACT_UNIX);
		bytes = sizeof(set);
	}
	rules->fd = (int)syscall(SYS_landlock_create_ruleset, &set, bytes, 0);
	if (rules->fd < 0)
		return -errno;
	rules->handled = set.fs;
	files_allow_places(rules, places, sizeof(places) / sizeof(places[0]));
	return 0;
}

static int files_end(struct rules *rules)
{
	int ret = rules->error->code ? -rules->error->code : 0;

	if (!ret && syscall(SYS_landlock_restrict_self, rules->fd, 0))
		ret = -errno;
	close(rules->fd);
	return ret;
}

int sandbox_files(const struct agent_config *config, struct error *error)
{
	const bool nccl = config->nccl.allowed;
	struct rules rules = {.error = error};
	int ret = files_begin(&rules, nccl, nccl);

	if (ret)
		return ret;
	if (nccl)
		files_allow_places(
			&rules, nccl_places, sizeof(nccl_places) / sizeof(nccl_places[0]));
	files_allow_configured(&rules, config);
	files_allow_compiled(&rules, config);
	return files_end(&rules);
}

/* An agent-directory, which has a registry too, has no memory and takes no commands. */
bool sandbox_store_watches(const struct agent_config *config)
{
	return config->store.registry[0] && config->store.bytes;
}

int sandbox_files_store(const struct agent_config *config, struct error *error)
{
	const bool dials = !strncmp(config->store.registry, "tcp://", 6);
	struct rules rules = {.error = error};
	int ret = files_begin(&rules, dials, false);

	if (ret)
		return ret;
	if (dials)
		files_allow_places(&rules, resolver_places,
			sizeof(resolver_places) / sizeof(resolver_places[0]));
	if (sandbox_store_watches(config))
		files_allow_places(&rules, watched_places,
			sizeof(watched_places) / sizeof(watched_places[0]));
	files_allow_configured(&rules, config);
	files_allow_password(&rules, config);
	return files_end(&rules);
}

int sandbox_files_none(struct error *error)
{
	struct rules rules = {.error = error};
	int ret = files_begin(&rules, false, false);

	return ret ? ret : files_end(&rules);
}
