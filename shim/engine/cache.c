/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached and learned calls: what was answered once, by agent, op, context and body.
 */
#include "shim/engine/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

#define CACHE_BUCKETS 1024
/* Of so many answers and lessons. Beyond that a new one takes the place of the one in its
 * bucket that was not used for longest: a program that asks for ever new keys keeps what it
 * uses. */
#define CACHE_MAX 65536

struct cached {
	struct cached *next;
	uint64_t hash;
	uint16_t op, context;
	uint16_t session;
	bool lesson; /* a learned call that succeeded; no answer is kept */
	uint32_t key_bytes, reply_bytes;
	unsigned char bytes[]; /* key, then reply */
};

static struct {
	pthread_mutex_t lock;
	struct cached *buckets[CACHE_BUCKETS]; /* what was used last comes first */
	uint32_t count;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(cache, cache.lock, LOCK_CACHE);

/* What the call is known by: its body, or the part of it that says so. */
static const unsigned char *key_of(const struct shim_call *call, uint32_t *bytes)
{
	uint32_t to = call->key_to ? call->key_to : call->body_bytes;

	*bytes = to - call->key_from;
	return call->body + call->key_from;
}

static uint64_t key_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* Two words at a time, into sums that do not wait for each other: keys of hundreds of bytes
 * (cuBLASLt) are looked up at each call. */
static uint64_t key_hash(const struct shim_call *call)
{
	uint64_t hash = 0xcbf29ce484222325u ^ call->op ^ (uint64_t)call->context << 16;
	uint64_t other = 0, word[2];
	uint32_t bytes;
	const unsigned char *key = key_of(call, &bytes);

	for (; bytes >= sizeof(word); key += sizeof(word), bytes -= (uint32_t)sizeof(word)) {
		memcpy(word, key, sizeof(word));
		hash = key_mix(hash, word[0]);
		other = key_mix(other, word[1]);
	}
	memset(word, 0, sizeof(word));
	memcpy(word, key, bytes);
	return key_mix(key_mix(key_mix(hash, other), word[0]), word[1]);
}

/* With the lock held. */
static struct cached *cache_find(const struct shim_call *call, uint64_t hash)
{
	struct cached **bucket = &cache.buckets[hash % CACHE_BUCKETS], **at = bucket, *c;
	unsigned session = session_here()->index;
	uint32_t bytes;
	const unsigned char *key = key_of(call, &bytes);

	for (; (c = *at); at = &c->next)
		if (c->hash == hash && c->op == call->op && c->context == call->context &&
			c->session == session && c->key_bytes == bytes &&
			!memcmp(c->bytes, key, bytes)) {
			*at = c->next;
			c->next = *bucket;
			return *bucket = c;
		}
	return NULL;
}

/* With the lock held: room for one more in the bucket. */
static bool cache_room(struct cached **bucket)
{
	struct cached **last = bucket;

	if (cache.count < CACHE_MAX)
		return true;
	if (!*last)
		return false;
	while ((*last)->next)
		last = &(*last)->next;
	free(*last);
	*last = NULL;
	cache.count--;
	return true;
}

static void cache_keep(const struct shim_call *call, uint64_t hash, bool lesson)
{
	uint32_t reply = lesson ? 0 : call->reply_bytes;
	uint32_t bytes;
	const unsigned char *key = key_of(call, &bytes);
	struct cached *c;

	pthread_mutex_lock(&cache.lock);
	if (!cache_find(call, hash) && cache_room(&cache.buckets[hash % CACHE_BUCKETS]))
		c = malloc(sizeof(*c) + bytes + reply);
	else
		c = NULL;
	if (c) {
		c->hash = hash;
		c->op = call->op;
		c->context = call->context;
		c->session = (uint16_t)session_here()->index;
		c->lesson = lesson;
		c->key_bytes = bytes;
		c->reply_bytes = reply;
		memcpy(c->bytes, key, bytes);
		if (reply)
			memcpy(c->bytes + bytes, call->reply, reply);
		c->next = cache.buckets[hash % CACHE_BUCKETS];
		cache.buckets[hash % CACHE_BUCKETS] = c;
		cache.count++;
	}
	pthread_mutex_unlock(&cache.lock);
}

const void *shim_wait_cached(struct shim_call *call, size_t reply_bytes)
{
	unsigned char *room = call->body + THREAD_ANSWER;
	uint64_t hash;
	struct cached *c;

	if (call->status)
		return NULL;
	if (!(shim_perf & PERF_CACHE))
		return shim_wait(call, reply_bytes);
	hash = key_hash(call);
	pthread_mutex_lock(&cache.lock);
	c = cache_find(call, hash);
	if (c && c->reply_bytes >= reply_bytes &&
		c->reply_bytes <= THREAD_SCRATCH - THREAD_ANSWER) {
		memcpy(room, c->bytes + c->key_bytes, c->reply_bytes);
		call->reply = room;
		call->reply_bytes = c->reply_bytes;
	}
	pthread_mutex_unlock(&cache.lock);
	if (call->reply)
		return call->reply;
	if (shim_wait(call, reply_bytes) && !call->status &&
		(!call->lasting || call->lasting(call->reply)))
		cache_keep(call, hash, false);
	return call->status ? NULL : call->reply;
}

static void cache_remove(bool by_op, uint16_t which)
{
	pthread_mutex_lock(&cache.lock);
	for (unsigned i = 0; i < CACHE_BUCKETS; i++) {
		struct cached **at = &cache.buckets[i];

		while (*at) {
			struct cached *c = *at;

			if ((by_op ? c->op : c->context) == which) {
				*at = c->next;
				free(c);
				cache.count--;
			} else {
				at = &c->next;
			}
		}
	}
	pthread_mutex_unlock(&cache.lock);
}

void shim_forget(uint16_t op)
{
	cache_remove(true, op);
}

void cache_drop(uint16_t context)
{
	cache_remove(false, context);
}

bool shim_known(const struct shim_call *call)
{
	uint64_t hash;
	bool known;

	if (call->status || !(shim_perf & PERF_LEARN) || !(shim_perf & PERF_POST))
		return false;
	hash = key_hash(call);
	pthread_mutex_lock(&cache.lock);
	known = cache_find(call, hash) != NULL;
	pthread_mutex_unlock(&cache.lock);
	return known;
}

void shim_learn(const struct shim_call *call)
{
	if (!call->status && shim_perf & PERF_LEARN && shim_perf & PERF_POST)
		cache_keep(call, key_hash(call), true);
}

CUresult shim_learned(struct shim_call *call)
{
	if (call->status)
		return call->status;
	if (shim_known(call))
		return shim_post(call);
	shim_wait(call, 0);
	shim_learn(call);
	return shim_end(call);
}
