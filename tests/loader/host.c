/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the library named on the command line twice, by its absolute path, and asks it for the
 * devices; opens NVIDIA's originals by paths that do not exist. Run with the guard preloaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int right, const char *what)
{
	printf("%s  %s\n", right ? "pass" : "fail", what);
	failures += !right;
}

static int ask(void *library, const char *name)
{
	int (*function)(void) = NULL;
	void *found = dlsym(library, name);

	memcpy(&function, &found, sizeof(function));
	return function ? function() : -1;
}

/* cudaRuntimeGetVersion of a library opened by name. */
static int version(const char *path)
{
	int (*function)(int *) = NULL, number = 0;
	void *library = dlopen(path, RTLD_LAZY);
	void *found = library ? dlsym(library, "cudaRuntimeGetVersion") : NULL;

	memcpy(&function, &found, sizeof(function));
	return function && !function(&number) ? number : -1;
}

static int opens(const char *path)
{
	return dlopen(path, RTLD_LAZY) != NULL;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (int round = 0; round < 2; round++) {
		void *library = dlopen(argv[1], RTLD_NOW);

		check(library != NULL, "the library opens");
		if (!library)
			return 1;
		check(ask(library, "plugin_devices") == 1, "its runtime is ours");
		check(ask(library, "plugin_registered") == 1,
			"what it had registered is known");
		check(dlclose(library) == 0, "it closes");
	}
	check(version("libcudart.so.12") == 12090, "12 by its name");
	check(version("libcudart.so.13") == 13000, "13 by its name");
	check(version("/opt/nowhere/libcudart.so.12") == 12090, "12 by a path");
	check(version("/opt/nowhere/libcudart.so.13.0.96") == 13000,
		"13 by a path with a version");
	check(!opens("/opt/nowhere/libcudart.so.11"), "one that we do not stand in for");
	check(!opens("/opt/nowhere/libfoo.so.12"), "one that is nobody's");
	check(dlerror() != NULL, "dlerror says why");
	check(opens("libc.so.6"), "a plain name");
	printf("%d failed\n", failures);
	return failures != 0;
}
