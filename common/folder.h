/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMMON_FOLDER_H
#define VCUDA_COMMON_FOLDER_H

#include <sys/stat.h>

#include "common/error.h"

/* Makes the folder and those above it that are missing, for this user alone (0700); one that is
 * there is left as it is. 0 or -errno. */
int folder_make(const char *folder);

/* Makes the folder alone (0700), and says in ST what it is. One in which others than its owner
 * may write is an error. */
int folder_own(const char *folder, struct stat *st, struct error *error);

#endif
