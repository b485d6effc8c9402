/* SPDX-License-Identifier: Apache-2.0 */
#include "common/folder.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int folder_make(const char *folder)
{
	char path[PATH_MAX];
	size_t n = strlen(folder);

	if (!n || n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, folder, n + 1);
	for (char *at = path + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			if (mkdir(path, 0700) && errno != EEXIST)
				return -errno;
			*at = '/';
		}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

int folder_own(const char *folder, struct stat *st, struct error *error)
{
	if ((mkdir(folder, 0700) && errno != EEXIST) || stat(folder, st))
		return error_set(error, errno, "%s", folder);
	if (!S_ISDIR(st->st_mode) || st->st_mode & 022)
		return error_set(error, 0,
			"%s: others than its owner may write there: chmod 700 it", folder);
	return 0;
}
