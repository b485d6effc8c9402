/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMMON_FOLDER_H
#define VCUDA_COMMON_FOLDER_H

/* Makes the folder and those above it that are missing, for this user alone (0700); one that is
 * there is left as it is. 0 or -errno. */
int folder_make(const char *folder);

#endif
