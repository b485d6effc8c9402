/* SPDX-License-Identifier: Apache-2.0
 *
 * What a load call is given (PTX text, a fat binary, its wrapper, an ELF file: the first bytes
 * tell) and the text buffers that its JIT options name.
 */
#include "softgpu/driver/module/fatbin.h"
#include "softgpu/driver/softgpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 31)

void image_log_init(
	struct jit_log *log, unsigned count, const CUjit_option *options, void **values)
{
	*log = (struct jit_log){0};
	for (unsigned i = 0; options && values && i < count; i++) {
		switch (options[i]) {
		case CU_JIT_ERROR_LOG_BUFFER: log->error = values[i]; break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			log->error_room = (unsigned)(uintptr_t)values[i];
			log->error_used = &values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER: log->info = values[i]; break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			log->info_room = (unsigned)(uintptr_t)values[i];
			log->info_used = &values[i];
			break;
		case CU_JIT_MAX_REGISTERS:
			log->max_registers = (unsigned)(uintptr_t)values[i];
			break;
		case CU_JIT_LOG_VERBOSE: log->verbose = (uintptr_t)values[i] != 0; break;
		default: break;
		}
	}
	/* The sizes come back as what was written: nothing yet. */
	if (log->error && log->error_room)
		log->error[0] = 0;
	if (log->info && log->info_room)
		log->info[0] = 0;
	if (log->error_used)
		*log->error_used = NULL;
	if (log->info_used)
		*log->info_used = NULL;
}

void image_log_error(struct jit_log *log, const char *text)
{
	soft_log_note("%s", text);
	if (!log || !log->error || !log->error_room)
		return;
	snprintf(log->error, log->error_room, "%s\n", text);
	if (log->error_used)
		*log->error_used = (void *)(uintptr_t)(strlen(log->error) + 1);
}

void image_log_info(struct jit_log *log, const char *text)
{
	size_t used;

	if (!log || !log->verbose || !log->info || !log->info_room)
		return;
	used = strlen(log->info);
	snprintf(log->info + used, log->info_room - used, "info    : %s\n", text);
	if (log->info_used)
		*log->info_used = (void *)(uintptr_t)(strlen(log->info) + 1);
}

void image_free(struct image *image)
{
	free(image->text);
	free(image->names);
	*image = (struct image){0};
}

static CUresult read_elf(const void *data, size_t size, struct image *image)
{
	image->names = fatbin_elf_kernels(data, size, &image->names_size);
	return image->names ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* Machine code alone is for the device that it is loaded on, by a program that will run it: it
 * hears at once that it cannot, as on a device of another kind. What a program merely carries
 * comes in a fat binary. */
static CUresult refuse_elf(
	const void *data, size_t size, struct image *image, struct jit_log *log)
{
	CUresult ret = read_elf(data, size, image);

	if (ret)
		return ret;
	image_free(image);
	image_log_error(log, "machine code only: the software GPU runs PTX");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult read_fatbin(
	const void *data, size_t size, struct image *image, struct jit_log *log)
{
	struct fatbin_entry entry;
	size_t expanded;
	CUresult ret;
	char *elf;

	if (fatbin_pick_ptx(data, size, IMAGE_ARCH, &entry)) {
		image->text = fatbin_expand(&entry, &image->text_size);
		if (!image->text) {
			image_log_error(log, "fat binary: a PTX entry cannot be expanded");
			return CUDA_ERROR_INVALID_IMAGE;
		}
		return CUDA_SUCCESS;
	}
	if (!fatbin_pick_elf(data, size, &entry)) {
		image_log_error(log, "fat binary: neither PTX nor machine code in it");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	elf = fatbin_expand(&entry, &expanded);
	ret = elf ? read_elf(elf, expanded, image) : CUDA_ERROR_INVALID_IMAGE;
	free(elf);
	return ret;
}

/* SIZE is SIZE_MAX where the caller's call has none: the image says how long it is. */
CUresult soft_image_read(
	const void *data, size_t size, struct image *image, struct jit_log *log)
{
	uint32_t magic;
	size_t n;

	*image = (struct image){0};
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (size >= sizeof(magic) && strnlen(data, sizeof(magic)) == sizeof(magic)) {
		memcpy(&magic, data, sizeof(magic));
		if (magic == FATBIN_WRAPPER_MAGIC && size >= 16) {
			memcpy(&data, (const char *)data + 8, sizeof(data));
			if (!data)
				return CUDA_ERROR_INVALID_IMAGE;
			size = SIZE_MAX;
			memcpy(&magic, data, sizeof(magic));
		}
		if (magic == FATBIN_MAGIC) {
			n = soft_fatbin_size(data, size);
			return n ? read_fatbin(data, n, image, log) : CUDA_ERROR_INVALID_IMAGE;
		}
		if (!memcmp(&magic, "\177ELF", 4)) {
			n = size == SIZE_MAX ? soft_fatbin_elf_size(data, size) : size;
			return n ? refuse_elf(data, n, image, log) : CUDA_ERROR_INVALID_IMAGE;
		}
	}
	n = size == SIZE_MAX ? strlen(data) : strnlen(data, size);
	/* Anything else must be PTX, which NVIDIA's driver knows by this; what else a text
	 * lacks the parser says. */
	if (!memmem(data, n, ".version", 8)) {
		image_log_error(log, "neither PTX (it has no .version) nor a binary");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	image->text = malloc(n + 1);
	if (!image->text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(image->text, data, n);
	image->text[n] = 0;
	image->text_size = n;
	return CUDA_SUCCESS;
}

CUresult image_read_file(const char *path, void **data, size_t *size)
{
	FILE *file;
	char *bytes = NULL;
	size_t used = 0, room = 0;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "re");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	for (;;) {
		if (room - used < 2) {
			char *more = room < FILE_MAX ? realloc(bytes, room + room / 2 + 65536)
						     : NULL;

			if (!more) {
				free(bytes);
				fclose(file);
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
			bytes = more;
			room += room / 2 + 65536;
		}
		size_t n = fread(bytes + used, 1, room - used - 1, file);

		if (!n)
			break;
		used += n;
	}
	fclose(file);
	bytes[used] = 0;
	*data = bytes;
	*size = used;
	return CUDA_SUCCESS;
}
