/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/codec/controller.h"

#include <errno.h>
#include <string.h>

#define SECOND 1e9
#define LEAST_NS 1000000u      /* less says more about the scheduler than about the wire */
#define WEIGHT 0.25	       /* of what was seen last */
#define FORGET (1.0 / 512)     /* of what was not seen again, for each payload */
#define PROBE_NS 250000000u    /* of coding without a full socket */
#define PROBE_BYTES (8u << 20) /* twice a socket's buffer (transport/socket_link.c) */
#define ALWAYS_RATIO 1.04      /* codec_encode gives up below 32/31 */

/* What one core of 2 GHz does, until it is seen. */
static const double speeds[CODEC_KINDS] = {
	[CODEC_ZSTD] = 3e8,
	[CODEC_PLANES_2] = 4e8,
	[CODEC_PLANES_4] = 4e8,
	[CODEC_PLANES_8] = 4e8,
};

static const char *const names[CONTROLLER_MODES] = {"off", "auto", "always"};

int controller_parse(const char *text, enum controller_mode *mode)
{
	for (unsigned i = 0; i < CONTROLLER_MODES; i++)
		if (!strcmp(text, names[i])) {
			*mode = (enum controller_mode)i;
			return 0;
		}
	return -EINVAL;
}

const char *controller_mode_name(enum controller_mode mode)
{
	return mode < CONTROLLER_MODES ? names[mode] : "unknown";
}

static void approach(double *value, double to, double weight)
{
	*value += (to - *value) * weight;
}

void controller_init(struct controller *controller, enum controller_mode mode)
{
	memset(controller, 0, sizeof(*controller));
	controller->mode = mode;
	memcpy(controller->speed, speeds, sizeof(speeds));
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		controller->trust[kind] = 1;
}

void controller_sent(struct controller *controller, uint64_t n)
{
	controller->sent += n;
}

void controller_full(struct controller *controller, uint64_t now)
{
	double rate;

	controller->coding_ns = controller->probe = 0;
	if (controller->full_at) {
		if (now - controller->full_at < LEAST_NS)
			return;
		rate = (double)(controller->sent - controller->full_sent) * SECOND /
		       (double)(now - controller->full_at);
		if (controller->wire > 0)
			approach(&controller->wire, rate, WEIGHT);
		else
			controller->wire = rate;
	}
	controller->full_at = now;
	controller->full_sent = controller->sent;
}

void controller_pause(struct controller *controller)
{
	controller->full_at = 0;
}

static bool coded_kind(unsigned kind)
{
	return kind >= CODEC_ZSTD;
}

bool controller_asks(const struct controller *controller)
{
	double best = 0;

	if (controller->mode != CONTROLLER_AUTO)
		return controller->mode == CONTROLLER_ALWAYS;
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		if (coded_kind(kind) && speeds[kind] > best)
			best = speeds[kind];
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		if (coded_kind(kind) && controller->speed[kind] > best)
			best = controller->speed[kind];
	return controller->wire > 0 && best >= CONTROLLER_GAIN * controller->wire;
}

static double ratio_of(
	const struct controller *controller, const struct codec_guess *guess, unsigned kind)
{
	return (double)guess->ratio[kind] * controller->trust[kind];
}

static enum codec_kind choose_smallest(const struct codec_guess *guess)
{
	enum codec_kind best = CODEC_RAW;
	double most = ALWAYS_RATIO;

	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		if (coded_kind(kind) && (double)guess->ratio[kind] > most) {
			most = (double)guess->ratio[kind];
			best = (enum codec_kind)kind;
		}
	return best;
}

enum codec_kind controller_choose(
	struct controller *controller, const struct codec_guess *guess, uint32_t n)
{
	enum codec_kind best = CODEC_RAW;
	double most = CONTROLLER_GAIN * controller->wire;

	if (controller->mode == CONTROLLER_ALWAYS)
		return choose_smallest(guess);
	if (controller->mode == CONTROLLER_OFF || controller->wire <= 0)
		return CODEC_RAW;
	if (controller->probe) {
		controller->probe -= n < controller->probe ? n : controller->probe;
		/* It took all of them at once: how fast it is, is not known any more. */
		if (!controller->probe)
			controller->wire = 0;
		return CODEC_RAW;
	}
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++) {
		double rate = ratio_of(controller, guess, kind) * controller->wire;

		if (!coded_kind(kind))
			continue;
		if (rate > controller->speed[kind])
			rate = controller->speed[kind];
		if (rate >= most) {
			/* The narrower planes, where they are about as good. */
			most = 1.02 * rate;
			best = (enum codec_kind)kind;
		}
	}
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		if (coded_kind(kind) && kind != best) {
			approach(&controller->speed[kind], speeds[kind], FORGET);
			approach(&controller->trust[kind], 1, FORGET);
		}
	return best;
}

void controller_coded(struct controller *controller, enum codec_kind kind,
	const struct codec_guess *guess, uint32_t n, uint32_t coded, uint64_t ns)
{
	double ratio = coded ? (double)n / coded : 1;

	if (!coded_kind(kind) || controller->mode != CONTROLLER_AUTO)
		return;
	if (ns)
		approach(&controller->speed[kind], (double)n * SECOND / (double)ns, WEIGHT);
	if (guess->ratio[kind] > 0)
		approach(&controller->trust[kind], ratio / (double)guess->ratio[kind], WEIGHT);
	controller->coding_ns += ns;
	if (controller->coding_ns >= PROBE_NS) {
		controller->coding_ns = 0;
		controller->probe = PROBE_BYTES;
	}
}
