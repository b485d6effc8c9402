/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder is the other user's, who may put links there: each step goes by a descriptor, and
 * follows none.
 */
#include "command/peer_secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define SECRET_MOST 131072u

static const char *const names[] = {"token", "password"};

static void hidden(char out[NETWORK_NAME + 1], const char *name)
{
	snprintf(out, NETWORK_NAME + 1, ".%s", name);
}

/* FROM as NAME in FOLDER, OWNER's. */
static int copy(int folder, const char *name, const char *from, const struct stat *owner,
	struct error *error)
{
	static char bytes[SECRET_MOST];
	cleanup_close int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	ssize_t n = in < 0 ? -1 : read(in, bytes, sizeof(bytes));

	if (n < 0)
		return error_set(error, errno, "%s", from);
	unlinkat(folder, "part", 0);
	out = openat(
		folder, "part", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0 || write(out, bytes, (size_t)n) != n ||
		fchown(out, owner->st_uid, owner->st_gid) ||
		renameat(folder, "part", folder, name))
		n = -errno;
	explicit_bzero(bytes, sizeof(bytes));
	return n < 0 ? error_set(error, (int)-n, "a copy of %s", from) : 0;
}

int peer_secrets_open(const char *folder, struct network *network, struct error *error)
{
	char *const files[] = {network->token_file, network->password_file};
	char name[NETWORK_NAME + 1];
	cleanup_close int top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), own = -1;
	struct stat owner;
	int ret = 0;

	for (int i = 0; i < 2; i++)
		if (files[i][0] && access(files[i], R_OK))
			return error_set(error, errno, "%s", files[i]);
	if (top < 0 || fstat(top, &owner))
		return error_set(error, errno, "%s", folder);
	if (geteuid() || !owner.st_uid)
		return 0;
	hidden(name, network->name);
	mkdirat(top, name, 0700);
	own = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0 || fchown(own, owner.st_uid, owner.st_gid))
		return error_set(error, errno, "%s/%s", folder, name);
	for (int i = 0; i < 2 && !ret; i++) {
		if (!files[i][0])
			continue;
		ret = copy(own, names[i], files[i], &owner, error);
		if (snprintf(files[i], NETWORK_PATH, "%s/%s/%s", folder, name, names[i]) >=
			NETWORK_PATH)
			ret = error_set(error, ENAMETOOLONG, "%s", folder);
	}
	return ret;
}

void peer_secrets_close(const char *folder, const char *name)
{
	char own_name[NETWORK_NAME + 1];
	cleanup_close int top = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), own = -1;

	hidden(own_name, name);
	own = openat(top, own_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (own < 0)
		return;
	for (int i = 0; i < 2; i++)
		unlinkat(own, names[i], 0);
	unlinkat(top, own_name, AT_REMOVEDIR);
}
