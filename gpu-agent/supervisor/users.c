/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/users.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu-agent/supervisor/parse.h"
#include "gpu-agent/supervisor/supervisor.h"

#define USER_MOST                                                                              \
	0x7fffffffull /* -1 is nobody's, and what is beyond 31 bits is odd to many             \
		       */

int users_set(struct agent_config *config, const char *value)
{
	uint64_t first, last;
	const char *at;

	if (parse_number(value, &first, &at) || *at != '-' ||
		parse_number(at + 1, &last, &at) || *at || !first || last < first ||
		last > USER_MOST)
		return -EINVAL;
	config->user_first = (uint32_t)first;
	config->user_last = (uint32_t)last;
	return 0;
}

/* What root needs: to become one, to end one, and to reach what one wrote. */
static const char *missing_capability(void)
{
	static const struct {
		unsigned number;
		const char *name;
	} needed[] = {{CAP_SETUID, "SETUID"}, {CAP_SETGID, "SETGID"}, {CAP_KILL, "KILL"},
		{CAP_CHOWN, "CHOWN"}, {CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
		{CAP_FOWNER, "FOWNER"}};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capget, &header, sets))
		return "all";
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!(sets[0].effective >> needed[i].number & 1))
			return needed[i].name;
	return NULL;
}

int users_check(const struct agent_config *config, struct error *error)
{
	const uint32_t least = config->max_sessions + config->warm_workers;
	const char *lacks;

	if (!config->user_first)
		return 0;
	if (config->user_last - config->user_first + 1 < least)
		return error_set(error, 0,
			"worker_users: %u-%u are fewer than max_sessions and warm_workers "
			"together (%u)",
			config->user_first, config->user_last, least);
	if (config->nccl.allowed)
		return error_set(error, 0,
			"worker_users: ranks of NCCL share memory, which users of their own "
			"do not; take it or nccl.allowed away");
	if (config->sandbox_off)
		return error_set(
			error, 0, "worker_users: is a part of the sandbox, which is off");
	lacks = geteuid() ? "root" : missing_capability();
	return !lacks ? 0
		      : error_set(error, 0,
				"worker_users: needs an agent that runs as root, with the "
				"capabilities SETUID, SETGID, KILL, CHOWN, DAC_OVERRIDE and "
				"FOWNER; this one lacks: %s",
				lacks);
}

static bool is_taken(const struct supervisor *s, uint32_t user)
{
	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid && s->children[i].user == user)
			return true;
	return false;
}

uint32_t users_pick(struct supervisor *s)
{
	const struct agent_config *config = s->config;
	const uint32_t count = config->user_last - config->user_first + 1;

	for (uint32_t i = 0; config->user_first && i < count; i++) {
		uint32_t user = config->user_first + s->users_next++ % count;

		if (!is_taken(s, user))
			return user;
	}
	return 0;
}
