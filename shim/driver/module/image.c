/* SPDX-License-Identifier: Apache-2.0
 *
 * What an image is (PTX text, machine code, a fat binary, the wrapper around one), how long,
 * and the part of it that goes to the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wait.h"
#include "common/cleanup.h"
#include "shim/driver/context/context.h"
#include "shim/driver/module/fatbin.h"
#include "shim/driver/module/module.h"
#include "shim/engine/session.h"

#define IMAGE_MAX (256u << 20) /* the worker's limit too */

static CUresult image_copy(struct image *out, uint32_t kind, const void *bytes, size_t n)
{
	if (n > IMAGE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	out->kind = kind;
	out->size = n;
	out->bytes = malloc(n);
	if (!out->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(out->bytes, bytes, n);
	return CUDA_SUCCESS;
}

/* A container of the one entry that the device would run; where there is none, what PARTS link
 * to. */
static CUresult image_fatbin(
	const void *data, size_t bytes, const void *const *parts, int device, struct image *out)
{
	const struct open_device *open = &devices.at[device].open;
	struct fatbin_target target = {
		.major = open->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR],
		.minor = open->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR],
		.ptx_only = open->flags & OPEN_PTX_ONLY,
	};
	struct fatbin_header header;
	struct fatbin_entry entry;
	bool found = fatbin_pick(data, bytes, &target, &entry);

	if (parts && (!found || (target.ptx_only && !entry.ptx)))
		return linker_parts(parts, device, out);
	if (!found) {
		session_debug("a fat binary holds nothing for compute capability %d.%d",
			target.major, target.minor);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	memcpy(&header, data, sizeof(header));
	header.header_bytes = sizeof(header);
	header.bytes = entry.bytes;
	if (entry.bytes > IMAGE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	out->kind = IMAGE_FATBIN;
	out->size = sizeof(header) + entry.bytes;
	out->bytes = malloc(out->size);
	if (!out->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(out->bytes, &header, sizeof(header));
	memcpy(out->bytes + sizeof(header), entry.start, entry.bytes);
	return CUDA_SUCCESS;
}

/* Where the image itself begins, behind a wrapper, what it is and how long; NULL: no image.
 * PARTS: what it was linked from, closed by a NULL; or NULL. */
static const void *image_find(
	const void *image, uint32_t *kind, size_t *n, const void *const **parts)
{
	struct fatbin_wrapper wrapper;
	uint32_t magic;

	*parts = NULL;
	/* A text may be shorter than the magic: look at it byte by byte. */
	for (size_t i = 0; i < sizeof(magic); i++)
		if (!((const char *)image)[i])
			return NULL;
	memcpy(&magic, image, sizeof(magic));
	if (magic == FATBIN_WRAPPER_MAGIC) {
		memcpy(&wrapper, image, sizeof(wrapper));
		image = wrapper.data;
		if (!image)
			return NULL;
		if (wrapper.version == FATBIN_WRAPPER_LINKED)
			*parts = wrapper.other;
	}
	if (magic == FATBIN_WRAPPER_MAGIC || magic == FATBIN_MAGIC) {
		*kind = IMAGE_FATBIN;
		*n = fatbin_size(image);
	} else if (!memcmp(image, "\177ELF", 4)) {
		*kind = IMAGE_CUBIN;
		*n = fatbin_elf_size(image);
	} else {
		*kind = IMAGE_PTX;
		*n = strlen(image) + 1;
	}
	return *n ? image : NULL;
}

CUresult image_extract(const void *image, int device, struct image *out)
{
	const void *const *parts;
	uint32_t kind;
	size_t n;

	image = image_find(image, &kind, &n, &parts);
	if (!image)
		return CUDA_ERROR_INVALID_IMAGE;
	if (kind == IMAGE_FATBIN)
		return image_fatbin(image, n, parts, device, out);
	return image_copy(out, kind, image, n);
}

CUresult image_whole(const void *image, unsigned char **copy)
{
	const void *const *parts;
	uint32_t kind;
	size_t n = 1;

	/* Of an empty text it is said when something is looked for in it, as natively. */
	if (*(const char *)image)
		image = image_find(image, &kind, &n, &parts);
	if (!image || n > SIZE_MAX / 2)
		return CUDA_ERROR_INVALID_IMAGE;
	*copy = calloc(1, n + 64); /* readable as far as any header */
	if (!*copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(*copy, image, n);
	return CUDA_SUCCESS;
}

CUresult image_read(const char *path, void **bytes, size_t *size)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	size_t at = 0;
	char *text;

	if (!*path)
		return CUDA_ERROR_INVALID_VALUE;
	if (fd < 0 || fstat(fd, &status))
		return errno == ENOENT || errno == ENOTDIR ? CUDA_ERROR_FILE_NOT_FOUND
							   : CUDA_ERROR_OPERATING_SYSTEM;
	if (!S_ISREG(status.st_mode) || !status.st_size || status.st_size > IMAGE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	/* PTX wants a NUL, and a header's worth of zeros lets every format be looked at. */
	text = calloc(1, (size_t)status.st_size + 64);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (at < (size_t)status.st_size) {
		ssize_t n = read(fd, text + at, (size_t)status.st_size - at);

		if (n <= 0) {
			free(text);
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
		at += (size_t)n;
	}
	*bytes = text;
	if (size)
		*size = at;
	return CUDA_SUCCESS;
}

/* What CU_JIT_GLOBAL_SYMBOL_… name. */
struct jit_symbols {
	const char *const *names;
	void *const *addresses;
	uint32_t count;
};

/* FEATURE: what the agent must know for that. */
static CUresult symbols_put(struct jit *jit, const struct jit_symbols *s, uint64_t feature)
{
	size_t entries = 0;

	if (!s->count)
		return CUDA_SUCCESS;
	if (!s->names || !s->addresses)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(devices.info.features & feature))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < s->count; i++) {
		if (!s->names[i] || !*s->names[i])
			return CUDA_ERROR_INVALID_VALUE;
		entries += 1 + (strlen(s->names[i]) + 7) / 8;
		if (entries >
			IMAGE_OPTIONS_MAX - sizeof(jit->options) / sizeof(jit->options[0]))
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	jit->symbols = calloc(entries + jit->count, sizeof(*jit->symbols));
	if (!jit->symbols)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(jit->symbols, jit->options, jit->count * sizeof(*jit->symbols));
	jit->symbol_count = jit->count;
	for (uint32_t i = 0; i < s->count; i++) {
		size_t n = strlen(s->names[i]);

		for (size_t at = 0; at < n; at += 8) {
			struct image_option *o = &jit->symbols[jit->symbol_count++];

			o->option = CU_JIT_GLOBAL_SYMBOL_NAMES;
			memcpy(&o->value, s->names[i] + at, n - at < 8 ? n - at : 8);
		}
		jit->symbols[jit->symbol_count++] =
			(struct image_option){.option = CU_JIT_GLOBAL_SYMBOL_ADDRESSES,
				.value = (uint64_t)(uintptr_t)s->addresses[i]};
	}
	return CUDA_SUCCESS;
}

void image_jit_free(struct jit *jit)
{
	free(jit->symbols);
	jit->symbols = NULL;
}

static CUresult read_options(struct jit *jit, unsigned count, const CUjit_option *options,
	void **values, uint64_t feature)
{
	struct jit_symbols symbols = {0};

	memset(jit, 0, sizeof(*jit));
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		size_t value = (size_t)(uintptr_t)values[i];

		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER: jit->info = values[i]; break;
		case CU_JIT_ERROR_LOG_BUFFER: jit->error = values[i]; break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			/* Only 32 bits are the app's: many pass an unsigned in a void *. */
			jit->info_room = (uint32_t)value;
			jit->info_used = &values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error_room = (uint32_t)value;
			jit->error_used = &values[i];
			break;
		case CU_JIT_WALL_TIME: jit->wall = &values[i]; break;
		case CU_JIT_GLOBAL_SYMBOL_NAMES: symbols.names = values[i]; break;
		case CU_JIT_GLOBAL_SYMBOL_ADDRESSES: symbols.addresses = values[i]; break;
		case CU_JIT_GLOBAL_SYMBOL_COUNT: symbols.count = (uint32_t)value; break;
		case CU_JIT_MAX_REGISTERS:
			if (!(uint32_t)value)
				return CUDA_ERROR_INVALID_VALUE;
			/* fallthrough */
		default:
			if (jit->count == sizeof(jit->options) / sizeof(jit->options[0]))
				return CUDA_ERROR_INVALID_VALUE;
			jit->options[jit->count].option = (uint32_t)options[i];
			jit->options[jit->count++].value = value;
		}
	}
	return symbols_put(jit, &symbols, feature);
}

CUresult image_jit_read(
	struct jit *jit, unsigned count, const CUjit_option *options, void **values)
{
	return read_options(jit, count, options, values, OPEN_FEATURE_SYMBOLS);
}

CUresult image_jit_read_linker(
	struct jit *jit, unsigned count, const CUjit_option *options, void **values)
{
	return read_options(jit, count, options, values, OPEN_FEATURE_LINKED);
}

void image_jit_begin(struct jit *jit)
{
	jit->began = wait_now();
}

/* One text of N bytes into a buffer of the app's, and how long it was. */
static void text_tell(const char *text, size_t n, char *to, size_t room, void **used)
{
	if (to && room)
		snprintf(to, room, "%.*s", (int)n, n ? text : "");
	if (used)
		*used = (void *)(uintptr_t)(n < room ? n : room);
}

void image_jit_tell(struct jit *jit, const char *log, size_t n)
{
	const size_t errors = log ? strnlen(log, n) : 0;
	const char *info = log && errors < n ? log + errors + 1 : NULL;

	jit->spent += (float)(wait_now() - jit->began) / 1e6f;
	if (jit->wall) {
		*jit->wall = NULL;
		memcpy(jit->wall, &jit->spent, sizeof(jit->spent));
	}
	text_tell(info, info ? strnlen(info, n - errors - 1) : 0, jit->info, jit->info_room,
		jit->info_used);
	text_tell(log, errors, jit->error, jit->error_room, jit->error_used);
}
