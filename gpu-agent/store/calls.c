/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of the store.  Every question may come twice: a front asks anew what a store
 * that died did not answer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/index.h"
#include "gpu-agent/store/tensor_name.h"

int calls_refuse(struct tensor_message *m, uint32_t status, const char *format, ...)
{
	va_list arguments;

	m->status = status;
	va_start(arguments, format);
	vsnprintf(m->text, sizeof(m->text), format, arguments);
	va_end(arguments);
	return -1;
}

uint64_t calls_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- names ---- */

/* The byte where TEXT, which ends with NUL, has what no name may have; else its length. */
static size_t bad_character(const char *text)
{
	size_t i = 0, more;

	while (text[i] && (more = name_character(text + i)))
		i += more;
	return i;
}

/* NAME, of the asking session's namespace, or NAMESPACE/NAME. */
bool calls_parse_name(struct tensor_message *m, struct calls_name *parsed)
{
	size_t n = strnlen(m->name, sizeof(m->name)), i;
	const char *slash;

	if (!n || n > TENSOR_NAME_MAX) {
		calls_refuse(m, STATUS_INVALID_VALUE,
			n ? "the tensor's name has more than %u bytes"
			  : "the tensor has no name (1 to %u bytes)",
			TENSOR_NAME_MAX);
		return false;
	}
	i = bad_character(m->name);
	if (i < n) {
		calls_refuse(m, STATUS_INVALID_VALUE,
			"the tensor's name has a control character, or is no UTF-8, at byte "
			"%zu",
			i);
		return false;
	}
	slash = memchr(m->name, '/', n);
	if (!slash) {
		memcpy(parsed->space, m->space, sizeof(parsed->space));
		memcpy(parsed->name, m->name, n + 1);
		return true;
	}
	if (slash == m->name || !slash[1] || strchr(slash + 1, '/') ||
		(size_t)(slash - m->name) >= sizeof(parsed->space)) {
		calls_refuse(m, STATUS_INVALID_VALUE,
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

bool calls_may_have(const struct tensor_record *r, const struct tensor_message *m)
{
	return !strcmp(r->space, m->space) || shared_with(r, m->space);
}

/* Who may not have it is told what is told of a name that nobody has. */
uint32_t calls_find(struct store *s, struct tensor_message *m, const struct calls_name *p)
{
	uint32_t i = store_table_find(s, p->space, p->name);

	if (i != UINT32_MAX && !calls_may_have(&s->table->records[i], m))
		i = UINT32_MAX;
	if (i == UINT32_MAX)
		calls_refuse(m, STATUS_NOT_FOUND, "there is no tensor '%s/%.80s'", p->space,
			p->name);
	return i;
}

/* The same, of the session's own namespace. */
static uint32_t find_own(struct store *s, struct tensor_message *m)
{
	struct calls_name p = {0};
	uint32_t i;

	if (!calls_parse_name(m, &p))
		return UINT32_MAX;
	i = calls_find(s, m, &p);
	if (i != UINT32_MAX && strcmp(p.space, m->space)) {
		calls_refuse(m, STATUS_NOT_PERMITTED, "'%s/%.80s' is not of namespace '%s'",
			p.space, p.name, m->space);
		return UINT32_MAX;
	}
	if (i != UINT32_MAX && s->table->records[i].flags & TENSOR_REPLICA) {
		calls_refuse(m, STATUS_INVALID_DEVICE,
			"'%s/%.60s' is another agent's, of which this one has a replica: ask "
			"that agent",
			p.space, p.name);
		return UINT32_MAX;
	}
	return i;
}

void calls_tell(const struct store *s, struct tensor_message *m, uint32_t index)
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

/* ---- the others ---- */

static int seal(struct store *s, struct tensor_message *m)
{
	uint32_t i = store_table_by_id(s, m->id);
	struct tensor_record *r = i == UINT32_MAX ? NULL : &s->table->records[i];

	if (!r || !store_table_holds(s, i, m->session))
		return calls_refuse(m, STATUS_NOT_FOUND, "this session has no such tensor");
	if (r->state == TENSOR_SEALED && r->owner == m->session) {
		calls_tell(s, m, i);
		return -1;
	}
	if (r->owner != m->session || r->state != TENSOR_CREATED)
		return calls_refuse(m, STATUS_NOT_PERMITTED, "'%s/%.80s' %s", r->space, r->name,
			r->state == TENSOR_CREATED ? "is another session's to seal"
						   : "is sealed or deleted");
	r->mtime = calls_now();
	s->table->counters.sealed++;
	__atomic_store_n(&r->state, TENSOR_SEALED, __ATOMIC_RELEASE);
	store_table_tell_sealed(s, i);
	calls_tell(s, m, i);
	return -1;
}

static int delete(struct store *s, struct tensor_message *m)
{
	uint32_t i = find_own(s, m);

	if (i == UINT32_MAX) {
		if (m->again && m->status == STATUS_NOT_FOUND)
			m->status = 0;
		return -1;
	}
	s->table->counters.deleted++;
	calls_tell(s, m, i);
	index_deleted(s, i);
	return -1;
}

static int stat_one(struct store *s, struct tensor_message *m)
{
	struct calls_name p = {0};
	uint32_t i = calls_parse_name(m, &p) ? calls_find(s, m, &p) : UINT32_MAX;

	if (i != UINT32_MAX)
		calls_tell(s, m, i);
	return -1;
}

static int list(struct store *s, struct tensor_message *m)
{
	size_t n = strnlen(m->name, TENSOR_NAME_MAX);

	for (uint64_t i = m->cursor; i < s->table->count; i++) {
		const struct tensor_record *r = &s->table->records[i];

		if ((r->state != TENSOR_CREATED && r->state != TENSOR_SEALED) ||
			r->flags & TENSOR_LOCAL || !calls_may_have(r, m) ||
			strncmp(r->name, m->name, n))
			continue;
		calls_tell(s, m, (uint32_t)i);
		m->cursor = i + 1;
		return -1;
	}
	return calls_refuse(m, STATUS_NOT_FOUND, "there are no more tensors");
}

static int touch(struct store *s, struct tensor_message *m)
{
	uint32_t i = find_own(s, m);
	struct tensor_record *r;

	if (i == UINT32_MAX)
		return -1;
	r = &s->table->records[i];
	r->version++;
	r->mtime = calls_now();
	r->used = ++s->table->clock;
	calls_tell(s, m, i);
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
	if (r->piece)
		return calls_refuse(m, STATUS_NOT_PERMITTED,
			"'%.80s' is packed: its memory is others' too, and is not shared",
			r->name);
	/* People read it in /v1/tensors, beside what others have shared. */
	if (!n || n >= TENSOR_SPACE || memchr(m->text, ',', n) || memchr(m->text, '/', n) ||
		bad_character(m->text) < n)
		return calls_refuse(m, STATUS_INVALID_VALUE,
			"a namespace to share with has 1 to %u bytes of UTF-8, no ',', no '/' "
			"and no control character",
			TENSOR_SPACE - 1);
	if (had + n + 2 > sizeof(r->share))
		return calls_refuse(m, STATUS_OUT_OF_MEMORY,
			"'%.80s' is shared with as many namespaces as fit", r->name);
	/* Behind what is there, so that it is whole at every time. */
	r->share[had + n + 1] = 0;
	r->share[had + n] = ',';
	memcpy(r->share + had + 1, m->text + 1, n - 1);
	r->share[had] = m->text[0];
	m->text[0] = 0;
	calls_tell(s, m, i);
	return -1;
}

int store_ask(struct store *s, struct tensor_message *m)
{
	uint32_t i;

	m->status = 0;
	if (m->what != TENSOR_SHARE)
		m->text[0] = 0;
	switch (m->what) {
	case TENSOR_TAKE: return calls_take(s, m);
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
	default:
		return calls_refuse(
			m, STATUS_INVALID_VALUE, "the store knows no such question");
	}
}
