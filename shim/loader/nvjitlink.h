/* SPDX-License-Identifier: Apache-2.0
 *
 * nvJitLink for a GPU that runs PTX.
 */
#ifndef VCUDA_SHIM_LOADER_NVJITLINK_H
#define VCUDA_SHIM_LOADER_NVJITLINK_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf.h"

/* True where a file of that path is nvJitLink and what it links is to be PTX (VCUDA_NVRTC=ptx).
 */
bool nvjitlink_wanted(const char *path);

/* From now on the nvJitLink in the object gives PTX where machine code is asked for. */
void nvjitlink_redirect(
	const struct dl_phdr_info *info, const struct image *image, const char *path);

#endif
