/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua scripts, as they lie beside this, with the digests that EVALSHA wants.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REGISTRY_SCRIPTS_H
#define VCUDA_GPU_AGENT_STORE_REGISTRY_SCRIPTS_H

#include <stddef.h>

enum script {
	SCRIPT_CREATE,
	SCRIPT_TAKE,
	SCRIPT_DROP,
	SCRIPT_UPDATE,
	SCRIPT_DELETE,
	SCRIPT_ENTER,
	SCRIPT_PUT,
	SCRIPT_HOLD,
	SCRIPT_FILLED,
	SCRIPT_RENEW,
	SCRIPT_LAPSED,
	SCRIPT_LEAVE,
	SCRIPT_REPLICA,
	SCRIPT_YIELD,
	SCRIPT_TICKET,
	SCRIPT_REDEEM,
	SCRIPT_BEGIN,
	SCRIPT_FINISH,
	SCRIPT_FORWARD,
	SCRIPTS
};

struct script_text {
	char *text; /* registry_common.lua before it */
	size_t n;
	char digest[41];
};

/* All of them, made at the first call; never freed. NULL: no memory. */
const struct script_text *scripts_all(void);

#endif
