/* SPDX-License-Identifier: Apache-2.0
 *
 * A module, for module.c and module_functions.c.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_MODULE_STATE_H
#define VCUDA_SHIM_DRIVER_MODULE_MODULE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/module/module.h"

#define MODULE_BUCKETS 64

struct module {
	uint64_t handle;
	struct context *context;
	uint64_t context_id;
	struct library *library; /* the one that it was made for, or NULL */
	bool outside;		 /* it stands for those of the agent's libraries */
	pthread_mutex_t lock;	 /* the buckets */
	struct function *functions[MODULE_BUCKETS];
};

/* One with a handle that the worker does not know yet; NULL: no memory. */
struct module *module_new(struct context *context, struct library *library);

#endif
