/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sidecar does, as JSON: `vcuda-client status`, `vcuda status`. docs/SIDECAR.md names
 * the fields.
 */
#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include "common/version.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/server/state.h"

static void add(cJSON *object, const char *name, uint64_t value)
{
	cJSON_AddNumberToObject(object, name, (double)value);
}

static void add_wire(cJSON *object, uint64_t frames_sent, uint64_t bytes_sent,
	uint64_t frames_received, uint64_t bytes_received)
{
	add(object, "frames_sent", frames_sent);
	add(object, "bytes_sent", bytes_sent);
	add(object, "frames_received", frames_received);
	add(object, "bytes_received", bytes_received);
}

/* A program's name is the peer's: cJSON escapes it, but only UTF-8 is JSON. */
void state_text(cJSON *object, const char *name, const char *text)
{
	char clean[AGENTS_TEXT];
	size_t i;

	for (i = 0; text[i] && i < sizeof(clean) - 1; i++)
		clean[i] = (unsigned char)text[i] < ' ' || (unsigned char)text[i] > 126
				   ? '?'
				   : text[i];
	clean[i] = 0;
	cJSON_AddStringToObject(object, name, clean);
}

static void add_pieces_of(cJSON *object, const char *name, const struct piece_counts *counts)
{
	cJSON *one = cJSON_AddObjectToObject(object, name);

	add(one, "payload_bytes", atomic_load(&counts->payload));
	add(one, "wire_bytes", atomic_load(&counts->wire));
	add(one, "saved_bytes", piece_saved(counts));
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		add(one, codec_name((enum codec_kind)kind), atomic_load(&counts->pieces[kind]));
	add(one, "named", atomic_load(&counts->named));
	add(one, "named_bytes", atomic_load(&counts->named_bytes));
}

/* What stripes carried, and how. */
static void add_pieces(cJSON *object, const struct stripes_counts *counts)
{
	cJSON *pieces = cJSON_AddObjectToObject(object, "pieces");

	add_pieces_of(pieces, "sent", &counts->sent);
	add_pieces_of(pieces, "received", &counts->received);
}

/* Of all stripes to the agent, from the time that their sockets were full; 0: they never were.
 */
static uint64_t wire_rate(const struct channel *channel)
{
	return stripes_count(&channel->stripes) *
	       atomic_load_explicit(&channel->pieces.sent.rate, memory_order_relaxed);
}

static cJSON *status_channel(struct channel *channel, uint64_t now)
{
	const struct options *options = &channel->server->options;
	cJSON *object = cJSON_CreateObject();

	add(object, "pid", (uint64_t)channel->peer.pid);
	add(object, "uid", channel->peer.uid);
	state_text(object, "program", channel->program);
	cJSON_AddStringToObject(object, "state",
		atomic_load(&channel->state) != CHANNEL_OPEN ? "lost"
		: resume_is_cut(&channel->resume)	     ? "reconnecting"
							     : "open");
	cJSON_AddStringToObject(object, "session", channel->subject.session);
	state_text(object, "agent", channel->resume.address);
	add(object, "seconds", (now - channel->opened_at) / 1000000000u);
	add_wire(object, channel->frames_sent, channel->bytes_sent, channel->frames_received,
		channel->bytes_received);
	add(object, "in_flight", channel->in_flight);
	add(object, "calls_waiting", channel->waiting);
	add(object, "pinned_segments", channel->pinned);
	add(object, "pinned_bytes", channel->pinned_bytes);
	add(object, "resumed", channel->resume.times);
	add(object, "lanes", stripes_count(&channel->stripes));
	add(object, "lanes_refused", stripes_refused(&channel->stripes));
	cJSON_AddStringToObject(object, "transport", atomic_load(&channel->transport));
	cJSON_AddStringToObject(object, "compress",
		controller_mode_name(
			channel->stripes.coded ? options->compress : CONTROLLER_OFF));
	cJSON_AddBoolToObject(object, "upload_cache", channel->stripes.named);
	add_pieces(object, &channel->pieces);
	add(object, "wire_bytes_per_second", wire_rate(channel));
	return object;
}

/* What the sidecar carries between agents, since they do not reach each other. */
static void add_relays(cJSON *root, const struct relays *all, uint64_t now)
{
	cJSON *relays = cJSON_AddArrayToObject(root, "relays");
	struct relay_view view;

	for (const struct relay *r = relay_next(all, NULL, &view); r;
		r = relay_next(all, r, &view)) {
		cJSON *object = cJSON_CreateObject();
		cJSON *agents = cJSON_AddArrayToObject(object, "agents");
		cJSON *sessions = cJSON_AddArrayToObject(object, "sessions");

		add(object, "pid", (uint64_t)view.pid);
		for (int i = 0; i < 2; i++) {
			cJSON_AddItemToArray(agents, cJSON_CreateString(view.agents[i]));
			cJSON_AddItemToArray(sessions, cJSON_CreateString(view.sessions[i]));
		}
		add(object, "seconds", (now - view.opened_at) / 1000000000u);
		add(object, "bytes", view.bytes);
		cJSON_AddItemToArray(relays, object);
	}
}

void state_totals(const struct server *server, struct wire_totals *totals)
{
	*totals = (struct wire_totals){.frames_sent = server->frames_sent,
		.bytes_sent = server->bytes_sent,
		.frames_received = server->frames_received,
		.bytes_received = server->bytes_received};
	stripes_add(&totals->pieces, &server->pieces);
	for (const struct channel *c = server->channels; c; c = c->next) {
		bool open = atomic_load(&c->state) == CHANNEL_OPEN;

		totals->channels += open;
		totals->reconnecting += open && resume_is_cut(&c->resume);
		totals->frames_sent += c->frames_sent;
		totals->bytes_sent += c->bytes_sent;
		totals->frames_received += c->frames_received;
		totals->bytes_received += c->bytes_received;
		if (open)
			totals->stripes += stripes_count(&c->stripes);
		for (size_t t = 0; open && t < STATUS_TRANSPORTS && transport_at(t); t++)
			totals->by_transport[t] +=
				!strcmp(transport_at(t)->name, atomic_load(&c->transport));
		if (open && wire_rate(c) > totals->wire_rate)
			totals->wire_rate = wire_rate(c);
		stripes_add(&totals->pieces, &c->pieces);
	}
}

static cJSON *status_object(struct server *server)
{
	const struct options *options = &server->options;
	cJSON *root = cJSON_CreateObject(), *channels, *totals;
	struct wire_totals wire;
	uint64_t now = wait_now();

	cJSON_AddStringToObject(root, "version", VCUDA_VERSION);
	add(root, "pid", (uint64_t)getpid());
	state_text(root, "socket", options->socket);
	cJSON_AddStringToObject(root, "ipc", options->mode == CHANNEL_HOST ? "host" : "pod");
	state_text(root, "agent", options->agent);
	add(root, "seconds", (now - server->started) / 1000000000u);
	cJSON_AddBoolToObject(root, "draining", atomic_load(&server->draining));
	channels = cJSON_AddArrayToObject(root, "channels");
	pthread_mutex_lock(&server->lock);
	for (struct channel *channel = server->channels; channel; channel = channel->next) {
		if (atomic_load(&channel->state) == CHANNEL_OPENING)
			continue;
		cJSON_AddItemToArray(channels, status_channel(channel, now));
	}
	add_relays(root, &server->relays, now);
	state_totals(server, &wire);
	pthread_mutex_unlock(&server->lock);
	totals = cJSON_AddObjectToObject(root, "totals");
	add(totals, "attached", server->attached);
	add(totals, "refused", server->refused);
	add(totals, "poisoned", server->poisoned);
	add(totals, "lost", server->lost);
	add(totals, "resumed", server->resumed);
	add(totals, "resumes_failed", server->resumes_failed);
	add_wire(totals, wire.frames_sent, wire.bytes_sent, wire.frames_received,
		wire.bytes_received);
	add(totals, "relays", server->relays.opened);
	add(totals, "relayed_bytes", server->relays.bytes);
	add(totals, "lanes", wire.stripes);
	add_pieces(totals, &wire.pieces);
	return root;
}

char *sidecar_status(struct server *server)
{
	cJSON *root = status_object(server);
	char *text = cJSON_Print(root);

	cJSON_Delete(root);
	return text;
}
