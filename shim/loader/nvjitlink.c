/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU runs PTX, and nvJitLink makes machine code. It still links as it was told,
 * and tells what is wrong; then the same is linked to PTX (relink.h), and that is what the
 * program gets. Where it cannot be, the program gets the machine code.
 *
 * The library's functions come in one form for each release (__nvJitLinkCreate_12_9) and one
 * without. Each form is a jump to the code of all of them, which stays and is called from here.
 */
#include "shim/loader/nvjitlink.h"
#include "shim/loader/jump.h"
#include "shim/loader/relink.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RELEASES = 2 }; /* CUDA 12, CUDA 13: a program may have both */

static struct nvjitlink libraries[RELEASES];

/* Never taken out of the list: a record without a handle is used again. One thread at a time
 * uses a handle, as natively. */
struct record {
	struct record *next;
	_Atomic(void *) handle;
	struct relink *link;
};

static _Atomic(struct record *) records;

static struct record *record_of(void *handle)
{
	struct record *record = records;

	while (record && record->handle != handle)
		record = record->next;
	return record;
}

static struct relink *link_of(void *handle)
{
	struct record *record = handle ? record_of(handle) : NULL;

	return record ? record->link : NULL;
}

static void keep(void *handle, struct relink *link)
{
	struct record *record = link ? records : NULL;
	void *none = NULL;

	for (; record; record = record->next, none = NULL)
		if (atomic_compare_exchange_strong(&record->handle, &none, handle)) {
			record->link = link;
			return;
		}
	record = link ? malloc(sizeof(*record)) : NULL;
	if (!record) {
		relink_free(link);
		return;
	}
	*record = (struct record){.next = records, .handle = handle, .link = link};
	while (!atomic_compare_exchange_weak(&records, &record->next, record))
		;
}

static void forget(void *handle)
{
	struct record *record = handle ? record_of(handle) : NULL;

	if (!record)
		return;
	relink_free(record->link);
	record->link = NULL;
	record->handle = NULL;
}

/* ---- What the program calls ---- */

static int create(
	const struct nvjitlink *library, void **handle, uint32_t count, const char **options)
{
	int ret = library->create(handle, count, options);

	if (!ret)
		keep(*handle, relink_new(count, options));
	return ret;
}

static int destroy(const struct nvjitlink *library, void **handle)
{
	if (handle)
		forget(*handle);
	return library->destroy(handle);
}

static int add_data(const struct nvjitlink *library, void *handle, int type, const void *data,
	size_t size, const char *name)
{
	int ret = library->add_data(handle, type, data, size, name);
	struct relink *link = ret ? NULL : link_of(handle);

	if (link)
		relink_add_data(link, type, data, size);
	return ret;
}

static int add_file(const struct nvjitlink *library, void *handle, int type, const char *path)
{
	int ret = library->add_file(handle, type, path);
	struct relink *link = ret ? NULL : link_of(handle);

	if (link)
		relink_add_file(link, type, path);
	return ret;
}

static int complete(const struct nvjitlink *library, void *handle)
{
	int ret = library->complete(handle);
	struct relink *link = ret ? NULL : link_of(handle);
	size_t size;

	if (link)
		relink_complete(link, library, &size);
	return ret;
}

static int cubin_size(const struct nvjitlink *library, void *handle, size_t *size)
{
	struct relink *link = size ? link_of(handle) : NULL;

	return link && relink_text(link, size) ? 0 : library->cubin_size(handle, size);
}

static int cubin(const struct nvjitlink *library, void *handle, void *code)
{
	struct relink *link = code ? link_of(handle) : NULL;
	size_t size;
	const char *text = link ? relink_text(link, &size) : NULL;

	if (!text)
		return library->cubin(handle, code);
	memcpy(code, text, size);
	return 0;
}

#define FRONTS(n)                                                                              \
	static int create_##n(void **handle, uint32_t count, const char **options)             \
	{                                                                                      \
		return create(&libraries[n], handle, count, options);                          \
	}                                                                                      \
	static int destroy_##n(void **handle)                                                  \
	{                                                                                      \
		return destroy(&libraries[n], handle);                                         \
	}                                                                                      \
	static int add_data_##n(                                                               \
		void *handle, int type, const void *data, size_t size, const char *name)       \
	{                                                                                      \
		return add_data(&libraries[n], handle, type, data, size, name);                \
	}                                                                                      \
	static int add_file_##n(void *handle, int type, const char *path)                      \
	{                                                                                      \
		return add_file(&libraries[n], handle, type, path);                            \
	}                                                                                      \
	static int complete_##n(void *handle)                                                  \
	{                                                                                      \
		return complete(&libraries[n], handle);                                        \
	}                                                                                      \
	static int cubin_size_##n(void *handle, size_t *size)                                  \
	{                                                                                      \
		return cubin_size(&libraries[n], handle, size);                                \
	}                                                                                      \
	static int cubin_##n(void *handle, void *code)                                         \
	{                                                                                      \
		return cubin(&libraries[n], handle, code);                                     \
	}

FRONTS(0)
FRONTS(1)

#define FRONTS_OF(n)                                                                           \
	{                                                                                      \
		.create = create_##n,                                                          \
		.destroy = destroy_##n,                                                        \
		.add_data = add_data_##n,                                                      \
		.add_file = add_file_##n,                                                      \
		.complete = complete_##n,                                                      \
		.cubin_size = cubin_size_##n,                                                  \
		.cubin = cubin_##n,                                                            \
	}

static const struct nvjitlink fronts[RELEASES] = {FRONTS_OF(0), FRONTS_OF(1)};

/* ---- Finding them ---- */

/* In the order of struct nvjitlink. */
static const char *const names[] = {"Create", "Destroy", "AddData", "AddFile", "Complete",
	"GetLinkedCubinSize", "GetLinkedCubin", "GetLinkedPtxSize", "GetLinkedPtx"};

enum { NAMES = sizeof(names) / sizeof(*names) };

_Static_assert(sizeof(struct nvjitlink) == NAMES * sizeof(void *), "a pointer for each name");

/* Which of the names it is a form of; -1: none. */
static int name_index(const char *name)
{
	static const char prefix[] = "nvJitLink";

	name += strncmp(name, "__", 2) ? 0 : 2;
	if (strncmp(name, prefix, sizeof(prefix) - 1))
		return -1;
	name += sizeof(prefix) - 1;
	for (int i = 0; i < NAMES; i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(name, names[i], n) && (!name[n] || name[n] == '_'))
			return i;
	}
	return -1;
}

/* What the jump goes to that the function consists of, the only one in its 16 bytes; NULL: it
 * is something else. */
static unsigned char *jump_target(
	const struct dl_phdr_info *info, const struct image_function *function)
{
	unsigned char *code = (unsigned char *)info->dlpi_addr + function->value;
	int32_t offset;

	if (function->size != 5 || function->value % 16 ||
		!loaded_part(info, function->value, JUMP_BYTES, PF_X) || code[0] != 0xe9)
		return NULL;
	memcpy(&offset, code + 1, sizeof(offset));
	return code + 5 + offset;
}

static int release(const char *path)
{
	const char *file = strrchr(path, '/'), *number;

	file = file ? file + 1 : path;
	if (strncmp(file, "libnvJitLink", 12) || !(number = strstr(file, ".so.")))
		return -1;
	number += 4;
	return !strncmp(number, "12", 2) ? 0 : !strncmp(number, "13", 2) ? 1 : -1;
}

bool nvjitlink_wanted(const char *path)
{
	const char *how;

	if (release(path) < 0)
		return false;
	how = secure_getenv("VCUDA_NVRTC");
	return how && !strcmp(how, "ptx");
}

/* False: some form is no jump, or not to where the others go. */
static bool find_targets(const struct dl_phdr_info *info, const struct image *image,
	unsigned char *targets[NAMES])
{
	struct image_function function;

	for (size_t at = 0; image_next_function(image, &at, &function);) {
		int index = name_index(function.name);
		unsigned char *target;

		if (index < 0)
			continue;
		target = jump_target(info, &function);
		if (!target || (targets[index] && targets[index] != target))
			return false;
		targets[index] = target;
	}
	for (int i = 0; i < NAMES; i++)
		if (!targets[i])
			return false;
	return true;
}

void nvjitlink_redirect(
	const struct dl_phdr_info *info, const struct image *image, const char *path)
{
	unsigned char *targets[NAMES] = {NULL};
	const void *front[NAMES];
	struct image_function function;
	int n = release(path);

	if (!find_targets(info, image, targets))
		return;
	memcpy(&libraries[n], targets, sizeof(targets));
	memcpy(front, &fronts[n], sizeof(front));
	for (size_t at = 0; image_next_function(image, &at, &function);) {
		int index = name_index(function.name);

		if (index >= 0 && front[index])
			jump_put((unsigned char *)info->dlpi_addr + function.value,
				front[index]);
	}
}
