/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/images.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/cache/images.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"

/* Of one worker at once. It waits for what it wants; one that does not, or brings faster than
 * can be written, is told that there is nothing, or has its images dropped. */
#define WANTS_MOST 4
#define PUTS_MOST 64
/* Bytes that wait to be written: of one worker, and of all. */
#define PUT_BYTES_WORKER (2 * IMAGES_BYTES_MOST)
#define PUT_BYTES_ALL (4 * IMAGES_BYTES_MOST)
#define LOOK_NS 5000000000ull /* the thread without a job looks whether it is over */
#define CLOSE_NS 2000000000ull

struct job {
	struct job *next;
	uint32_t number; /* of the worker that it is for */
	bool put;
	uint8_t digest[32];
	uint64_t size;
	char tenant[64];
	int fd;	 /* what was brought, or what was found */
	int ret; /* of the thread */
};

struct line {
	struct job *first, **last;
};

struct images {
	struct watch finished; /* eventfd: some are done */
	uint64_t put_bytes;    /* the front's: on their way */
	const struct agent_config *config;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* Under the lock: */
	struct line wants, puts, done;
	bool over; /* the thread is to end */
	bool gone; /* it does */
};

const char *image_fate_name(enum image_fate fate)
{
	static const char *const names[IMAGE_FATES] = {
		"hit", "miss", "kept", "dropped", "wrong"};

	return names[fate];
}

static void line_init(struct line *line)
{
	*line = (struct line){.last = &line->first};
}

static void line_add(struct line *line, struct job *job)
{
	job->next = NULL;
	*line->last = job;
	line->last = &job->next;
}

static struct job *line_pop(struct line *line)
{
	struct job *job = line->first;

	if (!job)
		return NULL;
	line->first = job->next;
	if (!line->first)
		line->last = &line->first;
	return job;
}

static void job_free(struct job *job)
{
	if (job->fd >= 0)
		close(job->fd);
	free(job);
}

/* --- the thread --------------------------------------------------------------------------- */

static void job_do(const struct agent_config *config, struct job *job)
{
	const struct images_place place = {
		.folder = config->cache_dir,
		.tenant = config->cache_shared ? "" : job->tenant,
		.limit = config->cache_bytes,
	};

	if (job->put) {
		job->ret = images_write(&place, job->digest, job->fd, job->size);
		return;
	}
	job->fd = images_read(&place, job->digest, job->size);
	job->ret = job->fd < 0 ? job->fd : 0;
}

/* The next one, those that somebody waits for first; NULL: it is over. With the lock. */
static struct job *job_next(struct images *images)
{
	struct job *job = NULL;

	while (!images->over && !(job = line_pop(&images->wants)) &&
		!(job = line_pop(&images->puts))) {
		const struct timespec until = wait_deadline(LOOK_NS);

		pthread_cond_timedwait(&images->more, &images->lock, &until);
	}
	return job;
}

static void *images_run(void *arg)
{
	struct images *images = arg;
	struct job *job;

	pthread_mutex_lock(&images->lock);
	while ((job = job_next(images))) {
		pthread_mutex_unlock(&images->lock);
		job_do(images->config, job);
		pthread_mutex_lock(&images->lock);
		line_add(&images->done, job);
		eventfd_write(images->finished.fd, 1);
	}
	images->gone = true;
	pthread_cond_signal(&images->more);
	pthread_mutex_unlock(&images->lock);
	return NULL;
}

/* --- the front ---------------------------------------------------------------------------- */

static void count(struct front *front, enum image_fate fate, uint64_t bytes)
{
	front->counters.images[fate]++;
	front->counters.image_bytes[fate] += bytes;
}

/* Of a session that is still there; NULL: it is over. */
static struct pool_worker *worker_of(struct front *front, const struct job *job)
{
	for (uint32_t i = 0; i < front->pool.room; i++) {
		struct pool_worker *worker = &front->pool.workers[i];

		if (worker->number == job->number && worker->session)
			return worker;
	}
	return NULL;
}

/* FD: sealed memory, or -1. */
static void answer(struct front *front, struct pool_worker *worker, const uint8_t digest[32],
	uint64_t size, int fd)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_IMAGE, .bytes = size};

	memcpy(h.digest, digest, sizeof(h.digest));
	count(front, fd < 0 ? IMAGE_MISS : IMAGE_HIT, size);
	if (fd < 0 ? pool_say(worker, &h) : pool_say_with(worker, &h, fd))
		pool_fault(front, worker, "the worker does not take its IMAGE");
}

static void finish_put(struct front *front, struct pool_worker *worker, const struct job *job)
{
	front->images->put_bytes -= job->size;
	if (worker) {
		worker->image_puts--;
		worker->image_bytes -= job->size;
	}
	if (!job->ret) {
		count(front, IMAGE_KEPT, job->size);
	} else if (job->ret != -EBADMSG) {
		count(front, IMAGE_DROPPED, job->size);
		log_warn("cache.write", "cache_dir=%s bytes=%" PRIu64 " error=\"%s\"",
			front->config->cache_dir, job->size, strerror(-job->ret));
	} else {
		count(front, IMAGE_WRONG, job->size);
		if (worker)
			pool_fault(front, worker, "an image for the cache has another digest");
	}
}

static void finish(struct front *front, struct job *job)
{
	struct pool_worker *worker = worker_of(front, job);

	if (job->put) {
		finish_put(front, worker, job);
	} else if (worker) {
		worker->image_wants--;
		answer(front, worker, job->digest, job->size, job->fd);
	}
	job_free(job);
}

static void images_done(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;
	struct images *images = front->images;
	eventfd_t ignored;

	(void)mask;
	eventfd_read(watch->fd, &ignored);
	for (;;) {
		struct job *job;

		pthread_mutex_lock(&images->lock);
		job = line_pop(&images->done);
		pthread_mutex_unlock(&images->lock);
		if (!job)
			return;
		finish(front, job);
	}
}

static void job_submit(struct images *images, struct job *job)
{
	pthread_mutex_lock(&images->lock);
	line_add(job->put ? &images->puts : &images->wants, job);
	pthread_cond_signal(&images->more);
	pthread_mutex_unlock(&images->lock);
}

static struct job *job_new(const struct pool_worker *worker, const struct handoff *h)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->number = worker->number;
	job->fd = -1;
	job->size = h->bytes;
	memcpy(job->digest, h->digest, sizeof(job->digest));
	memcpy(job->tenant, worker->session->tenant->name, sizeof(job->tenant));
	return job;
}

static void want(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	struct job *job = NULL;

	if (front->images && worker->image_wants < WANTS_MOST)
		job = job_new(worker, h);
	if (!job) {
		answer(front, worker, h->digest, h->bytes, -1);
		return;
	}
	worker->image_wants++;
	job_submit(front->images, job);
}

static void put(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd)
{
	struct images *images = front->images;
	struct job *job = NULL;

	if (!images_sealed(*fd, h->bytes)) {
		pool_fault(front, worker, "an image for the cache is not in sealed memory");
		return;
	}
	if (images && worker->image_puts < PUTS_MOST &&
		worker->image_bytes + h->bytes <= PUT_BYTES_WORKER &&
		images->put_bytes + h->bytes <= PUT_BYTES_ALL)
		job = job_new(worker, h);
	if (!job) {
		count(front, IMAGE_DROPPED, h->bytes);
		return;
	}
	job->put = true;
	job->fd = *fd;
	*fd = -1;
	worker->image_puts++;
	worker->image_bytes += h->bytes;
	images->put_bytes += h->bytes;
	job_submit(images, job);
}

void images_request(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd)
{
	if (!h->bytes || h->bytes > IMAGES_BYTES_MOST)
		pool_fault(front, worker, "an image that is empty or too large");
	else if (h->what == HANDOFF_IMAGE_WANT)
		want(front, worker, h);
	else
		put(front, worker, h, fd);
}

int images_open(struct front *front, struct error *error)
{
	struct images *images;
	int fd, ret;

	if (!front->config->cache_dir[0])
		return 0;
	images = calloc(1, sizeof(*images));
	if (!images)
		return error_set(error, ENOMEM, "the cache of images");
	images->config = front->config;
	line_init(&images->wants);
	line_init(&images->puts);
	line_init(&images->done);
	pthread_mutex_init(&images->lock, NULL);
	wait_cond_init(&images->more);
	images->finished.fd = -1;
	front->images = images;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return error_set(error, errno, "eventfd");
	ret = events_watch(&front->events, &images->finished, fd, EPOLLIN, images_done);
	if (ret) {
		close(fd);
		return error_set(error, -ret, "epoll");
	}
	ret = pthread_create(&images->thread, NULL, images_run, images);
	return ret ? error_set(error, ret, "a thread for the cache of images") : 0;
}

/* Where the disk holds the thread the process ends without it. */
void images_close(struct front *front)
{
	struct images *images = front->images;
	const struct timespec until = wait_deadline(CLOSE_NS);
	struct job *job;
	bool gone;

	if (!images)
		return;
	pthread_mutex_lock(&images->lock);
	images->over = true;
	pthread_cond_signal(&images->more);
	while (!images->gone &&
		pthread_cond_timedwait(&images->more, &images->lock, &until) != ETIMEDOUT)
		;
	gone = images->gone;
	pthread_mutex_unlock(&images->lock);
	if (!gone)
		return;
	pthread_join(images->thread, NULL);
	while ((job = line_pop(&images->wants)) || (job = line_pop(&images->puts)) ||
		(job = line_pop(&images->done)))
		job_free(job);
	close(events_forget(&front->events, &images->finished));
	free(images);
	front->images = NULL;
}
