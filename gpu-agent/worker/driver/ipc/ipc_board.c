/* SPDX-License-Identifier: Apache-2.0
 *
 * See ipc_board.h.
 */
#include "gpu-agent/worker/driver/ipc/ipc_board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/worker/worker_state.h"

#define LOOK_NS 50000000ull /* between two looks whether a recorder lives */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define BOARD_MAGIC 0x3153544e56454356ull /* "VCEVNTS1": another layout has another one */
/* No track that a protocol violation brought so far is used. */
#define NUMBERS_FULL (1ull << 47)

struct board_event {
	uint64_t recording; /* track and number; 0: none */
	uint64_t serial;    /* how many events were here before */
	uint64_t sessions[2];
};
struct board_track {
	uint64_t claim; /* session and last number; session 0: nobody's */
	uint64_t done;
};
struct board_page {
	uint64_t magic;
	uint64_t unused[7];
	struct board_event events[BOARD_EVENTS];
	struct board_track tracks[BOARD_TRACKS];
};
_Static_assert(sizeof(struct board_page) == BOARD_BYTES, "");

static uint64_t load(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static bool swap(uint64_t *at, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(
		at, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The word of a track becomes NUMBER unless it is more: whoever waits for it goes on. */
static void track_raise(struct board_track *track, uint64_t number)
{
	uint64_t done = load(&track->done);

	while (done < number && !swap(&track->done, done, number))
		done = load(&track->done);
}

/* ---- the memory ---- */

static CUresult board_map(struct worker *w, struct board *b)
{
	CUresult status;

	b->page = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->page == MAP_FAILED) {
		b->page = NULL;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Streams of any context use it: it is of one that stays. */
	status = worker_use(w, CONTEXT_PRIMARY(0));
	if (!status)
		status = w->cuda.cuMemHostRegister_v2(b->page, BOARD_BYTES,
			CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	if (status)
		return status;
	status = w->cuda.cuMemHostGetDevicePointer(&b->address, b->page, 0);
	if (status) {
		w->cuda.cuMemHostUnregister(b->page);
		b->address = 0;
	}
	return status;
}

static struct board *board_alloc(uint32_t device)
{
	struct board *b = calloc(1, sizeof(*b));

	if (b) {
		b->device = device;
		b->fd = -1;
	}
	return b;
}

void board_close(struct worker *w, struct board *b)
{
	if (b->address) {
		worker_use(w, CONTEXT_PRIMARY(0));
		w->cuda.cuMemHostUnregister(b->page);
	}
	if (b->page)
		munmap(b->page, BOARD_BYTES);
	if (b->fd >= 0)
		close(b->fd);
	free(b->tracks);
	free(b);
}

CUresult board_new(struct worker *w, uint32_t device, struct board **board)
{
	struct board *b = board_alloc(device);
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!b)
		return status;
	b->ours = true;
	b->fd = memfd_create("vcuda-events", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Reserved at once: later there may be none, and that would be a signal. */
	if (b->fd >= 0 && !posix_fallocate(b->fd, 0, BOARD_BYTES) &&
		!fcntl(b->fd, F_ADD_SEALS, SEALS))
		status = board_map(w, b);
	if (status) {
		board_close(w, b);
		return status;
	}
	b->page->magic = BOARD_MAGIC;
	*board = b;
	return CUDA_SUCCESS;
}

CUresult board_open(struct worker *w, uint32_t device, int *fd, struct board **board)
{
	int seals = fcntl(*fd, F_GET_SEALS);
	struct stat file;
	struct board *b;
	CUresult status;

	/* What could be cut off would end this process when it is read. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(*fd, &file) ||
		file.st_size != BOARD_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	b = board_alloc(device);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->fd = *fd;
	status = board_map(w, b);
	if (!status && load(&b->page->magic) != BOARD_MAGIC)
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = board_join(b);
	if (status) {
		b->fd = -1;
		board_close(w, b);
		return status;
	}
	*fd = -1;
	*board = b;
	return CUDA_SUCCESS;
}

/* ---- who is there ---- */

static struct flock board_lock(uint32_t session)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = session, .l_len = 1};
}

static bool board_lives(const struct board *b, uint64_t session)
{
	struct flock lock;

	if (!session || session > BOARD_SESSIONS)
		return false;
	lock = board_lock((uint32_t)session);
	return session == b->session || fcntl(b->fd, F_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static void event_drop(struct board_event *event, uint32_t session)
{
	__atomic_fetch_and(
		&event->sessions[session / 64], ~(1ull << session % 64), __ATOMIC_ACQ_REL);
}

/* What one that is gone left under that number: nobody waits for it. */
static void board_bury(struct board *b, uint32_t session)
{
	for (uint32_t i = 0; i < BOARD_EVENTS; i++)
		event_drop(&b->page->events[i], session);
	for (uint32_t i = 0; i < BOARD_TRACKS; i++) {
		struct board_track *track = &b->page->tracks[i];
		uint64_t claim = load(&track->claim);

		if (claim >> BOARD_SHIFT != session)
			continue;
		track_raise(track, claim & BOARD_NUMBERS);
		swap(&track->claim, claim, claim & BOARD_NUMBERS);
	}
}

CUresult board_join(struct board *b)
{
	for (uint32_t session = 1; session <= BOARD_SESSIONS; session++) {
		struct flock lock = board_lock(session);

		if (fcntl(b->fd, F_SETLK, &lock)) {
			if (errno == EAGAIN || errno == EACCES)
				continue;
			log_warn("worker.events", "error=\"%s\"", strerror(errno));
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
		board_bury(b, session);
		b->session = session;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- events ---- */

static struct board_event *event_at(const struct board *b, uint32_t number)
{
	return &b->page->events[number % BOARD_EVENTS];
}

/* As large as numbers get; what is above tells apart those that were at one place. */
static uint32_t event_number(const struct board *b, uint32_t place)
{
	return place + (uint32_t)load(&b->page->events[place].serial) * BOARD_EVENTS;
}

static bool event_unused(const struct board_event *event)
{
	return !(load(&event->sessions[0]) | load(&event->sessions[1]));
}

/* True: all that have it are gone. */
static bool event_bury(struct board *b, struct board_event *event)
{
	for (uint32_t session = 1; session <= BOARD_SESSIONS; session++)
		if (load(&event->sessions[session / 64]) >> session % 64 & 1 &&
			!board_lives(b, session))
			event_drop(event, session);
	return event_unused(event);
}

bool board_event_new(struct board *b, uint32_t *number)
{
	for (int look = 0; look < 2; look++)
		for (uint32_t i = 0; i < BOARD_EVENTS; i++) {
			uint32_t place = (b->next_event + i) % BOARD_EVENTS;
			struct board_event *event = &b->page->events[place];

			if (b->has[place] ||
				!(look ? event_bury(b, event) : event_unused(event)))
				continue;
			store(&event->recording, 0);
			store(&event->serial, load(&event->serial) + 1);
			b->next_event = place + 1;
			*number = event_number(b, place);
			return board_event_get(b, *number);
		}
	return false;
}

bool board_event_get(struct board *b, uint32_t number)
{
	uint32_t place = number % BOARD_EVENTS;

	if (number != event_number(b, place) || b->has[place] == UINT16_MAX)
		return false;
	if (!b->has[place]++)
		__atomic_fetch_or(&event_at(b, number)->sessions[b->session / 64],
			1ull << b->session % 64, __ATOMIC_ACQ_REL);
	b->uses++;
	return true;
}

void board_event_put(struct board *b, uint32_t number)
{
	if (!--b->has[number % BOARD_EVENTS])
		event_drop(event_at(b, number), b->session);
	b->uses--;
}

uint64_t board_event(const struct board *b, uint32_t number)
{
	return load(&event_at(b, number)->recording);
}

void board_event_set(struct board *b, uint32_t number, uint64_t recording)
{
	store(&event_at(b, number)->recording, recording);
}

/* ---- recordings ---- */

/* NULL: there is no such track. */
static struct board_track *track_of(const struct board *b, uint64_t recording)
{
	uint64_t track = recording >> BOARD_SHIFT;

	return track < BOARD_TRACKS ? &b->page->tracks[track] : NULL;
}

bool board_done(struct board *b, uint64_t recording, uint64_t *looked)
{
	uint64_t number = recording & BOARD_NUMBERS, now;
	struct board_track *track = track_of(b, recording);

	if (!track || load(&track->done) >= number)
		return true;
	if (looked) {
		now = wait_now();
		if (now - *looked < LOOK_NS)
			return false;
		*looked = now;
	}
	if (board_lives(b, load(&track->claim) >> BOARD_SHIFT))
		return false;
	track_raise(track, number);
	return true;
}

CUdeviceptr board_word(const struct board *b, uint64_t recording, uint64_t **host)
{
	*host = &track_of(b, recording)->done;
	return b->address + (CUdeviceptr)((char *)*host - (char *)b->page);
}

static struct board_own *own_of(struct board *b, const struct worker_stream *stream)
{
	for (uint32_t i = 0; i < b->track_count; i++)
		if (b->tracks[i].stream == stream)
			return &b->tracks[i];
	return NULL;
}

/* A track that nobody has, or one of a session that is gone. */
static bool track_claim(struct board *b, uint32_t index, bool gone, uint64_t *number)
{
	struct board_track *track = &b->page->tracks[index];
	uint64_t claim = load(&track->claim), done = load(&track->done);
	uint64_t owner = claim >> BOARD_SHIFT;

	if (gone ? board_lives(b, owner) : owner != 0)
		return false;
	*number = done > (claim & BOARD_NUMBERS) ? done : claim & BOARD_NUMBERS;
	if (*number >= NUMBERS_FULL ||
		!swap(&track->claim, claim, (uint64_t)b->session << BOARD_SHIFT | *number))
		return false;
	track_raise(track, *number);
	return true;
}

static struct board_own *own_new(struct board *b)
{
	struct board_own *tracks;
	uint64_t number;

	if (b->track_count == b->track_room) {
		uint32_t room = b->track_room ? 2 * b->track_room : 8;

		tracks = realloc(b->tracks, room * sizeof(*tracks));
		if (!tracks)
			return NULL;
		b->tracks = tracks;
		b->track_room = room;
	}
	for (int gone = 0; gone < 2; gone++)
		for (uint32_t i = 0; i < BOARD_TRACKS; i++)
			if (track_claim(b, i, gone, &number)) {
				b->tracks[b->track_count] =
					(struct board_own){.track = i, .number = number};
				return &b->tracks[b->track_count++];
			}
	return NULL;
}

CUresult board_next(struct board *b, const struct worker_stream *stream, uint64_t *recording)
{
	struct board_own *own = own_of(b, stream);

	for (uint32_t i = 0; !own && i < b->track_count; i++)
		if (!b->tracks[i].stream && !b->tracks[i].stale)
			own = &b->tracks[i];
	if (!own)
		own = own_new(b);
	if (!own || own->number >= NUMBERS_FULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	own->stream = stream;
	*recording = (uint64_t)own->track << BOARD_SHIFT | (own->number + 1);
	store(&b->page->tracks[own->track].claim,
		(uint64_t)b->session << BOARD_SHIFT | (own->number + 1));
	return CUDA_SUCCESS;
}

void board_written(struct board *b, const struct worker_stream *stream, uint64_t recording)
{
	own_of(b, stream)->number = recording & BOARD_NUMBERS;
}

void board_stream_gone(struct board *b, const struct worker_stream *stream)
{
	struct board_own *own = own_of(b, stream);
	struct board_track *track;

	if (!own)
		return;
	track = &b->page->tracks[own->track];
	/* The device may still write a lower number: then nobody else waits there. */
	own->stale = load(&track->done) < own->number;
	own->stream = NULL;
	track_raise(track, own->number);
}

void board_give_up(struct board *b)
{
	for (uint32_t i = 0; i < b->track_count; i++)
		track_raise(&b->page->tracks[b->tracks[i].track], b->tracks[i].number);
}
