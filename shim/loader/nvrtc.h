/* SPDX-License-Identifier: Apache-2.0
 *
 * NVRTC for a GPU that runs PTX.
 */
#ifndef VCUDA_SHIM_LOADER_NVRTC_H
#define VCUDA_SHIM_LOADER_NVRTC_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf.h"

/* True where a file of that path is NVRTC and what it compiles is to be PTX (VCUDA_NVRTC=ptx).
 */
bool nvrtc_wanted(const char *path);

/* From now on the NVRTC in the object gives the PTX of a program where machine code is asked
 * for. */
void nvrtc_redirect(const struct dl_phdr_info *info, const struct image *image);

#endif
