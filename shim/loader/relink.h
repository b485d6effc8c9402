/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program gave to a link of nvJitLink, and the same linked once more, to PTX.
 */
#ifndef VCUDA_SHIM_LOADER_RELINK_H
#define VCUDA_SHIM_LOADER_RELINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions of nvJitLink, of one library. The statuses are nvJitLinkResult's: 0 is success.
 */
struct nvjitlink {
	int (*create)(void **handle, uint32_t count, const char **options);
	int (*destroy)(void **handle);
	int (*add_data)(
		void *handle, int type, const void *data, size_t size, const char *name);
	int (*add_file)(void *handle, int type, const char *path);
	int (*complete)(void *handle);
	int (*cubin_size)(void *handle, size_t *size);
	int (*cubin)(void *handle, void *code);
	int (*ptx_size)(void *handle, size_t *size);
	int (*ptx)(void *handle, char *text);
};

struct relink;

/* NULL: no memory, or the program asks for PTX itself. */
struct relink *relink_new(uint32_t count, const char *const *options);
/* NULL is ignored. */
void relink_free(struct relink *link);

/* The bytes are copied. What cannot be linked to PTX makes relink_complete fail. */
void relink_add_data(struct relink *link, int type, const void *data, size_t size);
void relink_add_file(struct relink *link, int type, const char *path);

/* Intermediate code becomes PTX by the library; the driver links that with the rest, in the
 * thread's context, or in the first device's. NULL: it could not be done. Else the text, which
 * is the link's, and its size with the 0 behind it. */
const char *relink_complete(struct relink *link, const struct nvjitlink *library, size_t *size);
/* The text of relink_complete; NULL: there is none. */
const char *relink_text(const struct relink *link, size_t *size);

#endif
