/* SPDX-License-Identifier: Apache-2.0
 *
 * libvcuda-tensor.so: what a program that uses tensors with names is linked with.  Preloaded,
 * the driver front has the same names and is asked first (shim/driver/tensor/tensor.c).  In a
 * process where it is not, these ask the agent of this node, and map its memory by the
 * machine's own driver.
 */
#include "shim/tensor/tensor_native.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/tensor/arguments.h"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct native_tensor *opened;
static _Thread_local char text[SENTENCE];

EXPORT const char *vcuda_tensor_error(void)
{
	return text;
}

int native_fail(int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return status;
}

void native_sealed(const uint8_t id[16])
{
	for (struct native_tensor *t = opened; t; t = t->next)
		if (!memcmp(t->id, id, sizeof(t->id)) && t->writable)
			native_read_only(t);
}

/* ---- others' seals ---- */

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool writes(void)
{
	const struct native_tensor *t = opened;

	while (t && (!t->writable || t->connection != native_connection()))
		t = t->next;
	return t != NULL;
}

static struct native_tensor *find(const struct vcuda_tensor *tensor)
{
	struct native_tensor *t = opened;

	while (t && (!tensor || t->base != tensor->reserved[0]))
		t = t->next;
	if (!t)
		native_fail(CUDA_ERROR_INVALID_VALUE, "no tensor is open there");
	return t;
}

/* A question by name; FRAME is the answer. */
static int ask_named(uint32_t what, const char *name, const char *argument,
	struct tensor_socket_frame *frame)
{
	int fd, status;

	frame->what = what;
	status = arguments_name(frame->name, name, text);
	if (!status && strlen(argument) >= 64)
		status = native_fail(CUDA_ERROR_INVALID_VALUE, "a namespace has 1 to 63 bytes");
	if (status)
		return status;
	strcpy(frame->text, argument);
	status = native_ask(frame, &fd);
	if (fd >= 0)
		close(fd);
	return status;
}

/* Whether the process has it open by another one than T, over the same connection. */
static bool is_held(const struct native_tensor *t)
{
	const struct native_tensor *o = opened;

	while (o && (o == t || o->connection != t->connection ||
			    memcmp(o->id, t->id, sizeof(t->id)) != 0))
		o = o->next;
	return o != NULL;
}

static int ask_id(uint32_t what, const struct native_tensor *t)
{
	struct tensor_socket_frame frame = {.what = what};
	int fd, status;

	if (t->connection != native_connection())
		return native_fail(CUDA_ERROR_NOT_FOUND,
			"the agent was asked anew since the tensor was "
			"opened: it holds it no more");
	memcpy(frame.id, t->id, sizeof(frame.id));
	status = native_ask(&frame, &fd);
	if (fd >= 0)
		close(fd);
	return status;
}

/* T is mapped no more. Open twice, it is held until both are closed. */
static void let_go(const struct native_tensor *t)
{
	if (!is_held(t))
		ask_id(TENSOR_SOCKET_CLOSE, t);
}

/* ---- create, get, close ---- */

static int keep(
	struct tensor_socket_frame *told, int fd, int device, struct vcuda_tensor *tensor)
{
	struct native_tensor *t = calloc(1, sizeof(*t));
	int status;

	if (!t) {
		if (fd >= 0)
			close(fd);
		return native_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for a tensor");
	}
	memcpy(t->id, told->id, sizeof(t->id));
	t->device = device;
	t->room = told->about.room;
	t->writable = told->about.flags & VCUDA_TENSOR_WRITABLE;
	t->connection = native_connection();
	if (fd >= 0 && arguments_sound(&told->about, 1)) {
		status = native_map(t, fd);
	} else {
		if (fd >= 0)
			close(fd);
		status = native_fail(
			CUDA_ERROR_UNKNOWN, "'%.100s' came without its memory", told->name);
	}
	if (status) {
		let_go(t);
		free(t);
		return status;
	}
	arguments_tensor(tensor, &told->about, t->base, device);
	tensor->reserved[0] = t->base;
	t->next = opened;
	opened = t;
	if (t->writable && !(told->about.flags & VCUDA_TENSOR_OWNED))
		native_listen(writes, take_lock, give_lock);
	return 0;
}

static int take(const char *name, int device, const struct tensor_about *wanted,
	struct vcuda_tensor *tensor)
{
	struct tensor_socket_frame frame = {.what = TENSOR_SOCKET_TAKE, .about = *wanted};
	int fd, status = arguments_name(frame.name, name, text);

	native_gpu(device, frame.gpu);
	if (!status)
		status = native_ask(&frame, &fd);
	return status ? status : keep(&frame, fd, device, tensor);
}

static void put(struct native_tensor *t)
{
	struct native_tensor **at = &opened;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	native_unmap(t);
	let_go(t);
	free(t);
}

EXPORT int vcuda_tensor_create(const char *name, uint32_t dtype, uint32_t rank,
	const int64_t *shape, int device, uint32_t flags, struct vcuda_tensor *tensor)
{
	struct tensor_about about;
	int status = arguments_create(&about, dtype, rank, shape, flags, tensor, text);

	if (status)
		return status;
	memset(tensor, 0, sizeof(*tensor));
	pthread_mutex_lock(&lock);
	status = native_driver(&device);
	if (!status)
		status = take(name, device, &about, tensor);
	pthread_mutex_unlock(&lock);
	return status;
}

EXPORT int vcuda_tensor_get(const char *const *names, size_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors)
{
	/* Whom this process's GPU reaches is not asked here: what is elsewhere is copied. */
	const struct tensor_about about = {.flags = flags & ~VCUDA_TENSOR_PEER};
	size_t done = 0;
	int status;

	if (!names || !tensors || flags & ~(VCUDA_TENSOR_WRITE | VCUDA_TENSOR_PEER))
		return native_fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_get: no names, no place for tensors, or flags 0x%x that "
			"are not get's",
			flags);
	memset(tensors, 0, count * sizeof(*tensors));
	pthread_mutex_lock(&lock);
	status = native_driver(&device);
	while (!status && done < count) {
		status = take(names[done], device, &about, &tensors[done]);
		done += !status;
	}
	while (status && done) {
		char why[SENTENCE];

		memcpy(why, text, sizeof(why));
		put(find(&tensors[--done]));
		memset(&tensors[done], 0, sizeof(tensors[done]));
		memcpy(text, why, sizeof(text));
	}
	pthread_mutex_unlock(&lock);
	return status;
}

EXPORT int vcuda_tensor_close(struct vcuda_tensor *tensor)
{
	struct native_tensor *t;
	int status = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	t = find(tensor);
	if (t) {
		status = native_wait(NULL);
		put(t);
		memset(tensor, 0, sizeof(*tensor));
	}
	pthread_mutex_unlock(&lock);
	return status;
}

EXPORT int vcuda_tensor_seal(struct vcuda_tensor *tensor, void *stream)
{
	struct native_tensor *t;
	int status = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	t = find(tensor);
	if (t)
		status = native_wait(stream);
	if (!status)
		status = ask_id(TENSOR_SOCKET_SEAL, t);
	if (!status && t->writable)
		status = native_read_only(t);
	pthread_mutex_unlock(&lock);
	if (!status) {
		tensor->flags |= VCUDA_TENSOR_SEALED;
		tensor->flags &= ~VCUDA_TENSOR_WRITABLE;
	}
	return status;
}

/* ---- the others, for which no GPU is needed ---- */

static int do_named(uint32_t what, const char *name, const char *argument, int device)
{
	struct tensor_socket_frame frame = {0};
	int status;

	(void)device;
	pthread_mutex_lock(&lock);
	status = ask_named(what, name, argument, &frame);
	pthread_mutex_unlock(&lock);
	return status;
}

EXPORT int vcuda_tensor_delete(const char *name, int device)
{
	return do_named(TENSOR_SOCKET_DELETE, name, "", device);
}

EXPORT int vcuda_tensor_touch(const char *name, int device)
{
	return do_named(TENSOR_SOCKET_TOUCH, name, "", device);
}

EXPORT int vcuda_tensor_share(const char *name, const char *space, int device)
{
	return space ? do_named(TENSOR_SOCKET_SHARE, name, space, device)
		     : native_fail(CUDA_ERROR_INVALID_VALUE, "a namespace has 1 to 63 bytes");
}

EXPORT int vcuda_tensor_stat(const char *name, int device, struct vcuda_tensor_stat *stat)
{
	struct tensor_socket_frame frame = {0};
	int status;

	(void)device;
	if (!stat)
		return native_fail(
			CUDA_ERROR_INVALID_VALUE, "vcuda_tensor_stat: no place for it");
	pthread_mutex_lock(&lock);
	status = ask_named(TENSOR_SOCKET_STAT, name, "", &frame);
	pthread_mutex_unlock(&lock);
	if (!status)
		arguments_stat(stat, &frame.about, frame.name);
	return status;
}

EXPORT int vcuda_tensor_list(
	const char *prefix, int device, uint64_t *cursor, struct vcuda_tensor_stat *stat)
{
	struct tensor_socket_frame frame = {.what = TENSOR_SOCKET_LIST};
	int fd, status;

	(void)device;
	if (!stat || !cursor || !prefix || strlen(prefix) > TENSOR_NAME_MAX)
		return native_fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_list: no place, or a prefix of more than %d bytes",
			TENSOR_NAME_MAX);
	frame.cursor = *cursor;
	strcpy(frame.name, prefix);
	pthread_mutex_lock(&lock);
	status = native_ask(&frame, &fd);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&lock);
	if (!status) {
		*cursor = frame.cursor;
		arguments_stat(stat, &frame.about, frame.name);
	}
	return status;
}

EXPORT int vcuda_tensor_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat)
{
	return arguments_wait(name, device, ms, stat, text);
}
