/* SPDX-License-Identifier: Apache-2.0
 *
 * The user that a worker or the store becomes, and the groups that it keeps: those of the GPUs'
 * device files, where these are not open to everybody.
 */
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu-agent/sandbox/sandbox.h"

#define GROUPS_MOST 16
#define BOTH (S_IRGRP | S_IWGRP)

static void add_groups(const char *pattern, gid_t groups[GROUPS_MOST], size_t *count)
{
	glob_t found = {0};
	struct stat st;

	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			bool known = *count == GROUPS_MOST;

			/* root's is never kept: too much else is its group's. */
			if (stat(found.gl_pathv[i], &st) || !S_ISCHR(st.st_mode) ||
				(st.st_mode & BOTH) != BOTH || !st.st_gid)
				continue;
			for (size_t g = 0; g < *count; g++)
				known |= groups[g] == st.st_gid;
			if (!known)
				groups[(*count)++] = st.st_gid;
		}
	globfree(&found);
}

int sandbox_user(const char *key, uint32_t user, struct error *error)
{
	const pid_t parent = getppid();
	gid_t groups[GROUPS_MOST];
	size_t count = 0;

	add_groups("/dev/nvidia*", groups, &count);
	add_groups("/dev/nvidia-caps/*", groups, &count);
	add_groups("/dev/dxg", groups, &count);
	if (setgroups(count, groups) || setresgid(user, user, user) ||
		setresuid(user, user, user))
		return error_set(error, errno, "%s: become user %u", key, user);
	/* The kernel forgot it with the user. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return error_set(error, ESRCH, "%s: the agent is gone", key);
	return 0;
}
