/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's numbers of calls: see callbacks.h. Names are in one run of characters, so that they
 * cost the loader no relocations.
 */
#include "shim/libraries/cupti/callbacks.h"

#include <stddef.h>

#include "shim/generated/cuda_calls.h"

/* A name is one of an enumerator, of a member and of a string. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define STRING_(...) #__VA_ARGS__
#define STRING(...) STRING_(__VA_ARGS__)

#define CALLBACKS_DRIVER
enum driver_number {
	driver_INVALID,
#define CALLED(name, ...) JOINED(driver_##name, __VA_ARGS__),
#define NAMED CALLED
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
	DRIVER_NUMBERS
};
static const struct driver_names {
	char driver_INVALID[sizeof("INVALID")];
#define CALLED(name, ...)                                                                      \
	char JOINED(driver_##name, __VA_ARGS__)[sizeof(STRING(JOINED(name, __VA_ARGS__)))];
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
} driver_names = {
	"INVALID",
#define CALLED(name, ...) STRING(JOINED(name, __VA_ARGS__)),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
};
static const uint16_t driver_at[] = {
	offsetof(struct driver_names, driver_INVALID),
#define CALLED(name, ...) offsetof(struct driver_names, JOINED(driver_##name, __VA_ARGS__)),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
};
#undef CALLBACKS_DRIVER

#define CALLBACKS_RUNTIME
enum runtime_number {
	runtime_INVALID,
#define CALLED(name, ...) JOINED(runtime_##name, __VA_ARGS__),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
	RUNTIME_NUMBERS
};
static const struct runtime_names {
	char runtime_INVALID[sizeof("INVALID")];
#define CALLED(name, ...)                                                                      \
	char JOINED(runtime_##name, __VA_ARGS__)[sizeof(STRING(JOINED(name, __VA_ARGS__)))];
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
} runtime_names = {
	"INVALID",
#define CALLED(name, ...) STRING(JOINED(name, __VA_ARGS__)),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
};
static const uint16_t runtime_at[] = {
	offsetof(struct runtime_names, runtime_INVALID),
#define CALLED(name, ...) offsetof(struct runtime_names, JOINED(runtime_##name, __VA_ARGS__)),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
};
#undef NAMED
#undef CALLBACKS_RUNTIME

static const uint16_t numbers[] = {
#define NAMED(name)
#define CALLBACKS_DRIVER
#define CALLED(name, ...) [CALL_##name] = JOINED(driver_##name, __VA_ARGS__),
#include "shim/generated/cupti_callbacks.inc"
#undef CALLED
#undef CALLBACKS_DRIVER
#define CALLBACKS_RUNTIME
#define CALLED(name, ...) [CALL_##name] = JOINED(runtime_##name, __VA_ARGS__),
#include "shim/generated/cupti_callbacks.inc"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(sizeof(driver_names) <= UINT16_MAX && sizeof(runtime_names) <= UINT16_MAX, "");
_Static_assert(COUNT(driver_at) == DRIVER_NUMBERS && COUNT(runtime_at) == RUNTIME_NUMBERS, "");

struct callback callback_of(unsigned call)
{
	struct callback found = {.number = call < COUNT(numbers) ? numbers[call] : 0};

	if (found.number)
		found.domain = call < CALL_RUNTIME_FIRST ? CALLBACK_DRIVER : CALLBACK_RUNTIME;
	return found;
}

uint32_t callback_numbers(unsigned domain)
{
	switch (domain) {
	case CALLBACK_DRIVER: return COUNT(driver_at);
	case CALLBACK_RUNTIME: return COUNT(runtime_at);
	default: return 0;
	}
}

const char *callback_name(unsigned domain, uint32_t number)
{
	if (number >= callback_numbers(domain))
		return NULL;
	return domain == CALLBACK_DRIVER ? (const char *)&driver_names + driver_at[number]
					 : (const char *)&runtime_names + runtime_at[number];
}
