/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleanup attributes for the cold paths: a local that is released when it goes out of scope,
 * and take_…() to move it out.
 */
#ifndef VCUDA_COMMON_CLEANUP_H
#define VCUDA_COMMON_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void cleanup_free_pointer(void *pointer)
{
	free(*(void **)pointer);
}
static inline void cleanup_close_stream(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

#define cleanup_close __attribute__((cleanup(cleanup_close_fd)))
#define cleanup_free __attribute__((cleanup(cleanup_free_pointer)))
#define cleanup_stream __attribute__((cleanup(cleanup_close_stream)))

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
