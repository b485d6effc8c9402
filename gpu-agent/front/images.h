/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers' way to the cache of images (gpu-agent/cache/images.h), which they cannot reach
 * themselves: what a worker brings is looked at before it is kept, and is given to sessions of
 * its own tenant only, unless the configuration says otherwise.
 *
 * Reading, hashing and writing is the work of one thread, which knows jobs and the folder and
 * nothing of the front; a disk that hangs holds nobody up but who wants images, and those not
 * for long (the worker's own deadline).
 */
#ifndef VCUDA_GPU_AGENT_FRONT_IMAGES_H
#define VCUDA_GPU_AGENT_FRONT_IMAGES_H

#include "common/error.h"

/* What became of what workers wanted and brought. */
enum image_fate {
	IMAGE_HIT,     /* wanted, and given */
	IMAGE_MISS,    /* wanted, and not there */
	IMAGE_KEPT,    /* brought, and kept */
	IMAGE_DROPPED, /* brought, and not kept: no room, too many at once, an error */
	IMAGE_WRONG,   /* brought with another's digest: the worker was ended */
	IMAGE_FATES
};
const char *image_fate_name(enum image_fate fate);

struct front;
struct handoff;
struct pool_worker;

int images_open(struct front *front, struct error *error);
void images_close(struct front *front);

/* An IMAGE_WANT or IMAGE_PUT of a worker that has a session; *FD came with it, and is -1 where
 * it was taken. */
void images_request(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd);

#endif
