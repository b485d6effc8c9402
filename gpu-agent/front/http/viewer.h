/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks over HTTP, and whose rows a page shows him.
 *
 * Where there is one tenant only, and no http.token_file, everybody sees everything: there is
 * nobody whose names are to be kept from whom.  Else a token says who asks: one of
 * http.token_file sees all, a tenant's sees its own, and who brings none sees no tenant.  The
 * machine's own addresses are no exception: other tenants' programs may run there, and what a
 * proxy forwards comes from there.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_VIEWER_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_VIEWER_H

#include <stdbool.h>
#include <stdint.h>

struct front;
struct session;
struct tenant;

struct viewer {
	bool all;		     /* every tenant's rows */
	const struct tenant *tenant; /* its rows; NULL: nobody's, unless `all` */
	bool named;		     /* it brought a token that is good */
};

/* Of the header Authorization (NULL: there is none) of a request. False: it names a token, and
 * that is nobody's. */
bool viewer_of(const struct front *front, const char *authorization, struct viewer *viewer);

bool viewer_sees(const struct viewer *viewer, const struct tenant *tenant);
/* Whether the device is one that it may know of. */
bool viewer_sees_gpu(const struct front *front, const struct viewer *viewer, uint32_t device);
/* A session of those that it sees, in any state but FREE. */
bool viewer_sees_session(const struct viewer *viewer, const struct session *session);

#endif
