/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/uploads/payloads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "common/wait.h"
#include "transport/codec/name.h"

#define PIECE FRAME_CHUNK
#define PAGE 4096u
/* Pieces whose memory is taken from the kernel, and cleared by it, before they are wanted: the
 * first load of weights would wait for that. 256 MiB, and while that goes on, more. */
#define AHEAD (256u * 1024 * 1024 / PIECE)
#define TOLD_EACH 32u /* new pieces, who prepares them is told */
#define PREPARE_NS 60000000000ull

/* Of a piece that nobody had yet. Who prepares has a priority so low that it may stand still in
 * the middle of it: it takes no lock, and nobody waits for a piece. */
enum { FRESH, BEING_PREPARED, PREPARED };

/* A piece is free, has a name, or neither: it is being filled. Free ones are in a list, and
 * those that have a name and are held by nobody in their namespace's, by `before` and `behind`.
 */
struct piece {
	struct session_name name; /* length 0: none */
	uint32_t space;
	uint32_t held;		 /* by so many */
	uint32_t before, behind; /* of its list */
	uint32_t next;		 /* of its bucket */
	_Atomic uint32_t memory; /* FRESH … */
};

struct list {
	uint32_t first, last; /* CACHE_NONE: none */
};

struct space {
	char name[TENSOR_SPACE];
	uint64_t seed;
	uint32_t inside; /* lanes */
	uint32_t pieces;
	struct list used; /* the one that was not wanted for the longest first */
};

struct payloads {
	pthread_mutex_t lock;
	unsigned char *memory;
	uint32_t count;	  /* of pieces */
	uint32_t buckets; /* a power of two */
	uint32_t *bucket;
	struct piece *pieces;
	struct list free;
	struct space spaces[CACHE_SPACES];
	struct uploads_counts counts;
	_Atomic uint32_t begun;	 /* pieces from here on nobody had yet */
	uint32_t prepared;	 /* of who prepares: as far as it came */
	_Atomic uint32_t wanted; /* how often more may be prepared */
};

static void list_add(struct payloads *c, struct list *list, uint32_t i)
{
	struct piece *p = &c->pieces[i];

	p->before = list->last;
	p->behind = CACHE_NONE;
	if (list->last == CACHE_NONE)
		list->first = i;
	else
		c->pieces[list->last].behind = i;
	list->last = i;
}

static void list_remove(struct payloads *c, struct list *list, uint32_t i)
{
	const struct piece *p = &c->pieces[i];

	if (p->before == CACHE_NONE)
		list->first = p->behind;
	else
		c->pieces[p->before].behind = p->behind;
	if (p->behind == CACHE_NONE)
		list->last = p->before;
	else
		c->pieces[p->behind].before = p->before;
}

struct payloads *payloads_open(uint64_t bytes, struct error *error)
{
	struct payloads *c = calloc(1, sizeof(*c));
	uint64_t count = bytes / PIECE;

	if (!c || !count || count >= CACHE_NONE / 2) {
		free(c);
		error_set(error, c ? EINVAL : ENOMEM, "a cache of %llu bytes",
			(unsigned long long)bytes);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->count = (uint32_t)count;
	for (c->buckets = 16; c->buckets < c->count; c->buckets *= 2)
		;
	c->pieces = calloc(c->count, sizeof(*c->pieces));
	c->bucket = malloc(c->buckets * sizeof(*c->bucket));
	c->memory = mmap(NULL, count * PIECE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->memory == MAP_FAILED)
		c->memory = NULL;
	if (!c->pieces || !c->bucket || !c->memory) {
		error_set(error, ENOMEM, "a cache of %llu bytes", (unsigned long long)bytes);
		payloads_close(c);
		return NULL;
	}
	madvise(c->memory, count * PIECE,
		MADV_HUGEPAGE); /* fewer faults, where there are any */
	memset(c->bucket, 0xff, c->buckets * sizeof(*c->bucket));
	c->free = (struct list){CACHE_NONE, CACHE_NONE};
	for (uint32_t i = 0; i < CACHE_SPACES; i++)
		c->spaces[i].used = c->free;
	for (uint32_t i = 0; i < c->count; i++)
		list_add(c, &c->free, i);
	return c;
}

void payloads_close(struct payloads *c)
{
	if (c->memory)
		munmap(c->memory, (size_t)c->count * PIECE);
	free(c->bucket);
	free(c->pieces);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- memory that is taken before it is wanted ---- */

bool payloads_prepare(struct payloads *c)
{
	uint32_t i = c->prepared, fresh = FRESH;
	volatile unsigned char *at = c->memory + (size_t)i * PIECE;

	if (i == c->count || i >= atomic_load(&c->begun) + AHEAD)
		return false;
	c->prepared++;
	if (!atomic_compare_exchange_strong(&c->pieces[i].memory, &fresh, BEING_PREPARED))
		return true; /* somebody was faster */
	for (size_t page = 0; page < PIECE; page += PAGE)
		at[page] = 0;
	atomic_store(&c->pieces[i].memory, PREPARED);
	return true;
}

bool payloads_prepare_wait(struct payloads *c)
{
	wait_sleep(&c->wanted, 0, PREPARE_NS);
	if (atomic_load(&c->wanted)) /* nobody else takes one */
		atomic_fetch_sub(&c->wanted, 1);
	return c->prepared < c->count;
}

/* The first of those that are free, but for one that is being prepared. Under the lock. */
static uint32_t take_free(struct payloads *c)
{
	uint32_t i = c->free.first;

	for (; i != CACHE_NONE; i = c->pieces[i].behind) {
		uint32_t fresh = FRESH;

		if (atomic_compare_exchange_strong(&c->pieces[i].memory, &fresh, PREPARED) ||
			fresh == PREPARED)
			break;
	}
	if (i == CACHE_NONE)
		return i;
	list_remove(c, &c->free, i);
	if (i >= atomic_load(&c->begun)) {
		atomic_store(&c->begun, i + 1);
		if ((i + 1) % TOLD_EACH == 0) {
			atomic_fetch_add(&c->wanted, 1);
			wait_wake(&c->wanted);
		}
	}
	return i;
}

/* ---- namespaces ---- */

/* One with nothing in it is forgotten, its seed too. */
static bool space_is(const struct space *s)
{
	return s->inside || s->pieces;
}

uint32_t payloads_enter(struct payloads *c, const char name[TENSOR_SPACE])
{
	uint32_t found = CACHE_NONE;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < CACHE_SPACES; i++) {
		if (!space_is(&c->spaces[i])) {
			if (found == CACHE_NONE)
				found = i;
		} else if (!strncmp(c->spaces[i].name, name, TENSOR_SPACE)) {
			found = i;
			break;
		}
	}
	if (found != CACHE_NONE && !space_is(&c->spaces[found])) {
		struct space *s = &c->spaces[found];

		memcpy(s->name, name, TENSOR_SPACE);
		if (getrandom(&s->seed, sizeof(s->seed), 0) != (ssize_t)sizeof(s->seed))
			found = CACHE_NONE;
	}
	if (found != CACHE_NONE)
		c->spaces[found].inside++;
	pthread_mutex_unlock(&c->lock);
	return found;
}

void payloads_leave(struct payloads *c, uint32_t space)
{
	pthread_mutex_lock(&c->lock);
	c->spaces[space].inside--;
	pthread_mutex_unlock(&c->lock);
}

uint64_t payloads_seed(const struct payloads *c, uint32_t space)
{
	return c->spaces[space].seed;
}

/* ---- names ---- */

static uint32_t *bucket_of(struct payloads *c, uint32_t space, const struct session_name *name)
{
	return &c->bucket[(name->low ^ space * 0x9e3779b9u) & (c->buckets - 1)];
}

static bool same(const struct session_name *a, const struct session_name *b)
{
	return a->low == b->low && a->high == b->high && a->length == b->length;
}

static uint32_t find(struct payloads *c, uint32_t space, const struct session_name *name)
{
	uint32_t i = *bucket_of(c, space, name);

	while (i != CACHE_NONE &&
		(c->pieces[i].space != space || !same(&c->pieces[i].name, name)))
		i = c->pieces[i].next;
	return i;
}

/* It loses its name, and is in no list. */
static void forget(struct payloads *c, uint32_t i)
{
	struct piece *p = &c->pieces[i];
	uint32_t *at = bucket_of(c, p->space, &p->name);

	while (*at != i)
		at = &c->pieces[*at].next;
	*at = p->next;
	list_remove(c, &c->spaces[p->space].used, i);
	c->spaces[p->space].pieces--;
	c->counts.bytes -= p->name.length;
	c->counts.evictions++;
	p->name = (struct session_name){0};
}

uint32_t payloads_get(struct payloads *c, uint32_t space, const struct session_name *name)
{
	uint32_t i;

	if (!name->length || name->length > PIECE)
		return CACHE_NONE;
	pthread_mutex_lock(&c->lock);
	i = find(c, space, name);
	if (i == CACHE_NONE)
		c->counts.misses++;
	else if (!c->pieces[i].held++)
		list_remove(c, &c->spaces[space].used, i);
	pthread_mutex_unlock(&c->lock);
	return i;
}

/* Its name stays while it is held. */
bool payloads_is(const struct payloads *c, uint32_t piece, const struct session_name *name)
{
	return same(&c->pieces[piece].name, name);
}

const unsigned char *payloads_bytes(const struct payloads *c, uint32_t piece)
{
	return c->memory + (size_t)piece * PIECE;
}

void payloads_put(struct payloads *c, uint32_t piece)
{
	pthread_mutex_lock(&c->lock);
	if (!--c->pieces[piece].held)
		list_add(c, &c->spaces[c->pieces[piece].space].used, piece);
	pthread_mutex_unlock(&c->lock);
}

void payloads_count_hit(struct payloads *c, uint32_t piece)
{
	pthread_mutex_lock(&c->lock);
	c->counts.hits++;
	c->counts.hit_bytes += c->pieces[piece].name.length;
	pthread_mutex_unlock(&c->lock);
}

/* ---- what is new ---- */

/* The namespace that has most: as long as one has more than its equal share, nobody below that
 * loses anything. Its own pieces go where SPACE has as many. */
static uint32_t oldest(const struct payloads *c, uint32_t space)
{
	const struct space *most = NULL;

	for (uint32_t i = 0; i < CACHE_SPACES; i++) {
		const struct space *s = &c->spaces[i];

		if (s->used.first == CACHE_NONE)
			continue;
		if (!most || s->pieces > most->pieces ||
			(s->pieces == most->pieces && i == space))
			most = s;
	}
	return most ? most->used.first : CACHE_NONE;
}

uint32_t payloads_room(struct payloads *c, uint32_t space, unsigned char **bytes)
{
	uint32_t i;

	pthread_mutex_lock(&c->lock);
	i = take_free(c);
	if (i == CACHE_NONE) {
		i = oldest(c, space);
		if (i != CACHE_NONE)
			forget(c, i);
	}
	pthread_mutex_unlock(&c->lock);
	if (i != CACHE_NONE)
		*bytes = c->memory + (size_t)i * PIECE;
	return i;
}

void payloads_keep(struct payloads *c, uint32_t space, uint32_t piece, uint32_t length)
{
	struct piece *p = &c->pieces[piece];
	const struct session_name name =
		name_of(c->spaces[space].seed, payloads_bytes(c, piece), length);
	uint32_t *bucket;

	pthread_mutex_lock(&c->lock);
	if (find(c, space, &name) != CACHE_NONE) { /* another one brought it */
		list_add(c, &c->free, piece);
	} else {
		bucket = bucket_of(c, space, &name);
		p->name = name;
		p->space = space;
		p->next = *bucket;
		*bucket = piece;
		list_add(c, &c->spaces[space].used, piece);
		c->spaces[space].pieces++;
		c->counts.bytes += length;
	}
	pthread_mutex_unlock(&c->lock);
}

void payloads_discard(struct payloads *c, uint32_t piece)
{
	pthread_mutex_lock(&c->lock);
	list_add(c, &c->free, piece);
	pthread_mutex_unlock(&c->lock);
}

void payloads_counts(struct payloads *c, struct uploads_counts *counts)
{
	pthread_mutex_lock(&c->lock);
	*counts = c->counts;
	pthread_mutex_unlock(&c->lock);
	counts->version = UPLOADS_VERSION;
}

void payloads_count_earlier(struct payloads *c, const struct uploads_counts *totals)
{
	pthread_mutex_lock(&c->lock);
	if (!c->counts.has_earlier)
		uploads_add(&c->counts, totals);
	c->counts.has_earlier = 1;
	pthread_mutex_unlock(&c->lock);
}
