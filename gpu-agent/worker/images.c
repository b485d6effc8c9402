/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/worker/worker_state.h"

/* The front reads and hashes some GB a second, and others may be before us. */
#define ANSWER_NS 10000000000ull

static int images_say(struct worker *w, enum handoff_what what, const uint8_t digest[32],
	uint64_t size, int fd)
{
	static struct handoff h;

	h = (struct handoff){.version = HANDOFF_VERSION, .what = what, .bytes = size};
	memcpy(h.digest, digest, sizeof(h.digest));
	/* A front that does not read is not waited for: the program sends the image. */
	return descriptors_send(w->handoff, &h, sizeof(h), &fd, fd >= 0, MSG_DONTWAIT);
}

unsigned char *images_want(struct worker *w, const uint8_t digest[32], uint64_t size)
{
	struct images_wait *wait = &w->images;
	uint64_t deadline = wait_now() + ANSWER_NS;

	if (!w->config->cache_dir[0] || wait->mute)
		return NULL;
	memcpy(wait->digest, digest, sizeof(wait->digest));
	wait->size = size;
	wait->bytes = NULL;
	if (images_say(w, HANDOFF_IMAGE_WANT, digest, size, -1))
		return NULL;
	wait->waits = true;
	while (wait->waits && worker_hear(w, deadline))
		;
	if (wait->waits && !w->end.ended) {
		wait->mute = true;
		log_warn("images.slow", "text=\"the cache of images does not answer; the "
					"program sends what it loads\"");
	}
	wait->waits = false;
	return wait->bytes;
}

void images_answer(struct worker *w, const struct handoff *h, int descriptor)
{
	cleanup_close int fd = descriptor;
	struct images_wait *wait = &w->images;
	uint64_t at = 0;

	wait->mute = false;
	/* One that came too late is of another. */
	if (!wait->waits || h->bytes != wait->size ||
		memcmp(h->digest, wait->digest, sizeof(wait->digest)))
		return;
	wait->waits = false;
	wait->bytes = fd < 0 ? NULL : malloc(wait->size + 1);
	while (wait->bytes && at < wait->size) {
		ssize_t n = pread(fd, wait->bytes + at, wait->size - at, (off_t)at);

		if (n > 0) {
			at += (uint64_t)n;
			continue;
		}
		free(wait->bytes);
		wait->bytes = NULL;
	}
	if (wait->bytes)
		wait->bytes[wait->size] = 0;
}

void images_ask_again(struct worker *w)
{
	w->images.mute = false;
	if (w->images.waits)
		images_say(w, HANDOFF_IMAGE_WANT, w->images.digest, w->images.size, -1);
}

void images_put(struct worker *w, const uint8_t digest[32], const void *bytes, uint64_t size)
{
	cleanup_close int fd = -1;
	uint64_t at = 0;

	if (!w->config->cache_dir[0] || w->images.mute || size > w->config->cache_bytes)
		return;
	fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	while (fd >= 0 && at < size) {
		ssize_t n = write(fd, (const char *)bytes + at, size - at);

		if (n <= 0)
			return;
		at += (uint64_t)n;
	}
	if (fd >= 0 && !fcntl(fd, F_ADD_SEALS,
			       F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		images_say(w, HANDOFF_IMAGE_PUT, digest, size, fd);
}
