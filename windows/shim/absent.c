/* SPDX-License-Identifier: Apache-2.0
 *
 * What of the shim there is not on Windows: the sidecar is a part of this process, so none is
 * started and none comes in its place; and no touch of managed memory is seen, so none of it
 * can be had (fault_open says NULL).
 */
#include "shim/driver/memory/pages/page_fault.h"
#include "shim/engine/attach/own_sidecar.h"
#include "shim/engine/attach/rejoin.h"

#include <errno.h>
#include <unistd.h>

void own_sidecar_socket(char *path, size_t n, const char *agent)
{
	(void)n, (void)agent;
	path[0] = 0;
}

bool own_sidecar_find(char *path, size_t n)
{
	(void)path, (void)n;
	return false;
}

void own_sidecar_keep(void)
{
}

bool own_sidecar_start(const char *client, const char *agent, const char *path)
{
	(void)client, (void)agent, (void)path;
	errno = ENOSYS;
	return false;
}

void rejoin_at(const char *path, const char *agent)
{
	(void)path, (void)agent;
}

void rejoin_open(int segment)
{
	close(segment);
}

void rejoin_watch(void)
{
}

void rejoin_drop(void)
{
}

void rejoin_hold(uint32_t number, int fd, uint64_t size)
{
	(void)number, (void)size;
	close(fd);
}

void rejoin_release(uint32_t number)
{
	(void)number;
}

bool rejoin_possible(void)
{
	return false;
}

bool rejoin_away(void)
{
	return false;
}

uint32_t rejoin_count(void)
{
	return 0;
}

bool rejoin_wait(uint32_t count)
{
	(void)count;
	return false;
}

static bool cannot(void)
{
	return false;
}

const bool fault_seen;
const struct fault_way fault_userfaultfd = {.open = cannot}, fault_signal = {.open = cannot};
