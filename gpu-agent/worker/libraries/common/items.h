/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated serve functions of a library get the arguments of a call with: items
 * (protocol/libraries/items.h), in the order of the function's parameters. The first that
 * violates the protocol stops the call, so that no serve function can forget a check.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_ITEMS_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_COMMON_ITEMS_H

#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/items.h"

#define LIBRARY_ROOM 32u       /* words of scalars, results and objects of one call */
#define LIBRARY_RESULTS_MAX 8u /* of one call */

/* Descriptors that a room notes until the call ends, and arrays of them. */
#define LIBRARY_NOTED 8u
#define LIBRARY_ARRAYS 4u

/* A call that is being served, on the stack of its thread (beside_call.h). */
struct library_frame {
	struct worker *w;
	struct request *r;
	const struct plain_library *of;
	const void *library;	/* its functions, a struct FAMILY_library */
	void (*function)(void); /* the one that is called; NULL: the library lacks it */
	const char *name;	/* its name */
	void *handle;
	CUstream stream;  /* where the call names one */
	int32_t mode;	  /* the pointer mode of the descriptor that has one */
	uint32_t layouts; /* how many descriptors of one kind came, for the room that asks */
	/* Scalars, results and objects, as the library gets them; which go home. */
	_Alignas(16) uint64_t room[LIBRARY_ROOM];
	uint32_t room_used;
	struct {
		uint8_t from, to, words; /* in room, in the answer */
	} result[LIBRARY_RESULTS_MAX];
	uint32_t results;
	struct plain_served *served; /* NULL: the agent has one handle for all */
	int status;		     /* why it was stopped, as statuses(…) numbers it */
	bool stopped;
	const unsigned char *varying, *varying_end;
	const uint32_t *key, *key_end;
	uint32_t present; /* bit i: the i-th pointer is not NULL */
	uint32_t pointers;
	uint32_t outs;
	struct library_answer *answer;
	uint32_t listed; /* elements of a list that may go home */
	uint32_t list_each;
	unsigned char *list; /* all that a search writes */
	void **arrays[LIBRARY_ARRAYS];
	uint32_t array_count;
	void *workspace; /* of the host */
	struct {
		uint32_t kind;
		bool passing;	/* it ends with the call */
		uint64_t *size; /* where the number of its elements goes; or NULL */
		void *made;
	} noted[LIBRARY_NOTED];
	uint32_t noted_count;
};

/* Flags of a call by its verb. What is awaited is the first of its kind, prepares what it needs
 * and may wait for the GPU; what is only asked waits for nothing. */
#define LIBRARY_SERVED_call SERVE_LIBRARY
#define LIBRARY_SERVED_learned (SERVE_POST | SERVE_LIBRARY)
#define LIBRARY_SERVED_cached (SERVE_CALL | SERVE_SLOW)
#define LIBRARY_SERVED_both (SERVE_POST | SERVE_LIBRARY)
#define LIBRARY_SERVED_post (SERVE_POST | SERVE_CALL | SERVE_SLOW)

/* How a call is served. */
struct library_run {
	struct serve_entry entry;
	const struct plain_library *of; /* of one that travels as items: its handles' */
	/* It calls the library with what it gets from the frame; the library's status. */
	int (*run)(struct library_frame *f);
	size_t function; /* its place in struct FAMILY_library */
};

/* Serves a call by RUN. */
CUresult library_serve(struct worker *w, struct request *r, const struct library_run *run);

uint32_t library_get_int(struct library_frame *f);
uint64_t library_get_long(struct library_frame *f);
float library_get_float(struct library_frame *f);
double library_get_double(struct library_frame *f);
void *library_get_device(struct library_frame *f);
/* Eight bytes in the frame, or NULL. */
void *library_get_scalar(struct library_frame *f);
/* A scalar that lies at that place: the address, checked to be the session's since the library
 * may look at it with the CPU, or 16 bytes in the frame; zeros where none came. */
void *library_get_placed(struct library_frame *f, enum library_place place, bool maybe);
/* Of word `at[i]`, where pointers of the handle are to the host: `words` of a scalar or, the
 * second, of a result, which goes home; else its address, checked to be the session's. */
void *library_get_scalar_at(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint32_t words);
void *library_get_result_at(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint32_t words);
/* Where the library writes `count` elements: the address at[i], or memory of the worker. */
void *library_get_filled(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint64_t count, size_t each);
/* Where a result goes: home, or to the address, as the handle's pointer mode says. */
void *library_get_result(struct library_frame *f);
/* Room for LIBRARY_NUMBERS numbers that go home behind their count, where the program wants
 * some; else NULL. */
void *library_get_numbers(struct library_frame *f);
/* A number that is read and written; it goes home. */
void *library_get_inout(struct library_frame *f);
/* An address whose alignment is part of the key. */
void *library_get_aligned(struct library_frame *f);
/* An object of so many bytes, a multiple of 4, or NULL. */
const void *library_get_value(struct library_frame *f, uint32_t bytes);
/* INVALID_VALUE where it does not hold. */
void library_require(struct library_frame *f, bool holds);
/* Host ints of the varying part, or of the key; *count of them. */
const int *library_get_ints(struct library_frame *f, bool key, uint32_t *count);
/* The same, never NULL and of the varying part. */
const int *library_get_varying_ints(struct library_frame *f, uint32_t *count);
/* The library's descriptor, as its room makes it of the content that comes. */
void *library_get_descriptor(struct library_frame *f, uint32_t kind);
/* An array of `count`, valid until the call ends. */
void *const *library_get_each(struct library_frame *f, int64_t count, uint32_t kind);
/* Memory of the host, of so many bytes, until the call ends; NULL for none. One a call. */
void *library_get_workspace(struct library_frame *f, uint64_t bytes);
/* Where a number goes that comes back. */
void *library_get_out(struct library_frame *f);
/* Room for `count` elements of a list; the first LIBRARY_LIST of them go home. */
void *library_get_list(struct library_frame *f, int64_t count, uint32_t each);
/* The next words of the key, unchecked but for their number; NULL where there are fewer. */
const uint32_t *library_get_words(struct library_frame *f, uint32_t count);
/* The head of a descriptor's item and its words: how many, in `least` … `most`. 0: it is NULL,
 * or the call is stopped. */
uint32_t library_get_content(
	struct library_frame *f, uint32_t kind, uint32_t most, const uint32_t **words);
/* `bytes` of the varying part, rounded up to 8; NULL where there are fewer. */
const void *library_get_bytes(struct library_frame *f, uint32_t bytes);
/* What a serve function gets its parameters with: each declares one. */
#define GET(type, name, what, ...) type name = library_get_##what(f, ##__VA_ARGS__)
#define GET_INT(type, name) type name = (type)library_get_int(f)
#define GET_LONG(type, name) type name = (type)library_get_long(f)

/* Ends the call: the first of these is what it answers. */
void library_refuse(struct library_frame *f, int status);
/* The same for what violates the protocol. */
void library_violated(struct library_frame *f);
/* Whether to stop before the library is called; `lacks`: it has no function `name`. If not, the
 * loop's place is left: nothing of the loop's may be touched behind it without beside_enter. */
bool library_stop(struct library_frame *f, bool lacks, const char *name);
/* The end of a serve function: ARGUMENTS go to the frame's function, which has CALLED's type.
 */
#define CALL_WITH(called, arguments)                                                           \
	return library_stop(f, !f->function, f->name)                                          \
		       ? f->status                                                             \
		       : (int)((__typeof__(&(called)))f->function)arguments
#define CALL(called, ...) CALL_WITH(called, (__VA_ARGS__))
/* A generated one, which gets its parameters by the declarations behind ARGUMENTS. */
#define RUN(name, arguments, ...)                                                              \
	static int run_##name(struct library_frame *f)                                         \
	{                                                                                      \
		__VA_ARGS__;                                                                   \
		CALL_WITH(name, arguments);                                                    \
	}

#endif
