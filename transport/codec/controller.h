/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether coding a payload pays, for one thread that sends.  While the socket holds what is on
 * its way, coding goes on beside it: the thread brings min(speed of coding, ratio * wire)
 * payload bytes a second, or without coding what the wire takes.  It pays where that is
 * CONTROLLER_GAIN times as much.
 *
 * How fast the wire is, is seen while the socket is full, and only then: from the bytes that
 * went between two such moments without a pause.  Until it was full once, nothing is coded.
 * Where coding is what holds the thread up, the socket is never full again though the wire has
 * become faster: after a while some payloads go as they are, and show it.
 *
 * Pure: times are the caller's, ns of any clock.  One thread at a time.
 */
#ifndef VCUDA_TRANSPORT_CODEC_CONTROLLER_H
#define VCUDA_TRANSPORT_CODEC_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/codec/codec.h"

#define CONTROLLER_GAIN 1.1

enum controller_mode { CONTROLLER_OFF, CONTROLLER_AUTO, CONTROLLER_ALWAYS, CONTROLLER_MODES };

struct controller {
	enum controller_mode mode;
	double wire;		   /* bytes/s; 0: not known */
	double speed[CODEC_KINDS]; /* payload bytes/s */
	double trust[CODEC_KINDS]; /* what comes of a guess, 1: as guessed */
	uint64_t sent;		   /* bytes on the wire, in all */
	uint64_t full_at;	   /* ns, when the socket was full; 0: it paused since */
	uint64_t full_sent;	   /* `sent` then */
	uint64_t coding_ns;	   /* spent with coding since it was full */
	uint64_t probe;		   /* payload bytes that go as they are */
};

/* auto, off or always. 0, or -EINVAL. */
int controller_parse(const char *text, enum controller_mode *mode);
const char *controller_mode_name(enum controller_mode mode);

void controller_init(struct controller *controller, enum controller_mode mode);

/* The socket took N bytes. */
void controller_sent(struct controller *controller, uint64_t n);
/* It took no more. */
void controller_full(struct controller *controller, uint64_t now);
/* There is nothing to send: the wire may have nothing to carry. */
void controller_pause(struct controller *controller);

/* Whether a sample is worth its while: no coding could pay otherwise. */
bool controller_asks(const struct controller *controller);

/* How N bytes of which GUESS is known are to go. */
enum codec_kind controller_choose(
	struct controller *controller, const struct codec_guess *guess, uint32_t n);

/* N bytes were coded as KIND to CODED (0: to no fewer) in NS, GUESS and all. */
void controller_coded(struct controller *controller, enum codec_kind kind,
	const struct codec_guess *guess, uint32_t n, uint32_t coded, uint64_t ns);

#endif
