/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for nvJitLink, in the shape of its code: each exported name is a jump. What it links
 * are names: an input "ir…" has intermediate code, and one that begins as NVIDIA's does. Told
 * -ptx it takes no other, as NVIDIA's.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_INPUT 3
#define ERROR_INTERNAL 6

struct part {
	int ptx, wrong;
	char text[200];
};

#define JUMP(name, code)                                                                       \
	".p2align 4\n.globl " name "\n.type " name ", @function\n" name                        \
	":\n.byte 0xe9\n.long " code " - . - 4\n.size " name ", . - " name "\n"
#define FORMS(name, code) JUMP("nvJitLink" name, code) JUMP("__nvJitLink" name "_12_9", code)

__asm__(".text\n" FORMS("Create", "part_create") FORMS("Destroy", "part_destroy") FORMS(
	"AddData", "part_add_data") FORMS("AddFile", "part_add_file") FORMS("Complete",
	"part_complete") FORMS("GetLinkedCubinSize", "part_cubin_size")
		FORMS("GetLinkedCubin", "part_cubin") FORMS("GetLinkedPtxSize", "part_ptx_size")
			FORMS("GetLinkedPtx", "part_ptx") ".p2align 4\n");

#define PART __attribute__((used)) static int

PART part_create(void **handle, uint32_t count, const char **options)
{
	struct part *part = calloc(1, sizeof(*part));

	for (uint32_t i = 0; i < count; i++)
		part->ptx |= !strcmp(options[i], "-ptx");
	*handle = part;
	return 0;
}

PART part_destroy(void **handle)
{
	free(*handle);
	*handle = NULL;
	return 0;
}

PART part_add_data(void *handle, int type, const char *data, size_t size, const char *name)
{
	struct part *part = handle;

	(void)type, (void)name;
	part->wrong |= part->ptx && strncmp(data, "ir", 2) && data[0] != '\xed';
	part->wrong |= !strncmp(data, "wrong", size);
	strncat(part->text, data, size);
	return 0;
}

PART part_add_file(void *handle, int type, const char *path)
{
	char data[20] = "";
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(data, 1, sizeof(data), file) : 0;

	if (file)
		fclose(file);
	return part_add_data(handle, type, data, n, path);
}

PART part_complete(void *handle)
{
	return ((struct part *)handle)->wrong ? ERROR_INPUT : 0;
}

PART part_cubin_size(void *handle, size_t *size)
{
	struct part *part = handle;

	*size = strlen(part->text) + 5;
	return part->ptx ? ERROR_INTERNAL : 0;
}

PART part_cubin(void *handle, char *code)
{
	struct part *part = handle;

	sprintf(code, "ELF:%s", part->text);
	return part->ptx ? ERROR_INTERNAL : 0;
}

PART part_ptx_size(void *handle, size_t *size)
{
	struct part *part = handle;

	*size = strlen(part->text) + 6;
	return part->ptx ? 0 : ERROR_INPUT;
}

PART part_ptx(void *handle, char *text)
{
	struct part *part = handle;

	sprintf(text, "ptx(%s)", part->text);
	return part->ptx ? 0 : ERROR_INPUT;
}
