/* SPDX-License-Identifier: Apache-2.0
 *
 * A program opens 200 libraries with thread-local memory one after another and uses some of
 *them in between, with the guard preloaded.
 *
 *	thread-local FILE.so
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES 200
#define USED_EACH 5

/* The file's name in this process, of a copy of PATH in memory: a library of its own. */
static int copy_open(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("part", MFD_CLOEXEC);
	struct stat status;

	if (from < 0 || to < 0 || fstat(from, &status) ||
		sendfile(to, from, NULL, (size_t)status.st_size) != status.st_size) {
		perror(path);
		exit(1);
	}
	close(from);
	return to;
}

int main(int argc, char **argv)
{
	int failures = 0;

	for (int i = 0; argc > 1 && i < LIBRARIES; i++) {
		char name[64];
		void *library, *found;
		int (*count)(void);

		snprintf(name, sizeof(name), "/proc/self/fd/%d", copy_open(argv[1]));
		library = dlopen(name, RTLD_NOW);
		found = library ? dlsym(library, "part_count") : NULL;
		if (!found) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		memcpy(&count, &found, sizeof(found));
		if (i % USED_EACH == 0)
			failures += count() != 1 || count() != 2;
	}
	printf("%s: %d libraries with thread-local memory\n", failures ? "fail" : "pass",
		LIBRARIES);
	return failures != 0;
}
