/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/settings/users.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu-agent/supervisor/settings/parse_value.h"
#include "gpu-agent/supervisor/supervisor.h"

int users_set(struct agent_config *config, const char *value)
{
	uint64_t first, last;
	const char *at;

	if (parse_number(value, &first, &at) || *at != '-' ||
		parse_number(at + 1, &last, &at) || *at || !first || last < first ||
		last > USERS_MOST)
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

/* KEY wants users of their own. */
static int check_root(const char *key, struct error *error)
{
	const char *lacks = geteuid() ? "root" : missing_capability();

	return !lacks ? 0
		      : error_set(error, 0,
				"%s: needs an agent that runs as root, with the "
				"capabilities SETUID, SETGID, KILL, CHOWN, DAC_OVERRIDE and "
				"FOWNER; this one lacks: %s",
				key, lacks);
}

static int check_store(const struct agent_config *config, struct error *error)
{
	const uint32_t user = config->store.user;

	if (!user)
		return 0;
	if (config->user_first <= user && user <= config->user_last)
		return error_set(error, 0,
			"store.user: %u is one of worker_users, %u-%u; the store's is its own",
			user, config->user_first, config->user_last);
	if (config->sandbox_off)
		return error_set(
			error, 0, "store.user: is a part of the sandbox, which is off");
	return check_root("store.user", error);
}

int users_check(const struct agent_config *config, struct error *error)
{
	const uint32_t least = config->max_sessions + config->warm_workers;
	int ret = check_store(config, error);

	if (ret || !config->user_first)
		return ret;
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
	return check_root("worker_users", error);
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
