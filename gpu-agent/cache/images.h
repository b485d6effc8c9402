/* SPDX-License-Identifier: Apache-2.0
 *
 * Module images by their SHA-256, on disk: the second start of a program sends none.  The front
 * alone reads and writes them; workers, which run tenants' code, get them as sealed memory and
 * bring them as such (front/images.h).
 *
 * In CACHE_DIR: TENANT/DIGEST, or DIGEST alone where all tenants share them.  A file is
 * believed only if its bytes have the digest that names it, each time.  Where there are more
 * bytes than the limit, the tenant that has most loses what it used longest ago.  Several
 * agents may use one folder at once.
 *
 * Any thread; a call may wait for the disk.
 */
#ifndef VCUDA_GPU_AGENT_CACHE_IMAGES_H
#define VCUDA_GPU_AGENT_CACHE_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGES_BYTES_MOST (256ull << 20) /* of one image */

struct images_place {
	const char *folder; /* CACHE_DIR */
	const char *tenant; /* whose they are; "": everybody's */
	uint64_t limit;	    /* bytes in CACHE_DIR */
};

/* Whether FD is memory of SIZE bytes that nobody can change any more. */
bool images_sealed(int fd, uint64_t size);

/* The image in sealed memory, a descriptor of the caller's; -ENOENT: it is not there, or was
 * not whole and is removed; -errno. */
int images_read(const struct images_place *place, const uint8_t digest[32], uint64_t size);

/* Keeps what is in IMAGE, which images_sealed has found to be right.  0; -EBADMSG: its bytes do
 * not have that digest; -errno: it is not kept, and nothing of it is left. */
int images_write(
	const struct images_place *place, const uint8_t digest[32], int image, uint64_t size);

#endif
