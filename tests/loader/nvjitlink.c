/* SPDX-License-Identifier: Apache-2.0
 *
 * With VCUDA_NVRTC=ptx the guard makes nvJitLink give PTX in place of machine code: of
 * intermediate code what the library makes of it, and the driver, which this program stands
 *for, links that with the rest. What cannot be PTX stays machine code, as all does without the
 * variable.
 *
 *	nvjitlink FILE.so ...
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PTX = 2, LTOIR = 3, FATBIN = 4, LIBRARY = 6, ANY = 10 };

static int failures;

/* ---- The driver ---- */

static struct {
	int has_context, retained, pushed, refuses;
	unsigned long registers;
	char text[400];
} driver;

int cuInit(unsigned int flags);
int cuCtxGetCurrent(void **context);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuLinkCreate_v2(unsigned int count, int *options, void **values, void **state);
int cuLinkAddData_v2(void *state, int type, const void *data, size_t size, const char *name,
	unsigned int count, int *options, void **values);
int cuLinkComplete(void *state, void **code, size_t *size);
int cuLinkDestroy(void *state);

int cuInit(unsigned int flags)
{
	return (int)flags;
}

int cuCtxGetCurrent(void **context)
{
	*context = driver.has_context || driver.pushed ? &driver : NULL;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	driver.retained++;
	*context = &driver;
	return device;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	driver.retained--;
	return device;
}

int cuCtxPushCurrent_v2(void *context)
{
	driver.pushed++;
	return context != &driver;
}

int cuCtxPopCurrent_v2(void **context)
{
	driver.pushed--;
	*context = &driver;
	return 0;
}

int cuLinkCreate_v2(unsigned int count, int *options, void **values, void **state)
{
	driver.registers = count && options[0] == 0 ? (unsigned long)values[0] : 0;
	strcpy(driver.text, "linked");
	*state = &driver;
	return driver.has_context || driver.pushed ? 0 : 201;
}

int cuLinkAddData_v2(void *state, int type, const void *data, size_t size, const char *name,
	unsigned int count, int *options, void **values)
{
	size_t at = strlen(driver.text);

	(void)name, (void)options, (void)values;
	snprintf(driver.text + at, sizeof(driver.text) - at, " %d:%.*s", type, (int)size,
		(const char *)data);
	return state != &driver || count || driver.refuses;
}

int cuLinkComplete(void *state, void **code, size_t *size)
{
	*code = driver.text;
	*size = strlen(driver.text) + 1;
	return state != &driver;
}

int cuLinkDestroy(void *state)
{
	return state != &driver;
}

/* ---- The library ---- */

struct library {
	int (*create)(void **handle, uint32_t count, const char **options);
	int (*destroy)(void **handle);
	int (*add_data)(void *handle, int type, const void *data, size_t n, const char *name);
	int (*add_file)(void *handle, int type, const char *path);
	int (*complete)(void *handle);
	int (*cubin_size)(void *handle, size_t *size);
	int (*cubin)(void *handle, char *code);
	int (*ptx_size)(void *handle, size_t *size);
	int (*ptx)(void *handle, char *text);
};

static void *function(void *from, const char *before, const char *name, const char *behind)
{
	char whole[60];
	void *found;

	snprintf(whole, sizeof(whole), "%snvJitLink%s%s", before, name, behind);
	found = dlsym(from, whole);
	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

static void library_open(
	struct library *library, const char *path, const char *before, const char *behind)
{
	static const char *const names[] = {"Create", "Destroy", "AddData", "AddFile",
		"Complete", "GetLinkedCubinSize", "GetLinkedCubin", "GetLinkedPtxSize",
		"GetLinkedPtx"};
	void *from = dlopen(path, RTLD_NOW), *found[9];

	if (!from) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	for (int i = 0; i < 9; i++)
		found[i] = function(from, before, names[i], behind);
	memcpy(library, found, sizeof(*library));
}

/* ---- Links ---- */

struct one {
	int type;
	const char *data;
};

static void check(const char *what, const char *got, const char *expected)
{
	int right = !strcmp(got, expected);

	failures += !right;
	printf("%s %s: %s\n", right ? "pass " : "fail ", what, got);
	if (!right)
		printf("      expected: %s\n", expected);
}

static void link_it(const struct library *library, const char *what, const char *option,
	const struct one *inputs, const char *expected)
{
	const char *options[3] = {"-arch=sm_80", option, "-maxrregcount=40"};
	char got[400] = "";
	size_t size = 0;
	void *handle;
	int status = library->create(&handle, 3, options);

	for (; inputs->data; inputs++)
		status |= inputs->type < 0
				  ? library->add_file(handle, -inputs->type, inputs->data)
				  : library->add_data(handle, inputs->type, inputs->data,
					    strlen(inputs->data), "input");
	status |= library->complete(handle);
	if (!status && !strcmp(option, "-ptx"))
		status = library->ptx_size(handle, &size) || library->ptx(handle, got);
	else if (!status)
		status = library->cubin_size(handle, &size) || library->cubin(handle, got);
	if (status)
		snprintf(got, sizeof(got), "status %d", status);
	else if (size != strlen(got) + 1)
		snprintf(got, sizeof(got), "size %zu", size);
	status = library->destroy(&handle);
	check(what, got, expected);
	check("nothing of a context is left",
		status || driver.retained || driver.pushed ? "it is" : "right", "right");
}

static void try_all(const struct library *library, int text, const char *file)
{
#define INPUTS(...) ((const struct one[]){__VA_ARGS__, {0, NULL}})
	link_it(library, "two texts", "-g", INPUTS({PTX, "a"}, {PTX, "b"}),
		text ? "linked 1:a 1:b" : "ELF:ab");
	if (text)
		check("the limit of registers", driver.registers == 40 ? "told" : "not",
			"told");
	link_it(library, "intermediate code, one in a container", "-lto",
		INPUTS({LTOIR, "ira"}, {FATBIN, "irb"}),
		text ? "linked 1:ptx(irairb)" : "ELF:irairb");
	link_it(library, "and a text", "-lto", INPUTS({PTX, "c"}, {LTOIR, "ira"}),
		text ? "linked 1:ptx(ira) 1:c" : "ELF:cira");
	link_it(library, "and a container without any", "-lto",
		INPUTS({LTOIR, "ira"}, {LIBRARY, "d"}),
		text ? "linked 1:ptx(ira) 4:d" : "ELF:irad");
	link_it(library, "kinds that the bytes tell", "-lto",
		INPUTS({ANY, "\xed\x43\x4e\x7f i"}, {ANY, "t"}, {ANY, "\x50\xed\x55\xba f"},
			{ANY, "!<arch>\nl"}, {ANY, "\177ELF o"}),
		text ? "linked 1:ptx(\xed\x43\x4e\x7f i) 1:t 2:\x50\xed\x55\xba f 4:!<arch>\nl "
		       "3:\177ELF o"
		     : "ELF:\xed\x43\x4e\x7f it\x50\xed\x55\xba f!<arch>\nl\177ELF o");
	link_it(library, "a file", "-g", INPUTS({-PTX, file}, {PTX, "b"}),
		text ? "linked 1:file 1:b" : "ELF:fileb");
	link_it(library, "PTX that was asked for", "-ptx", INPUTS({LTOIR, "ira"}), "ptx(ira)");
	link_it(library, "what is wrong", "-g", INPUTS({PTX, "wrong"}), "status 3");
	link_it(library, "an index", "-g", INPUTS({7, "x"}), "ELF:x");
	driver.refuses = 1;
	link_it(library, "what the driver refuses", "-g", INPUTS({PTX, "a"}), "ELF:a");
	driver.refuses = 0;
}

int main(int argc, char **argv)
{
	const char *how = getenv("VCUDA_NVRTC");
	char file[] = "/tmp/vcuda-nvjitlink-XXXXXX";
	int text = how && !strcmp(how, "ptx"), descriptor = mkstemp(file);
	FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");

	if (!stream || fputs("file", stream) < 0 || fclose(stream)) {
		perror(file);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		for (driver.has_context = 0; driver.has_context < 2; driver.has_context++) {
			struct library plain, of_release;

			library_open(&plain, argv[i], "", "");
			library_open(&of_release, argv[i], "__", "_12_9");
			try_all(&plain, text, file);
			try_all(&of_release, text, file);
		}
	remove(file);
	return failures != 0;
}
