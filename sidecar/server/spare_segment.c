/* SPDX-License-Identifier: Apache-2.0
 *
 * The segments of channels: one is made before it is asked for, and who finds none waits for
 * the memory of a program that ended.
 */
#include <errno.h>
#include <unistd.h>

#include "common/wait.h"
#include "sidecar/server/server.h"

#define SECOND 1000000000ull
/* For the memory of a program that ended: until its channel has seen that, and at most, which
 * is longer than a channel waits for the worker after BYE. */
#define SEGMENT_NOTICE_NS (SECOND / 20)
#define SEGMENT_WAIT_NS (6 * SECOND)
#define SEGMENT_PAUSE_US 2000

void server_wake(struct server *server)
{
	uint64_t one = 1;

	if (write(server->wake_fd, &one, sizeof(one)) < 0)
		return; /* full: it is awake */
}

static int segment_for_channel(
	const struct options *options, struct segment **segment, struct error *error)
{
	struct channel_page layout = {0};

	segments_layout(&layout, options->ring, options->arena, options->bounce);
	return segment_create_own(options->mode, &layout, segment, error);
}

/* The spare segment, which is the caller's from then on, or NULL. */
static struct segment *server_take_spare(struct server *server)
{
	struct segment *spare;

	pthread_mutex_lock(&server->lock);
	spare = server->spare;
	server->spare = NULL;
	pthread_mutex_unlock(&server->lock);
	return spare;
}

/* Under a limit a spare that is just being made may be the last one that there is room for: who
 * finds none waits for it. */
static void server_making(struct server *server, int (*turn)(pthread_mutex_t *mutex))
{
	if (server->options.shm_size)
		turn(&server->making);
}

static int server_try_segment(
	struct server *server, struct segment **segment, struct error *error)
{
	int ret = 0;

	server_making(server, pthread_mutex_lock);
	*segment = server_take_spare(server);
	if (!*segment)
		ret = segment_for_channel(&server->options, segment, error);
	server_making(server, pthread_mutex_unlock);
	return ret;
}

int server_segment(struct server *server, struct segment **segment, struct error *error)
{
	uint64_t since = wait_now(), waited;
	int ret;

	for (;;) {
		ret = server_try_segment(server, segment, error);
		waited = wait_now() - since;
		if ((ret != -ENOMEM && ret != -ENOSPC) || waited >= SEGMENT_WAIT_NS ||
			(waited >= SEGMENT_NOTICE_NS && !atomic_load(&server->ending)) ||
			atomic_load(&server->draining))
			break;
		usleep(SEGMENT_PAUSE_US);
	}
	server_wake(server);
	return ret;
}

void server_prepare(struct server *server)
{
	struct segment *spare = NULL;
	bool wanted;

	server_making(server, pthread_mutex_lock);
	pthread_mutex_lock(&server->lock);
	wanted = !server->spare;
	pthread_mutex_unlock(&server->lock);
	if (wanted && !segment_for_channel(&server->options, &spare, NULL)) {
		pthread_mutex_lock(&server->lock);
		if (!server->spare) {
			server->spare = spare;
			spare = NULL;
		}
		pthread_mutex_unlock(&server->lock);
	}
	server_making(server, pthread_mutex_unlock);
	segment_free(spare);
}
