/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/install.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/error.h"

#define LIST_FILE "preload.list"    /* in FROM: the names of what is preloaded, a line each */
#define LINE_FILE "preload"	    /* in TO: the same as LD_PRELOAD wants it */
#define SYSTEM_FILE "ld.so.preload" /* in TO: for who mounts it over /etc/ld.so.preload */
#define MOUNTED "/lib/vcuda"	    /* where programs see TO */
#define LINE_MAX_BYTES 16384

static const char usage[] = "vcuda-client install FROM TO [LINE]\n"
			    "\n"
			    "  Copies every file and link of the folder FROM and of the "
			    "folders in it into TO, each\n"
			    "  under a temporary name first. TO/" LINE_FILE
			    " gets what LD_PRELOAD has to be where TO is mounted at\n"
			    "  " MOUNTED ", as FROM/" LIST_FILE " says; TO/" SYSTEM_FILE
			    " gets LINE, or the same.\n";

struct install {
	int from, to;
	bool within; /* they are a folder of FROM and one of TO */
	unsigned files;
	uint64_t bytes;
	struct error *error;
};

static int fail(struct install *install, int code, const char *name)
{
	return error_set(install->error, code, "install: %s", name);
}

/* The file takes its name, over what had it. */
static int publish(struct install *install, const char *temporary, const char *name)
{
	int code;

	if (!renameat(install->to, temporary, install->to, name))
		return 0;
	code = errno;
	unlinkat(install->to, temporary, 0);
	return fail(install, code, name);
}

static int open_new(struct install *install, const char *temporary)
{
	unlinkat(install->to, temporary, 0); /* of one that was killed */
	return openat(install->to, temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t wrote = write(fd, bytes, n);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return wrote ? -errno : -EIO;
		bytes += wrote;
		n -= (size_t)wrote;
	}
	return 0;
}

/* Every container may run as another user: what is there is for all to read. */
static int copy_file(
	struct install *install, const char *name, const char *temporary, mode_t mode)
{
	cleanup_close int from = openat(install->from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	cleanup_close int to = open_new(install, temporary);
	static char bytes[128 * 1024];
	ssize_t n = -1;
	int ret = 0;

	if (from < 0 || to < 0)
		return fail(install, errno, name);
	while (!ret && (n = read(from, bytes, sizeof(bytes))) > 0) {
		ret = write_all(to, bytes, (size_t)n);
		install->bytes += (uint64_t)n;
	}
	if (!ret && (n < 0 || fchmod(to, mode & S_IXUSR ? 0755 : 0644)))
		ret = -errno;
	if (ret < 0) {
		unlinkat(install->to, temporary, 0);
		return fail(install, -ret, name);
	}
	return publish(install, temporary, name);
}

static int copy_link(struct install *install, const char *name, const char *temporary)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(install->from, name, target, sizeof(target) - 1);

	if (n < 0)
		return fail(install, errno, name);
	target[n] = 0;
	unlinkat(install->to, temporary, 0);
	if (symlinkat(target, install->to, temporary))
		return fail(install, errno, name);
	return publish(install, temporary, name);
}

static int copy_folder(struct install *install, const char *name);

static int copy_entry(struct install *install, const char *name)
{
	char temporary[NAME_MAX + 8];
	struct stat st;

	if (fstatat(install->from, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail(install, errno, name);
	if (strlen(name) > NAME_MAX - 6)
		return fail(install, ENAMETOOLONG, name);
	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	if (S_ISDIR(st.st_mode))
		return install->within ? 0 : copy_folder(install, name);
	install->files++;
	if (S_ISLNK(st.st_mode))
		return copy_link(install, name, temporary);
	if (S_ISREG(st.st_mode))
		return copy_file(install, name, temporary, st.st_mode);
	return error_set(install->error, 0, "install: %s is no file", name);
}

static int copy_entries(struct install *install)
{
	DIR *folder = fdopendir(dup(install->from));
	struct dirent *entry;
	int ret = 0;

	if (!folder)
		return fail(install, errno, "FROM");
	while (!ret && (entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			ret = copy_entry(install, entry->d_name);
	closedir(folder);
	return ret;
}

static int copy_folder(struct install *install, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	cleanup_close int from = openat(install->from, name, flags), to = -1;
	struct install within = *install;
	int ret;

	if (from < 0 || (mkdirat(install->to, name, 0755) && errno != EEXIST))
		return fail(install, errno, name);
	to = openat(install->to, name, flags);
	if (to < 0 || fchmod(to, 0755))
		return fail(install, errno, name);
	within.from = from;
	within.to = to;
	within.within = true;
	ret = copy_entries(&within);
	install->files = within.files;
	install->bytes = within.bytes;
	return ret;
}

static int write_line(
	struct install *install, const char *name, const char *temporary, const char *line)
{
	cleanup_close int to = open_new(install, temporary);
	int ret;

	if (to < 0)
		return fail(install, errno, name);
	ret = write_all(to, line, strlen(line));
	if (!ret)
		ret = write_all(to, "\n", 1);
	if (ret < 0 || fchmod(to, 0644))
		return fail(install, ret < 0 ? -ret : errno, name);
	return publish(install, temporary, name);
}

/* The names of FROM/preload.list as one line of paths; "" where the list is not there. */
static int read_line(struct install *install, char line[LINE_MAX_BYTES])
{
	cleanup_close int fd = openat(install->from, LIST_FILE, O_RDONLY | O_CLOEXEC);
	char names[LINE_MAX_BYTES / 2], *rest = names, *name;
	size_t at = 0;
	ssize_t n;

	line[0] = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : fail(install, errno, LIST_FILE);
	n = read(fd, names, sizeof(names));
	if (n < 0 || n == (ssize_t)sizeof(names))
		return fail(install, n < 0 ? errno : EFBIG, LIST_FILE);
	names[n] = 0;
	while ((name = strsep(&rest, "\n"))) {
		int used = *name ? snprintf(line + at, LINE_MAX_BYTES - at, "%s" MOUNTED "/%s",
					   at ? ":" : "", name)
				 : 0;

		if (used < 0 || (size_t)used >= LINE_MAX_BYTES - at)
			return fail(install, ENAMETOOLONG, LIST_FILE);
		at += (size_t)used;
	}
	return 0;
}

static int install_all(struct install *install, const char *line)
{
	char found[LINE_MAX_BYTES];
	int ret = copy_entries(install);

	if (!ret)
		ret = read_line(install, found);
	if (!ret && found[0])
		ret = write_line(install, LINE_FILE, "." LINE_FILE ".new", found);
	line = line ? line : found;
	if (!ret && line[0])
		ret = write_line(install, SYSTEM_FILE, "." SYSTEM_FILE ".new", line);
	return ret;
}

int install_main(int argc, char **argv)
{
	struct error error;
	struct install install = {.from = -1, .to = -1, .error = &error};
	int ret = 0;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 3 || argc > 4) {
		fputs(usage, stderr);
		return 2;
	}
	install.from = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (install.from < 0)
		ret = fail(&install, errno, argv[1]);
	if (!ret && mkdir(argv[2], 0755) && errno != EEXIST)
		ret = fail(&install, errno, argv[2]);
	if (!ret) {
		install.to = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (install.to < 0)
			ret = fail(&install, errno, argv[2]);
	}
	if (!ret)
		ret = install_all(&install, argc > 3 ? argv[3] : NULL);
	if (install.from >= 0)
		close(install.from);
	if (install.to >= 0)
		close(install.to);
	if (ret < 0) {
		fprintf(stderr, "vcuda-client: %s\n", error.text);
		return 1;
	}
	printf("vcuda-client: %u files, %.1f MiB in %s\n", install.files,
		(double)install.bytes / 1048576, argv[2]);
	return 0;
}
