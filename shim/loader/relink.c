/* SPDX-License-Identifier: Apache-2.0
 *
 * nvJitLink gives PTX for inputs with intermediate code (LTO-IR) only, where it is told -ptx,
 * and leaves declared what they lack. The rest the driver links.
 */
#include "shim/loader/relink.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvJitLinkInputType, and what of CUjitInputType and CUjit_option the driver is told. */
enum {
	INPUT_PTX = 2,
	INPUT_LTOIR = 3,
	INPUT_FATBIN = 4,
	INPUT_OBJECT = 5,
	INPUT_LIBRARY = 6,
	INPUT_ANY = 10
};
enum { DRIVER_PTX = 1, DRIVER_FATBIN = 2, DRIVER_OBJECT = 3, DRIVER_LIBRARY = 4 };
enum { DRIVER_MAX_REGISTERS = 0 };

struct input {
	struct input *next;
	int type;
	size_t size;
	unsigned char bytes[];
};

struct relink {
	struct input *inputs, **end;
	char *text;
	size_t text_size;
	bool intermediate; /* -lto */
	bool lost;	   /* an input is missing here, or is none that becomes PTX */
	uint32_t count;
	char *options[]; /* the program's, and -ptx */
};

struct relink *relink_new(uint32_t count, const char *const *options)
{
	static char ptx[] = "-ptx";
	struct relink *link = calloc(1, sizeof(*link) + (count + 1ul) * sizeof(char *));

	if (!link)
		return NULL;
	link->end = &link->inputs;
	for (uint32_t i = 0; i < count; i++) {
		link->options[i] = options[i] ? strdup(options[i]) : NULL;
		if (!link->options[i] || !strcmp(options[i], ptx)) {
			link->count = i + 1;
			relink_free(link);
			return NULL;
		}
		link->intermediate |= !strcmp(options[i], "-lto");
	}
	link->options[count] = ptx;
	link->count = count;
	return link;
}

void relink_free(struct relink *link)
{
	if (!link)
		return;
	for (struct input *input = link->inputs, *next; input; input = next) {
		next = input->next;
		free(input);
	}
	for (uint32_t i = 0; i < link->count; i++)
		free(link->options[i]);
	free(link->text);
	free(link);
}

/* What an input is whose bytes are to tell. */
static int kind(const unsigned char *bytes, size_t size)
{
	static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
	static const unsigned char ltoir[] = {0xed, 0x43, 0x4e, 0x7f};
	static const char library[] = "!<arch>\n";

	if (size >= sizeof(fatbin) && !memcmp(bytes, fatbin, sizeof(fatbin)))
		return INPUT_FATBIN;
	if (size >= sizeof(ltoir) && !memcmp(bytes, ltoir, sizeof(ltoir)))
		return INPUT_LTOIR;
	if (size >= SELFMAG && !memcmp(bytes, ELFMAG, SELFMAG))
		return INPUT_OBJECT;
	return size > strlen(library) && !memcmp(bytes, library, strlen(library))
		       ? INPUT_LIBRARY
		       : INPUT_PTX;
}

/* Room for an input of that size, at the end of the list; NULL: the link is lost. */
static struct input *input_new(struct relink *link, int type, size_t size)
{
	struct input *input = NULL;

	if (((type >= INPUT_PTX && type <= INPUT_LIBRARY) || type == INPUT_ANY) &&
		size < SIZE_MAX - sizeof(*input))
		input = malloc(sizeof(*input) + size);
	if (!input) {
		link->lost = true;
		return NULL;
	}
	*input = (struct input){.type = type, .size = size};
	*link->end = input;
	link->end = &input->next;
	return input;
}

void relink_add_data(struct relink *link, int type, const void *data, size_t size)
{
	struct input *input = input_new(link, type, size);

	if (!input)
		return;
	memcpy(input->bytes, data, size);
	if (type == INPUT_ANY)
		input->type = kind(input->bytes, size);
}

void relink_add_file(struct relink *link, int type, const char *path)
{
	FILE *file = fopen(path, "rbe");
	struct input *input;
	long size;

	link->lost |= !file;
	if (!file)
		return;
	size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
	input = size < 0 ? NULL : input_new(link, type, (size_t)size);
	rewind(file);
	if (!input || fread(input->bytes, 1, input->size, file) != input->size)
		link->lost = true;
	else if (type == INPUT_ANY)
		input->type = kind(input->bytes, input->size);
	fclose(file);
}

/* ---- Intermediate code, by the library ---- */

static bool may_be_intermediate(const struct input *input, bool containers)
{
	return input->type == INPUT_LTOIR || (containers && input->type != INPUT_PTX);
}

/* The PTX of the inputs with intermediate code; CONTAINERS: of fat binaries, objects and
 * libraries too. NULL: the library does not make it. */
static char *intermediate_text(
	const struct relink *link, const struct nvjitlink *library, bool containers)
{
	const char **options = (const char **)(uintptr_t)link->options;
	char *text = NULL;
	void *handle;
	size_t size;
	bool right = true;

	if (library->create(&handle, link->count + 1, options))
		return NULL;
	for (const struct input *i = link->inputs; i && right; i = i->next)
		if (may_be_intermediate(i, containers))
			right = !library->add_data(handle, i->type, i->bytes, i->size, "input");
	if (right && !library->complete(handle) && !library->ptx_size(handle, &size))
		text = malloc(size + 1);
	if (text && library->ptx(handle, text)) {
		free(text);
		text = NULL;
	}
	if (text)
		text[size] = 0;
	library->destroy(&handle);
	return text;
}

/* ---- The rest, by the driver ---- */

struct driver {
	int (*init)(unsigned int flags);
	int (*context)(void **context);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*create)(unsigned int count, int *options, void **values, void **state);
	int (*add)(void *state, int type, const void *data, size_t size, const char *name,
		unsigned int count, int *options, void **values);
	int (*complete)(void *state, void **code, size_t *size);
	int (*destroy)(void *state);
};

static bool driver_find(struct driver *driver)
{
	static const char *const names[] = {"cuInit", "cuCtxGetCurrent",
		"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
		"cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuLinkCreate_v2",
		"cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"};
	void *found[sizeof(names) / sizeof(*names)];

	_Static_assert(sizeof(found) == sizeof(*driver), "a pointer for each name");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!(found[i] = dlsym(RTLD_DEFAULT, names[i])))
			return false;
	memcpy(driver, found, sizeof(found));
	return true;
}

static unsigned long max_registers(const struct relink *link)
{
	static const char option[] = "-maxrregcount=";

	for (uint32_t i = 0; i < link->count; i++)
		if (!strncmp(link->options[i], option, sizeof(option) - 1))
			return strtoul(link->options[i] + sizeof(option) - 1, NULL, 10);
	return 0;
}

/* FIRST: the text of the intermediate code, NULL where there is none; CONTAINERS: it has that
 * of all inputs but PTX. */
static bool add_inputs(const struct relink *link, const struct driver *driver, void *state,
	const char *first, bool containers)
{
	static const int types[] = {[INPUT_PTX] = DRIVER_PTX,
		[INPUT_FATBIN] = DRIVER_FATBIN,
		[INPUT_OBJECT] = DRIVER_OBJECT,
		[INPUT_LIBRARY] = DRIVER_LIBRARY};

	if (first &&
		driver->add(state, DRIVER_PTX, first, strlen(first) + 1, "", 0, NULL, NULL))
		return false;
	for (const struct input *i = link->inputs; i; i = i->next)
		if (!(first && may_be_intermediate(i, containers)) &&
			(i->type == INPUT_LTOIR || driver->add(state, types[i->type], i->bytes,
							   i->size, "", 0, NULL, NULL)))
			return false;
	return true;
}

static void driver_link(
	struct relink *link, const struct driver *driver, const char *first, bool containers)
{
	int option = DRIVER_MAX_REGISTERS;
	unsigned long registers = max_registers(link);
	void *value = (void *)registers, *state, *code;
	size_t size;

	if (driver->create(registers != 0, &option, &value, &state))
		return;
	if (add_inputs(link, driver, state, first, containers) &&
		!driver->complete(state, &code, &size) && (link->text = malloc(size))) {
		memcpy(link->text, code, size);
		link->text_size = size;
	}
	driver->destroy(state);
}

static void driver_link_in_context(struct relink *link, const char *first, bool containers)
{
	struct driver driver;
	void *context;

	if (!driver_find(&driver) || driver.init(0) || driver.context(&context))
		return;
	if (context) {
		driver_link(link, &driver, first, containers);
	} else if (!driver.retain(&context, 0)) {
		if (!driver.push(context)) {
			driver_link(link, &driver, first, containers);
			driver.pop(&context);
		}
		driver.release(0);
	}
}

const char *relink_complete(struct relink *link, const struct nvjitlink *library, size_t *size)
{
	bool containers = true;
	char *first = NULL;

	if (link->lost || link->text)
		return relink_text(link, size);
	/* A container without any intermediate code fails the whole link to PTX. */
	if (link->intermediate && !(first = intermediate_text(link, library, true))) {
		containers = false;
		first = intermediate_text(link, library, false);
	}
	driver_link_in_context(link, first, containers);
	free(first);
	return relink_text(link, size);
}

const char *relink_text(const struct relink *link, size_t *size)
{
	*size = link->text_size;
	return link->text;
}
