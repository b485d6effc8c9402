/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel whose link is gone: what can go on goes on by resumption, and of what cannot the
 * program is told once.
 */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/channel_core.h"

#define MS 1000000ull

void channel_lose(struct channel *channel, uint32_t status, const char *text)
{
	struct channel_page *page = channel->page;
	struct frame_header header = {
		.status = status ? status : STATUS_LOST,
		.seq = channel->ring.acknowledged,
	};
	char quoted[300];

	if (!page || atomic_load(&channel->state) == CHANNEL_LOST)
		return;
	atomic_store(&channel->state, CHANNEL_LOST);
	page->lost = header.status;
	snprintf(page->text, sizeof(page->text), "%s", text);
	atomic_store_explicit(&page->state, CHANNEL_LOST, memory_order_release);
	for (uint16_t tag = 0; tag < CHANNEL_SLOTS; tag++) {
		header.tag = tag;
		if (ring_waits(&channel->ring, tag))
			replies_answer(&channel->replies, &header, NULL, 0, 0);
		else /* its call is still in the ring: it looks at the state */
			wait_wake(&channel->replies.slots[tag].answered);
	}
	atomic_fetch_add(&page->progress, 1);
	wait_wake(&page->progress);
	stripes_close(&channel->stripes);
	replies_drop_input(&channel->replies);
	link_close(channel->link);
	channel->link = NULL;
	if (channel->gone || channel->stopping || channel->parted)
		return;
	atomic_fetch_add(&channel->server->lost, 1);
	log_warn("channel.lost", "app=%d status=%u in_flight=%llu text=%s", channel->peer.pid,
		header.status, (unsigned long long)ring_in_flight(&channel->ring),
		log_quote(quoted, sizeof(quoted), text));
}

bool channel_robbed(const struct channel *channel)
{
	return segment_broken() || stripes_robbed(&channel->stripes);
}

/* The connections are gone: the session goes on where the agent takes us back, or is lost with
 * what the agent says of it. False: it is lost. */
static bool channel_cut(struct channel *channel, uint64_t now, const char *text)
{
	if (channel->gone || channel->stopping || channel->ring.bye || channel_robbed(channel))
		return false;
	stripes_close(&channel->stripes);
	link_close(channel->link);
	channel->link = NULL;
	channel->broken_at = 0;
	outbound_clear(&channel->out);
	replies_drop_input(&channel->replies);
	if (!resume_start(&channel->resume, channel->replies.numbered, now, text))
		return false;
	log_warn("channel.cut", "app=%d in_flight=%llu text=\"%s\"", channel->peer.pid,
		(unsigned long long)ring_in_flight(&channel->ring), text);
	return true;
}

void channel_broke(struct channel *channel, uint64_t now, const char *text)
{
	if (!channel_cut(channel, now, text))
		channel_lose(channel, STATUS_LOST, text);
}

static void channel_not_resumed(struct channel *channel, uint32_t status, const char *text)
{
	atomic_fetch_add(&channel->server->resumes_failed, channel->resume.possible);
	channel_lose(channel, status, text);
}

/* There is no link: the agent ended the session and says why, or nobody knows more than that
 * the wire is gone. */
static void channel_not_taken(struct channel *channel)
{
	const struct resume *resume = &channel->resume;
	const struct session_welcome *welcome = &resume->welcome;
	char text[400];

	if (welcome->status == STATUS_NOT_PERMITTED && welcome->ended) {
		snprintf(text, sizeof(text), "agent: %s", welcome->text);
		channel_not_resumed(channel, welcome->ended, text);
		return;
	}
	if (!resume->possible) {
		channel_not_resumed(channel, STATUS_LOST, resume->cut.text);
		return;
	}
	snprintf(text, sizeof(text), "the connection broke, and: %s", resume->error.text);
	channel_not_resumed(channel, STATUS_LOST, text);
}

void channel_poison(struct channel *channel, const struct error *error)
{
	atomic_fetch_add(&channel->server->poisoned, 1);
	channel_lose(channel, STATUS_LOST, error->text);
}

void channel_poison_robbed(struct channel *channel)
{
	struct error error;

	error_set(&error, 0, "the program took shared memory away");
	channel_poison(channel, &error);
}

void channel_resumed(struct channel *channel, uint64_t now)
{
	struct resume *resume = &channel->resume;
	uint64_t taken = resume->welcome.taken;
	struct stripes_setting setting;

	channel->link = resume_finish(resume);
	if (atomic_load(&channel->state) == CHANNEL_LOST) {
		link_close(channel->link);
		channel->link = NULL;
		return;
	}
	if (!channel->link) {
		channel_not_taken(channel);
		return;
	}
	if (resume->welcome.features & SESSION_FEATURE_LOCAL) {
		struct error error;

		channel->adopting = false;
		if (local_resume(channel, &error)) {
			channel_not_resumed(channel, STATUS_LOST, error.text);
			return;
		}
	} else if (channel->adopting) {
		struct error error;

		if (adopt_resumed(channel, taken, &error)) {
			channel_not_resumed(channel, STATUS_LOST, error.text);
			return;
		}
	} else if (ring_rewind(&channel->ring, taken)) {
		channel_not_resumed(
			channel, STATUS_LOST, "the agent has taken what was never sent");
		return;
	}
	setting = channel_stripes(channel);
	stripes_init(
		&channel->stripes, channel->link, &resume->hello, &resume->welcome, &setting);
	pthread_mutex_lock(&channel->server->lock);
	memcpy(channel->renewal.secret, resume->hello.secret, sizeof(resume->hello.secret));
	channel->renewal.place = channel->link->place;
	pthread_mutex_unlock(&channel->server->lock);
	channel_name(channel);
	channel->told = channel->replies.numbered;
	channel->told_landed = channel->replies.landed;
	channel->heard_at = channel->said_at = channel->work_at = now;
	channel->pinged_at = 0;
	atomic_fetch_add(&resume->times, 1);
	atomic_fetch_add(&channel->server->resumed, 1);
	log_info("channel.resumed", "app=%d after_ms=%llu taken=%llu counted=%llu",
		channel->peer.pid, (unsigned long long)((now - resume->cut_at) / MS),
		(unsigned long long)taken, (unsigned long long)channel->replies.numbered);
}
