/* SPDX-License-Identifier: Apache-2.0
 *
 * How a channel begins and ends: its thread, its place in the server's list, and what it had.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/channel_core.h"

#define STACK (256u * 1024)

struct stripes_setting channel_stripes(struct channel *channel)
{
	return (struct stripes_setting){
		.segments = &channel->segments,
		.wake = channel->doorbell,
		.spin = channel->server->spin,
		.compress = channel->server->options.compress,
		.counts = &channel->pieces,
	};
}

/* For `status`. One that shares nothing is a Unix socket, whatever its address. */
void channel_name(struct channel *channel)
{
	const struct transport *transport = channel->link->place.transport;
	const char *name = transport ? transport->name : "fault";

	if (transport && transport->shares && !channel->local.is)
		name = "unix";
	atomic_store(&channel->transport, name);
}

void channel_open(struct channel *channel)
{
	channel->opened_at = wait_now();
	atomic_store(&channel->transport, "none");
	if (channel->link)
		channel_name(channel);
	atomic_store(&channel->state, CHANNEL_OPEN);
}

static void channel_free(struct channel *channel)
{
	struct server *server = channel->server;

	stripes_close(&channel->stripes); /* nothing is counted any more */
	pthread_mutex_lock(&server->lock);
	for (struct channel **at = &server->channels; *at; at = &(*at)->next)
		if (*at == channel) {
			*at = channel->next;
			break;
		}
	if (atomic_load(&channel->state) != CHANNEL_OPENING)
		server->last_process = wait_now();
	atomic_fetch_add(&server->frames_sent, channel->out.frames);
	atomic_fetch_add(
		&server->bytes_sent, channel->out.bytes + stripes_wire(&channel->pieces.sent));
	atomic_fetch_add(&server->frames_received, channel->replies.frames);
	atomic_fetch_add(&server->bytes_received,
		channel->replies.bytes + stripes_wire(&channel->pieces.received));
	stripes_add(&server->pieces, &channel->pieces);
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		latency_merge(&server->latency[class], &channel->timing.classes[class]);
	pthread_mutex_unlock(&server->lock);

	resume_stop(&channel->resume);
	link_close(channel->link);
	local_hearing_fini(&channel->local.hearing);
	segments_fini(&channel->segments, channel->gone);
	if (channel->gone_at)
		atomic_fetch_sub(&server->ending, 1);
	ring_fini(&channel->ring);
	if (channel->doorbell >= 0)
		close(channel->doorbell);
	if (channel->segment >= 0)
		close(channel->segment);
	close(channel->socket);
	/* A connection that was reset behind BYE may have been cut before it came. */
	resume_part(&channel->resume, !channel->left &&
					      !(channel->parted && channel->replies.closed) &&
					      !channel->replies.lost);
	free(channel);
	atomic_store(&server->freed, true);

	/* Last: the main thread may end the process once all are gone. */
	pthread_mutex_lock(&server->lock);
	server->channel_count--;
	pthread_mutex_unlock(&server->lock);
	server_wake(server);
}

static void *channel_main(void *argument)
{
	struct channel *channel = argument;
	const char *pod = channel->server->options.pod;

	for (size_t i = 0; pod[i] && i + 1 < sizeof(channel->subject.pod); i++)
		channel->subject.pod[i] =
			pod[i] < ' ' || pod[i] == 127 || pod[i] == '"' ? '?' : pod[i];
	log_about(&channel->subject);
	if (!(channel->request.op == CHANNEL_ADOPT ? adopt_adopt(channel, &channel->request)
						   : attach_attach(channel, &channel->request)))
		channel_serve(channel);
	channel_free(channel);
	return NULL;
}

int channel_start(struct server *server, int socket, const struct ucred *peer,
	const struct channel_request *request, int segment)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	if (!channel) {
		close(socket);
		if (segment >= 0)
			close(segment);
		return -ENOMEM;
	}
	channel->server = server;
	channel->socket = socket;
	channel->peer = *peer;
	channel->request = *request;
	channel->segment = segment;
	channel->doorbell = -1;
	local_hearing_init(&channel->local.hearing);
	pthread_mutex_lock(&server->lock);
	channel->next = server->channels;
	server->channels = channel;
	server->channel_count++;
	pthread_mutex_unlock(&server->lock);

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK);
	ret = pthread_create(&thread, &attributes, channel_main, channel);
	pthread_attr_destroy(&attributes);
	if (ret)
		channel_free(channel);
	return -ret;
}
