/* SPDX-License-Identifier: Apache-2.0
 *
 * With VCUDA_NVRTC=ptx the guard makes NVRTC give the text of a program in place of machine
 *code, whatever the rest of its file name is, opened or there from the start, and without it
 *nothing changes.
 *
 *	nvrtc FILE.so ...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void check(const char *file, const char *what, int right)
{
	failures += !right;
	printf("%s %s: %s\n", right ? "pass " : "fail ", file, what);
}

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

int main(int argc, char **argv)
{
	const char *how = getenv("VCUDA_NVRTC");
	int text = how && !strcmp(how, "ptx");

	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		int (*get_size)(const void *, size_t *);
		int (*get)(const void *, char *);
		void *found;
		size_t size = 0;
		char code[16] = "";

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		found = function(library, "nvrtcGetCUBINSize");
		memcpy(&get_size, &found, sizeof(found));
		found = function(library, "nvrtcGetCUBIN");
		memcpy(&get, &found, sizeof(found));
		check(argv[i], "the size", !get_size(argv, &size) && size == (text ? 5 : 9));
		check(argv[i], text ? "the text" : "the machine code",
			!get(argv, code) && !memcmp(code, text ? "text" : "\177ELFcode", size));
		check(argv[i], "an error", get(NULL, code) == 4);
	}
	return failures != 0;
}
