/* SPDX-License-Identifier: Apache-2.0
 *
 * The loaded objects, in the middle of a dlopen too.
 */
#ifndef VCUDA_SHIM_LOADER_OBJECTS_H
#define VCUDA_SHIM_LOADER_OBJECTS_H

#include <link.h>
#include <stddef.h>

/* As dl_iterate_phdr, of whose dlpi_tls_modid and dlpi_tls_data there is nothing here. Under
 * the loader's lock, or while there is one thread. */
int objects_iterate(
	int (*each)(struct dl_phdr_info *info, size_t size, void *data), void *data);

#endif
