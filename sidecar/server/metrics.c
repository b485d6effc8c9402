/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sidecar counts, for Prometheus and for `vcuda stats`.  docs/SIDECAR.md names the
 * metrics.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/version.h"
#include "sidecar/channel/channel.h"
#include "sidecar/server/state.h"

/* All channels' and those of channels that are gone; exemplars are of those that live. */
static void add_up(struct server *server, struct latency classes[LATENCY_CLASSES],
	struct latency_exemplar (*exemplars)[LATENCY_BUCKETS])
{
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		latency_merge(&classes[class], &server->latency[class]);
	for (struct channel *channel = server->channels; channel; channel = channel->next) {
		if (atomic_load(&channel->state) == CHANNEL_OPENING)
			continue;
		for (int class = 0; class < LATENCY_CLASSES; class ++) {
			struct latency one = {0};

			latency_merge(&one, &channel->timing.classes[class]);
			latency_merge(&classes[class], &one);
			for (int i = 0; i < LATENCY_BUCKETS; i++) {
				struct latency_exemplar *exemplar = &exemplars[class][i];

				if (!one.counts[i])
					continue;
				memcpy(exemplar->session, channel->subject.session,
					sizeof(exemplar->session));
				exemplar->ns = one.last[i];
			}
		}
	}
}

static void one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type,
		name, value);
}

static void metrics_two(
	FILE *out, const char *name, const char *help, uint64_t sent, uint64_t received)
{
	fprintf(out,
		"# HELP %s %s\n# TYPE %s counter\n%s{direction=\"sent\"} %" PRIu64
		"\n%s{direction=\"received\"} %" PRIu64 "\n",
		name, help, name, name, sent, name, received);
}

static void metrics_pieces(FILE *out, const struct stripes_counts *counts)
{
	const struct {
		const char *direction;
		const struct piece_counts *counts;
	} ways[] = {{"sent", &counts->sent}, {"received", &counts->received}};

	metrics_two(out, "vcuda_sidecar_stripe_payload_bytes_total",
		"Payloads that stripes carried, before they were coded.",
		atomic_load(&counts->sent.payload), atomic_load(&counts->received.payload));
	metrics_two(out, "vcuda_sidecar_stripe_wire_bytes_total",
		"The same as they went over the wire.", atomic_load(&counts->sent.wire),
		atomic_load(&counts->received.wire));
	fprintf(out, "# HELP vcuda_sidecar_stripe_pieces_total Payloads, by how they went.\n"
		     "# TYPE vcuda_sidecar_stripe_pieces_total counter\n");
	for (int way = 0; way < 2; way++)
		for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
			fprintf(out,
				"vcuda_sidecar_stripe_pieces_total{direction=\"%s\",coding="
				"\"%s\"} %" PRIu64 "\n",
				ways[way].direction, codec_name((enum codec_kind)kind),
				atomic_load(&ways[way].counts->pieces[kind]));
	fprintf(out,
		"vcuda_sidecar_stripe_pieces_total{direction=\"sent\",coding=\"name\"} %" PRIu64
		"\n",
		atomic_load(&counts->sent.named));
	one(out, "vcuda_sidecar_upload_cache_hit_bytes_total", "counter",
		"Payloads that did not travel, since the agent had them.",
		atomic_load(&counts->sent.named_bytes));
}

char *sidecar_metrics(struct server *server, bool openmetrics)
{
	struct latency classes[LATENCY_CLASSES] = {0};
	struct latency_exemplar exemplars[LATENCY_CLASSES][LATENCY_BUCKETS] = {0};
	struct wire_totals wire;
	unsigned relays;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	pthread_mutex_lock(&server->lock);
	add_up(server, classes, exemplars);
	state_totals(server, &wire);
	relays = server->relays.count;
	pthread_mutex_unlock(&server->lock);
	fprintf(out, "# HELP vcuda_sidecar_info What this sidecar is.\n"
		     "# TYPE vcuda_sidecar_info gauge\n"
		     "vcuda_sidecar_info{version=\"" VCUDA_VERSION "\"} 1\n");
	one(out, "vcuda_sidecar_channels", "gauge", "Programs that are joined.", wire.channels);
	one(out, "vcuda_sidecar_sessions_reconnecting", "gauge",
		"Sessions whose connections are cut, while the grace lasts.",
		wire.reconnecting);
	fprintf(out,
		"# HELP vcuda_sidecar_resumes_total How cut connections ended.\n"
		"# TYPE vcuda_sidecar_resumes_total counter\n"
		"vcuda_sidecar_resumes_total{result=\"resumed\"} %" PRIu64 "\n"
		"vcuda_sidecar_resumes_total{result=\"failed\"} %" PRIu64 "\n",
		atomic_load(&server->resumed), atomic_load(&server->resumes_failed));
	one(out, "vcuda_sidecar_attached_total", "counter", "Programs that got a session.",
		server->attached);
	one(out, "vcuda_sidecar_refused_total", "counter", "Programs that got none.",
		server->refused);
	one(out, "vcuda_sidecar_lost_total", "counter", "Sessions that did not end in order.",
		server->lost);
	one(out, "vcuda_sidecar_poisoned_total", "counter",
		"Programs that broke a rule of the channel.", server->poisoned);
	fprintf(out,
		"# HELP vcuda_sidecar_frames_total Frames to and from agents.\n"
		"# TYPE vcuda_sidecar_frames_total counter\n"
		"vcuda_sidecar_frames_total{direction=\"sent\"} %" PRIu64 "\n"
		"vcuda_sidecar_frames_total{direction=\"received\"} %" PRIu64 "\n"
		"# HELP vcuda_sidecar_bytes_total Bytes to and from agents.\n"
		"# TYPE vcuda_sidecar_bytes_total counter\n"
		"vcuda_sidecar_bytes_total{direction=\"sent\"} %" PRIu64 "\n"
		"vcuda_sidecar_bytes_total{direction=\"received\"} %" PRIu64 "\n",
		wire.frames_sent, wire.frames_received, wire.bytes_sent, wire.bytes_received);
	one(out, "vcuda_sidecar_relays", "gauge",
		"Pairs of agents between which it carries copies, for a program each.", relays);
	one(out, "vcuda_sidecar_relayed_bytes_total", "counter",
		"Bytes that went so: none of bytes_total.", server->relays.bytes);
	one(out, "vcuda_sidecar_stripes", "gauge",
		"Connections that carry payloads of large copies.", wire.stripes);
	metrics_pieces(out, &wire.pieces);
	fprintf(out, "# HELP vcuda_sidecar_channels_by_transport Programs that are joined.\n"
		     "# TYPE vcuda_sidecar_channels_by_transport gauge\n");
	for (size_t t = 0; t < STATUS_TRANSPORTS && transport_at(t); t++)
		fprintf(out,
			"vcuda_sidecar_channels_by_transport{transport=\"%s\"} %" PRIu64 "\n",
			transport_at(t)->name, wire.by_transport[t]);
	one(out, "vcuda_sidecar_wire_bytes_per_second", "gauge",
		"What the stripes of one program sent a second while they were full: the "
		"highest "
		"of those that are joined.",
		wire.wire_rate);
	latency_print(out, "vcuda_sidecar_call_seconds",
		"Until a call was answered, a post was acknowledged, a program had its "
		"session.",
		classes, openmetrics ? exemplars : NULL);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return openmetrics ? latency_openmetrics(text) : text;
}

static void add_call(cJSON *list, const struct timing_call *call)
{
	static const struct {
		const char *name;
		double part;
	} parts[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}};
	uint64_t count = timing_count(call);
	cJSON *object;

	if (!count)
		return;
	object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "op", call->op);
	cJSON_AddNumberToObject(object, "count", (double)count);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		cJSON_AddNumberToObject(
			object, parts[i].name, (double)timing_quantile(call, parts[i].part));
	cJSON_AddItemToArray(list, object);
}

char *sidecar_calls(struct server *server)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *sessions = cJSON_AddArrayToObject(root, "sessions");
	char *text;

	pthread_mutex_lock(&server->lock);
	for (struct channel *channel = server->channels; channel; channel = channel->next) {
		uint32_t n = __atomic_load_n(&channel->timing.call_count, __ATOMIC_ACQUIRE);
		cJSON *object, *calls;

		if (atomic_load(&channel->state) == CHANNEL_OPENING)
			continue;
		object = cJSON_CreateObject();
		cJSON_AddStringToObject(object, "session", channel->subject.session);
		cJSON_AddNumberToObject(object, "pid", channel->peer.pid);
		state_text(object, "program", channel->program);
		calls = cJSON_AddArrayToObject(object, "calls");
		for (uint32_t i = 0; i < n; i++)
			add_call(calls, &channel->timing.calls[i]);
		cJSON_AddItemToArray(sessions, object);
	}
	pthread_mutex_unlock(&server->lock);
	text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}
