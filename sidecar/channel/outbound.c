/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/outbound.h"

#include <errno.h>
#include <string.h>

void outbound_clear(struct outbound *out)
{
	out->first = out->count = 0;
	out->used = 0;
}

/* N bytes that stand at buffer + used. */
static void outbound_add(struct outbound *out, size_t n)
{
	struct iovec *last = out->count > out->first ? &out->iov[out->count - 1] : NULL;
	unsigned char *at = out->buffer + out->used;

	if (last && (unsigned char *)last->iov_base + last->iov_len == at)
		last->iov_len += n;
	else
		out->iov[out->count++] = (struct iovec){at, n};
	out->used += n;
}

/* The header says which stripe: what the agent reads there is this payload. */
static bool outbound_stripe(
	struct outbound *out, struct stripes *stripes, const struct ring_entry *entry)
{
	struct frame_header header = entry->header;
	unsigned stripe = stripes_queue(stripes, entry->bulk, entry->bulk_bytes);

	if (!stripe)
		return false;
	header.flags = (uint8_t)(stripe << FRAME_STRIPE_SHIFT);
	memcpy(out->buffer + out->used, &header, sizeof(header));
	return true;
}

int outbound_gather(
	struct outbound *out, struct ring *ring, struct stripes *stripes, struct error *error)
{
	size_t bulk = 0;
	int taken = 0;

	outbound_clear(out);
	out->held = false;
	while (out->count <= OUTBOUND_IOV - 2 &&
		out->used <= sizeof(out->buffer) - RING_ENTRY_MAX && bulk < OUTBOUND_BULK) {
		struct ring_entry entry;
		int ret = ring_pop(ring, out->buffer + out->used, &entry, error);

		if (ret < 0)
			return ret;
		if (!ret)
			break;
		out->held = entry.bulk_bytes &&
			    stripes_hold(stripes, entry.bulk_bytes, &out->held_until);
		if (out->held) {
			ring_rewind(ring, entry.header.seq - 1);
			break;
		}
		if (out->timing)
			timing_taken(out->timing, &entry.header);
		if (entry.bulk_bytes && outbound_stripe(out, stripes, &entry)) {
			outbound_add(out, entry.bytes);
			taken++;
			continue;
		}
		outbound_add(out, entry.bytes);
		if (entry.bulk_bytes) {
			out->iov[out->count++] =
				(struct iovec){(void *)entry.bulk, entry.bulk_bytes};
			bulk += entry.bulk_bytes;
		}
		taken++;
	}
	if (out->timing)
		timing_gathered(out->timing);
	out->frames += (uint64_t)taken;
	return taken;
}

bool outbound_control(struct outbound *out, uint8_t kind, uint64_t seq)
{
	struct frame_header header = {.kind = kind, .seq = seq, .magic = FRAME_MAGIC};

	if (outbound_empty(out))
		outbound_clear(out);
	if (out->count > OUTBOUND_IOV || sizeof(out->buffer) - out->used < sizeof(header))
		return false;
	memcpy(out->buffer + out->used, &header, sizeof(header));
	outbound_add(out, sizeof(header));
	out->frames++;
	return true;
}

ssize_t outbound_send(struct outbound *out, struct link *link)
{
	ssize_t sent = link_send(link, out->iov + out->first, out->count - out->first);
	size_t left;

	if (sent == -EAGAIN)
		return 0;
	if (sent < 0)
		return sent;
	out->bytes += (uint64_t)sent;
	for (left = (size_t)sent; left; out->first++) {
		struct iovec *iov = &out->iov[out->first];

		if (left < iov->iov_len) {
			iov->iov_base = (char *)iov->iov_base + left;
			iov->iov_len -= left;
			break;
		}
		left -= iov->iov_len;
	}
	return sent;
}
