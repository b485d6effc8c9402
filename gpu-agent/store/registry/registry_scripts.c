/* SPDX-License-Identifier: Apache-2.0
 *
 * The Lua scripts, see registry_scripts.h.
 */
#include "gpu-agent/store/registry/registry_scripts.h"

#include <openssl/sha.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each has its bytes between two symbols. */
#define SCRIPT_FILE(symbol, file)                                                              \
	__asm__(".section .rodata\n"                                                           \
		".global " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"                     \
		".incbin \"gpu-agent/store/registry/" file "\"\n"                              \
		".global " #symbol "_end\n.hidden " #symbol "_end\n" #symbol "_end:\n"         \
		".previous\n");                                                                \
	extern const char symbol[], symbol##_end[];

SCRIPT_FILE(script_common, "registry_common.lua")
SCRIPT_FILE(script_create, "registry_create.lua")
SCRIPT_FILE(script_take, "registry_take.lua")
SCRIPT_FILE(script_drop, "registry_drop.lua")
SCRIPT_FILE(script_update, "registry_update.lua")
SCRIPT_FILE(script_delete, "registry_delete.lua")
SCRIPT_FILE(script_enter, "registry_enter.lua")
SCRIPT_FILE(script_put, "registry_put.lua")
SCRIPT_FILE(script_hold, "registry_hold.lua")
SCRIPT_FILE(script_filled, "registry_filled.lua")
SCRIPT_FILE(script_renew, "registry_renew.lua")
SCRIPT_FILE(script_lapsed, "registry_lapsed.lua")
SCRIPT_FILE(script_leave, "registry_leave.lua")
SCRIPT_FILE(script_replica, "registry_replica.lua")
SCRIPT_FILE(script_yield, "registry_yield.lua")
SCRIPT_FILE(script_ticket, "registry_ticket.lua")
SCRIPT_FILE(script_redeem, "registry_redeem.lua")
SCRIPT_FILE(script_begin, "commands_begin.lua")
SCRIPT_FILE(script_finish, "commands_finish.lua")
SCRIPT_FILE(script_forward, "commands_forward.lua")

static const struct {
	const char *from, *end;
} files[SCRIPTS] = {
	[SCRIPT_CREATE] = {script_create, script_create_end},
	[SCRIPT_TAKE] = {script_take, script_take_end},
	[SCRIPT_DROP] = {script_drop, script_drop_end},
	[SCRIPT_UPDATE] = {script_update, script_update_end},
	[SCRIPT_DELETE] = {script_delete, script_delete_end},
	[SCRIPT_ENTER] = {script_enter, script_enter_end},
	[SCRIPT_PUT] = {script_put, script_put_end},
	[SCRIPT_HOLD] = {script_hold, script_hold_end},
	[SCRIPT_FILLED] = {script_filled, script_filled_end},
	[SCRIPT_RENEW] = {script_renew, script_renew_end},
	[SCRIPT_LAPSED] = {script_lapsed, script_lapsed_end},
	[SCRIPT_LEAVE] = {script_leave, script_leave_end},
	[SCRIPT_REPLICA] = {script_replica, script_replica_end},
	[SCRIPT_YIELD] = {script_yield, script_yield_end},
	[SCRIPT_TICKET] = {script_ticket, script_ticket_end},
	[SCRIPT_REDEEM] = {script_redeem, script_redeem_end},
	[SCRIPT_BEGIN] = {script_begin, script_begin_end},
	[SCRIPT_FINISH] = {script_finish, script_finish_end},
	[SCRIPT_FORWARD] = {script_forward, script_forward_end},
};

static bool make(struct script_text *script, const char *from, const char *end)
{
	const size_t common = (size_t)(script_common_end - script_common),
		     n = (size_t)(end - from);
	unsigned char hash[SHA_DIGEST_LENGTH];

	script->text = malloc(common + n);
	if (!script->text)
		return false;
	memcpy(script->text, script_common, common);
	memcpy(script->text + common, from, n);
	script->n = common + n;
	/* Redis names scripts by SHA-1. */
	SHA1((const unsigned char *)script->text, script->n, hash);
	for (unsigned i = 0; i < sizeof(hash); i++)
		snprintf(script->digest + i * 2, 3, "%02x", hash[i]);
	return true;
}

const struct script_text *scripts_all(void)
{
	static struct script_text all[SCRIPTS];

	for (int i = 0; i < SCRIPTS; i++) {
		if (!all[i].text && !make(&all[i], files[i].from, files[i].end))
			return NULL;
	}
	return all;
}
