/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of the store.  Every question may come twice: a front asks anew what a store
 * that died did not answer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu-agent/store/store.h"

#define GRANULES_EXACT 16u /* smaller memory is made as it is; */
#define CLASS_PARTS 32u	   /* larger in steps of a part of the next power of two */

static __attribute__((format(printf, 3, 4))) int refuse(
	struct tensor_message *m, uint32_t status, const char *format, ...)
{
	va_list arguments;

	m->status = status;
	va_start(arguments, format);
	vsnprintf(m->text, sizeof(m->text), format, arguments);
	va_end(arguments);
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- names ---- */

struct parsed {
	char space[TENSOR_SPACE];
	char name[TENSOR_NAME];
};

/* NAME, of the asking session's namespace, or NAMESPACE/NAME. */
static bool parse_name(struct tensor_message *m, struct parsed *parsed)
{
	size_t n = strnlen(m->name, sizeof(m->name));
	const char *slash;

	if (!n || n > TENSOR_NAME_MAX) {
		refuse(m, TENSOR_INVALID_VALUE,
			n ? "the tensor's name has more than %u bytes"
			  : "the tensor has no name (1 to %u bytes)",
			TENSOR_NAME_MAX);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)m->name[i] < 0x20 || m->name[i] == 0x7f) {
			refuse(m, TENSOR_INVALID_VALUE,
				"byte %zu of the tensor's name is a control character", i);
			return false;
		}
	}
	slash = memchr(m->name, '/', n);
	if (!slash) {
		memcpy(parsed->space, m->space, sizeof(parsed->space));
		memcpy(parsed->name, m->name, n + 1);
		return true;
	}
	if (slash == m->name || !slash[1] || strchr(slash + 1, '/') ||
		(size_t)(slash - m->name) >= sizeof(parsed->space)) {
		refuse(m, TENSOR_INVALID_VALUE,
			"'%.100s' is not NAMESPACE/NAME with a namespace of at most %u bytes",
			m->name, TENSOR_SPACE - 1);
		return false;
	}
	memset(parsed, 0, sizeof(*parsed));
	memcpy(parsed->space, m->name, (size_t)(slash - m->name));
	strcpy(parsed->name, slash + 1);
	return true;
}

static bool shared_with(const struct tensor_record *r, const char *space)
{
	size_t n = strlen(space);

	if (r->state != TENSOR_SEALED)
		return false;
	for (const char *at = r->share; *at; at = strchr(at, ',') + 1)
		if (!strncmp(at, "*,", 2) || (!strncmp(at, space, n) && at[n] == ','))
			return true;
	return false;
}

/* Who may not have it is told what is told of a name that nobody has. */
static uint32_t find(struct store *s, struct tensor_message *m, const struct parsed *p)
{
	uint32_t i = store_table_find(s, p->space, p->name);

	if (i != UINT32_MAX && strcmp(p->space, m->space) &&
		!shared_with(&s->table->records[i], m->space))
		i = UINT32_MAX;
	if (i == UINT32_MAX)
		refuse(m, TENSOR_NOT_FOUND, "there is no tensor '%s/%.80s'", p->space, p->name);
	return i;
}

/* The same, of the session's own namespace. */
static uint32_t find_own(struct store *s, struct tensor_message *m)
{
	struct parsed p = {0};
	uint32_t i;

	if (!parse_name(m, &p))
		return UINT32_MAX;
	i = find(s, m, &p);
	if (i != UINT32_MAX && strcmp(p.space, m->space)) {
		refuse(m, TENSOR_NOT_PERMITTED, "'%s/%.80s' is not of namespace '%s'", p.space,
			p.name, m->space);
		return UINT32_MAX;
	}
	return i;
}

static void tell(const struct store *s, struct tensor_message *m, uint32_t index)
{
	const struct tensor_record *r = &s->table->records[index];

	memcpy(m->id, r->id, sizeof(m->id));
	memcpy(m->gpu, r->gpu, sizeof(m->gpu));
	snprintf(m->name, sizeof(m->name), "%s/%s", r->space, r->name);
	m->about = (struct tensor_about){.dtype = r->dtype,
		.rank = r->rank,
		.state = r->state,
		.flags = r->flags | (r->owner && r->owner == m->session ? TENSOR_OWNED : 0),
		.bytes = r->bytes,
		.room = r->room,
		.offset = r->offset,
		.version = r->version,
		.ctime = r->ctime,
		.mtime = r->mtime,
		.holders = r->holders};
	memcpy(m->about.shape, r->shape, sizeof(r->shape));
}

/* ---- create and get ---- */

/* As it is made: with a pool in classes, so that what comes back fits what is asked next. */
static uint64_t room_of(const struct store *s, uint64_t bytes, uint64_t granularity)
{
	uint64_t room = (bytes + granularity - 1) / granularity * granularity;
	uint64_t step = granularity;

	if (!s->config->store.pool_bytes || room <= GRANULES_EXACT * granularity)
		return room;
	while (step * CLASS_PARTS < room)
		step *= 2;
	return (room + step - 1) / step * step;
}

/* Memory of the pool, which that namespace had before. */
static uint32_t from_pool(struct store *s, const struct tensor_message *m, uint64_t room)
{
	for (uint32_t i = 0; i < s->table->count; i++) {
		struct tensor_record *r = &s->table->records[i];

		if (r->state != TENSOR_POOLED || r->room != room ||
			memcmp(r->gpu, m->gpu, 16) || strcmp(r->space, m->space))
			continue;
		s->table->counters.pool_hits++;
		return i;
	}
	return UINT32_MAX;
}

/* Whether the namespace may have so much more, of the pool or not. */
static bool within_space(struct store *s, struct tensor_message *m, uint64_t room)
{
	const struct agent_store *limit = &s->config->store;
	uint64_t own = store_table_bytes(s, m->space, NULL);

	if (limit->bytes_per_namespace && (room > limit->bytes_per_namespace ||
						  own > limit->bytes_per_namespace - room)) {
		refuse(m, TENSOR_OUT_OF_MEMORY,
			"namespace '%s' has %llu of its %llu bytes of tensors "
			"(store.bytes_per_namespace)",
			m->space, (unsigned long long)own,
			(unsigned long long)limit->bytes_per_namespace);
		return false;
	}
	return true;
}

/* What the GPU has now: the front did not know of what came and went here since. */
static uint64_t left_of(const struct store *s, const struct tensor_message *m)
{
	uint64_t had = store_table_bytes(s, NULL, m->gpu), all;

	if (__builtin_add_overflow(m->left, m->about.room, &all))
		all = UINT64_MAX;
	return all > had ? all - had : 0;
}

/* Whether the store may, and the GPU can. What may go for that, goes. */
static bool within(struct store *s, struct tensor_message *m, uint64_t room)
{
	const struct agent_store *limit = &s->config->store;
	uint64_t all = store_table_bytes(s, NULL, NULL), left;

	if (room <= limit->bytes && all > limit->bytes - room &&
		store_table_evict(s, m->gpu, all - (limit->bytes - room)))
		all = store_table_bytes(s, NULL, NULL);
	if (room > limit->bytes || all > limit->bytes - room) {
		refuse(m, TENSOR_OUT_OF_MEMORY,
			"the store has %llu of its %llu bytes (store.bytes)",
			(unsigned long long)all, (unsigned long long)limit->bytes);
		return false;
	}
	left = left_of(s, m);
	if (left < room && !store_table_evict(s, m->gpu, room - left)) {
		refuse(m, TENSOR_OUT_OF_MEMORY, "the GPU has %llu bytes left, of %llu",
			(unsigned long long)left, (unsigned long long)room);
		return false;
	}
	return true;
}

static uint32_t make_memory(struct store *s, struct tensor_message *m, uint64_t room)
{
	struct error error = {0};
	uint32_t i;
	int fd = store_memory_make(s->memory, m->gpu, room, &error);

	/* Another process may have the rest of the GPU. */
	if (fd == -(int)TENSOR_OUT_OF_MEMORY && store_table_evict(s, m->gpu, room))
		fd = store_memory_make(s->memory, m->gpu, room, &error);
	if (fd < 0) {
		refuse(m, (uint32_t)-fd, "%s", error.text);
		return UINT32_MAX;
	}
	i = store_table_new(s, m->gpu, room, fd);
	if (i == UINT32_MAX) {
		close(fd);
		refuse(m, TENSOR_OUT_OF_MEMORY, "the store has its %u tensors", TENSORS_MAX);
	}
	return i;
}

static uint32_t create(struct store *s, struct tensor_message *m, const struct parsed *p)
{
	uint64_t bytes = tensor_shape_bytes(m->about.dtype, m->about.rank, m->about.shape);
	uint64_t granularity = s->memory ? store_memory_granularity(s->memory, m->gpu) : 0;
	uint64_t room;
	struct tensor_record *r;
	uint32_t i;

	if (!bytes) {
		refuse(m, TENSOR_INVALID_VALUE,
			"'%.80s': no such dtype, or a shape of no or too many bytes", p->name);
		return UINT32_MAX;
	}
	if (strcmp(p->space, m->space)) {
		refuse(m, TENSOR_NOT_PERMITTED, "'%s/%.80s' is not of namespace '%s'", p->space,
			p->name, m->space);
		return UINT32_MAX;
	}
	if (!granularity) {
		refuse(m, TENSOR_NOT_READY, "the store has no memory of that GPU: %s",
			s->memory ? "it does not see it" : s->memory_text);
		return UINT32_MAX;
	}
	room = room_of(s, bytes, granularity);
	if (!within_space(s, m, room))
		return UINT32_MAX;
	i = from_pool(s, m, room);
	if (i == UINT32_MAX) {
		if (!within(s, m, room))
			return UINT32_MAX;
		i = make_memory(s, m, room);
		if (i == UINT32_MAX)
			return i;
	}
	r = &s->table->records[i];
	memcpy(r->space, p->space, sizeof(r->space));
	memcpy(r->name, p->name, sizeof(r->name));
	r->flags = m->about.flags & (TENSOR_KEEP | TENSOR_EVICTABLE);
	r->dtype = m->about.dtype;
	r->rank = m->about.rank;
	memset(r->shape, 0, sizeof(r->shape));
	memcpy(r->shape, m->about.shape, m->about.rank * sizeof(r->shape[0]));
	r->bytes = bytes;
	r->offset = 0;
	r->owner = m->session;
	r->version = 1;
	r->ctime = r->mtime = now_ns();
	r->share[0] = 0;
	if (!store_table_hold(s, i, m->session, true)) {
		refuse(m, TENSOR_OUT_OF_MEMORY, "the store has its %u holders", TENSOR_HOLDS);
		r->state = TENSOR_POOLED;
		store_table_release(s, i);
		return UINT32_MAX;
	}
	store_table_name(s, i, TENSOR_CREATED);
	s->table->counters.created++;
	store_table_tell(s, r->gpu);
	return i;
}

/* One that is there, asked for by create too, must be what is asked for. */
static bool fits(struct tensor_message *m, const struct tensor_record *r)
{
	const struct tensor_about *want = &m->about;

	if (memcmp(r->gpu, m->gpu, 16)) {
		refuse(m, TENSOR_INVALID_DEVICE,
			"'%s/%.60s' is on GPU %02x%02x%02x%02x, not on %02x%02x%02x%02x",
			r->space, r->name, r->gpu[0], r->gpu[1], r->gpu[2], r->gpu[3],
			m->gpu[0], m->gpu[1], m->gpu[2], m->gpu[3]);
		return false;
	}
	if (!(want->flags & TENSOR_MAKE))
		return true;
	if (want->flags & TENSOR_NEW) {
		refuse(m, TENSOR_INVALID_VALUE, "there is a tensor '%s/%.80s' already",
			r->space, r->name);
		return false;
	}
	if (r->dtype != want->dtype || r->rank != want->rank ||
		memcmp(r->shape, want->shape, r->rank * sizeof(r->shape[0]))) {
		refuse(m, TENSOR_INVALID_VALUE,
			"'%s/%.80s' is there with another shape or dtype (%s)", r->space,
			r->name, tensor_dtype_name(r->dtype));
		return false;
	}
	return true;
}

static int take(struct store *s, struct tensor_message *m)
{
	uint32_t wants = m->about.flags, i;
	struct tensor_record *r;
	struct parsed p = {0};
	bool writes;

	if (!parse_name(m, &p))
		return -1;
	i = store_table_find(s, p.space, p.name);
	if (i == UINT32_MAX && wants & TENSOR_MAKE) {
		i = create(s, m, &p);
		if (i == UINT32_MAX)
			return -1;
		tell(s, m, i);
		m->about.flags |= TENSOR_MADE | TENSOR_WRITABLE;
		return s->fds[i];
	}
	i = find(s, m, &p);
	if (i == UINT32_MAX) {
		s->table->counters.misses++;
		return -1;
	}
	r = &s->table->records[i];
	/* The store that made it died before it said so. */
	if (m->again && wants & TENSOR_MAKE && r->owner == m->session)
		m->about.flags &= ~TENSOR_NEW;
	if (!fits(m, r))
		return -1;
	writes = r->state == TENSOR_CREATED && (wants & TENSOR_WRITE || r->owner == m->session);
	if (wants & TENSOR_WRITE && r->state == TENSOR_SEALED)
		return refuse(m, TENSOR_NOT_PERMITTED, "'%s/%.80s' is sealed: nobody writes it",
			r->space, r->name);
	if (!store_table_hold(s, i, m->session, writes))
		return refuse(
			m, TENSOR_OUT_OF_MEMORY, "the store has its %u holders", TENSOR_HOLDS);
	s->table->counters.hits++;
	tell(s, m, i);
	if (writes)
		m->about.flags |= TENSOR_WRITABLE;
	if (m->again && wants & TENSOR_MAKE && r->owner == m->session &&
		r->state == TENSOR_CREATED)
		m->about.flags |= TENSOR_MADE;
	return s->fds[i];
}

/* ---- the others ---- */

static int seal(struct store *s, struct tensor_message *m)
{
	uint32_t i = store_table_by_id(s, m->id);
	struct tensor_record *r = i == UINT32_MAX ? NULL : &s->table->records[i];

	if (!r || !store_table_holds(s, i, m->session))
		return refuse(m, TENSOR_NOT_FOUND, "this session has no such tensor");
	if (r->state == TENSOR_SEALED && r->owner == m->session) {
		tell(s, m, i);
		return -1;
	}
	if (r->owner != m->session || r->state != TENSOR_CREATED)
		return refuse(m, TENSOR_NOT_PERMITTED, "'%s/%.80s' %s", r->space, r->name,
			r->state == TENSOR_CREATED ? "is another session's to seal"
						   : "is sealed or deleted");
	r->mtime = now_ns();
	s->table->counters.sealed++;
	__atomic_store_n(&r->state, TENSOR_SEALED, __ATOMIC_RELEASE);
	store_table_tell_sealed(s, i);
	tell(s, m, i);
	return -1;
}

static int delete(struct store *s, struct tensor_message *m)
{
	uint32_t i = find_own(s, m);

	if (i == UINT32_MAX) {
		if (m->again && m->status == TENSOR_NOT_FOUND)
			m->status = 0;
		return -1;
	}
	s->table->counters.deleted++;
	tell(s, m, i);
	store_table_unname(s, i);
	return -1;
}

static int stat_one(struct store *s, struct tensor_message *m)
{
	struct parsed p = {0};
	uint32_t i = parse_name(m, &p) ? find(s, m, &p) : UINT32_MAX;

	if (i != UINT32_MAX)
		tell(s, m, i);
	return -1;
}

static int list(struct store *s, struct tensor_message *m)
{
	size_t n = strnlen(m->name, TENSOR_NAME_MAX);

	for (uint64_t i = m->cursor; i < s->table->count; i++) {
		const struct tensor_record *r = &s->table->records[i];

		if ((r->state != TENSOR_CREATED && r->state != TENSOR_SEALED) ||
			(strcmp(r->space, m->space) && !shared_with(r, m->space)) ||
			strncmp(r->name, m->name, n))
			continue;
		tell(s, m, (uint32_t)i);
		m->cursor = i + 1;
		return -1;
	}
	return refuse(m, TENSOR_NOT_FOUND, "there are no more tensors");
}

static int touch(struct store *s, struct tensor_message *m)
{
	uint32_t i = find_own(s, m);
	struct tensor_record *r;

	if (i == UINT32_MAX)
		return -1;
	r = &s->table->records[i];
	r->version++;
	r->mtime = now_ns();
	r->used = ++s->table->clock;
	tell(s, m, i);
	return -1;
}

static int share(struct store *s, struct tensor_message *m)
{
	uint32_t i = find_own(s, m);
	size_t n = strnlen(m->text, sizeof(m->text)), had;
	struct tensor_record *r;

	if (i == UINT32_MAX)
		return -1;
	r = &s->table->records[i];
	had = strlen(r->share);
	if (!n || n >= TENSOR_SPACE || memchr(m->text, ',', n) || memchr(m->text, '/', n))
		return refuse(m, TENSOR_INVALID_VALUE,
			"a namespace to share with has 1 to %u bytes, no ',' and no '/'",
			TENSOR_SPACE - 1);
	if (had + n + 2 > sizeof(r->share))
		return refuse(m, TENSOR_OUT_OF_MEMORY,
			"'%.80s' is shared with as many namespaces as fit", r->name);
	/* Behind what is there, so that it is whole at every time. */
	r->share[had + n + 1] = 0;
	r->share[had + n] = ',';
	memcpy(r->share + had + 1, m->text + 1, n - 1);
	r->share[had] = m->text[0];
	m->text[0] = 0;
	tell(s, m, i);
	return -1;
}

int store_ask(struct store *s, struct tensor_message *m)
{
	uint32_t i;

	m->status = 0;
	if (m->what != TENSOR_SHARE)
		m->text[0] = 0;
	switch (m->what) {
	case TENSOR_TAKE: return take(s, m);
	case TENSOR_SEAL: return seal(s, m);
	case TENSOR_DELETE: return delete (s, m);
	case TENSOR_STAT: return stat_one(s, m);
	case TENSOR_LIST: return list(s, m);
	case TENSOR_TOUCH: return touch(s, m);
	case TENSOR_SHARE: return share(s, m);
	case TENSOR_CLOSE:
		i = store_table_by_id(s, m->id);
		if (i != UINT32_MAX)
			store_table_drop(s, i, m->session);
		return -1;
	default: return refuse(m, TENSOR_INVALID_VALUE, "the store knows no such question");
	}
}
