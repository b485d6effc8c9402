/* SPDX-License-Identifier: Apache-2.0
 *
 * See callback.h.
 */
#include "gpu-agent/worker/libraries/cufft/callback.h"

#include <stdlib.h>
#include <string.h>

struct callback {
	char *bytes;	     /* its name, and LTO-IR behind it; NULL: there was no memory */
	uint64_t got, total; /* 0: there is none of this type */
	uint32_t name;
	bool informed;
	void *info;
};

struct cufft_callbacks {
	struct cufft_callbacks *next;
	uint32_t number;
	uint32_t refs; /* the list's, and each plan's that is being made */
	uint16_t context;
	struct callback callback[CUFFT_CALLBACKS];
};

static struct cufft_callbacks *sets;
static uint32_t set_count; /* at most CUFFT_PLANS: each is for a plan */
static uint64_t held;	   /* bytes of all */

static struct cufft_callbacks **set_find(uint16_t context, uint32_t number)
{
	struct cufft_callbacks **at = &sets;

	while (*at && ((*at)->context != context || (*at)->number != number))
		at = &(*at)->next;
	return at;
}

static struct cufft_callbacks *set_of(uint16_t context, uint32_t number)
{
	struct cufft_callbacks *set = *set_find(context, number);

	if (set || !number || set_count >= CUFFT_PLANS)
		return set;
	set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	*set = (struct cufft_callbacks){
		.next = sets, .number = number, .refs = 1, .context = context};
	sets = set;
	set_count++;
	return set;
}

static void callback_drop(struct callback *c)
{
	if (c->bytes)
		held -= c->total;
	free(c->bytes);
	*c = (struct callback){0};
}

/* Nobody waits for its answer: that there is no memory, the call that makes the plan says. */
static void callback_begin(struct callback *c, const struct wire_cufftXtSetJITCallback *body)
{
	callback_drop(c);
	*c = (struct callback){.total = body->total,
		.name = body->name,
		.informed = body->informed,
		.info = (void *)(uintptr_t)body->caller_info};
	if (body->total <= CUFFT_CALLBACKS_HELD - held)
		c->bytes = malloc(body->total);
	if (c->bytes)
		held += c->total;
}

int cufft_callbacks_add(uint16_t context, const struct wire_cufftXtSetJITCallback *body,
	const void *piece, uint64_t bytes)
{
	struct cufft_callbacks *set = set_of(context, body->set);
	struct callback *c;

	if (!set)
		return CUFFT_ALLOC_FAILED;
	if (body->type >= CUFFT_CALLBACKS || set->refs > 1 ||
		body->total > CUFFT_CALLBACK_MOST || body->name > CUFFT_CALLBACK_NAME ||
		body->name >= body->total)
		return CUFFT_INVALID_VALUE;
	c = &set->callback[body->type];
	if (!body->at)
		callback_begin(c, body);
	if (body->at != c->got || body->total != c->total || bytes > c->total - c->got)
		return CUFFT_INVALID_VALUE;
	if (c->bytes)
		memcpy(c->bytes + c->got, piece, bytes);
	c->got += bytes;
	return CUFFT_SUCCESS;
}

struct cufft_callbacks *cufft_callbacks_get(uint16_t context, uint32_t number)
{
	struct cufft_callbacks *set = *set_find(context, number);

	if (set)
		set->refs++;
	return set;
}

void cufft_callbacks_put(struct cufft_callbacks *set)
{
	if (!set || --set->refs)
		return;
	for (int i = 0; i < CUFFT_CALLBACKS; i++)
		callback_drop(&set->callback[i]);
	free(set);
}

static void set_unlink(struct cufft_callbacks **at)
{
	struct cufft_callbacks *set = *at;

	*at = set->next;
	set_count--;
	cufft_callbacks_put(set);
}

void cufft_callbacks_end(uint16_t context, uint32_t number)
{
	struct cufft_callbacks **at = set_find(context, number);

	if (*at)
		set_unlink(at);
}

void cufft_callbacks_forget(uint16_t context)
{
	struct cufft_callbacks **at = &sets;

	while (*at) {
		if ((*at)->context == context)
			set_unlink(at);
		else
			at = &(*at)->next;
	}
}

/* Of libcufft.so.11 the name with a version takes these arguments, the other one takes less. */
static int callback_set(
	const struct cufft_library *l, cufftHandle plan, struct callback *c, int type)
{
	void *code = c->bytes + c->name;
	size_t bytes = c->total - c->name;
	void **info = c->informed ? &c->info : NULL;
	const char *symbol = c->name ? c->bytes : NULL;
	int version = 0;

	if (!c->bytes)
		return CUFFT_ALLOC_FAILED;
	if (c->got != c->total ||
		(c->name && memchr(c->bytes, 0, c->name) != c->bytes + c->name - 1))
		return CUFFT_INVALID_VALUE;
	if (l->__cufftXtSetJITCallback_12_7)
		return l->__cufftXtSetJITCallback_12_7(plan, symbol, code, bytes, type, info);
	if (!l->cufftXtSetJITCallback || !l->cufftGetVersion || l->cufftGetVersion(&version) ||
		version < 12000)
		return CUFFT_NOT_SUPPORTED;
	return l->cufftXtSetJITCallback(plan, symbol, code, bytes, type, info);
}

int cufft_callbacks_set(
	const struct cufft_library *library, cufftHandle plan, struct cufft_callbacks *set)
{
	int status = CUFFT_SUCCESS;

	for (int type = 0; set && !status && type < CUFFT_CALLBACKS; type++)
		if (set->callback[type].total)
			status = callback_set(library, plan, &set->callback[type], type);
	return status;
}
