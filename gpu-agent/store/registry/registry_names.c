/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tensor may be called, and how many bytes it has.
 */
#include "gpu-agent/store/registry/registry.h"

#include <errno.h>
#include <string.h>

#include "gpu-agent/store/tensor_name.h"

/* One of Kubernetes', or a tenant's of a token file. */
static bool is_namespace(const char *text, size_t n)
{
	if (!n || n > REGISTRY_NAMESPACE)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] <= 0x20 || text[i] >= 0x7f)
			return false;
	}
	return true;
}

static int check_bytes(const char *name, struct error *error)
{
	size_t n = strnlen(name, REGISTRY_NAME + 1);

	if (!n)
		return error_set(error, 0, "the tensor's name is empty");
	if (n > REGISTRY_NAME)
		return error_set(
			error, 0, "the tensor's name has more than %d bytes", REGISTRY_NAME);
	for (size_t i = 0, more; i < n; i += more) {
		more = name_character(name + i);
		if (!more)
			return error_set(error, 0,
				"the tensor's name has a control byte, or is no UTF-8, at byte "
				"%zu",
				i);
	}
	return 0;
}

int registry_name(char out[REGISTRY_NAME + 1], const char *namespace, const char *name,
	struct error *error)
{
	const char *slash;
	size_t space, rest;
	int ret = check_bytes(name, error);

	if (ret)
		return ret;
	slash = strchr(name, '/');
	if (slash) {
		namespace = name;
		space = (size_t)(slash - name);
		name = slash + 1;
	} else {
		space = strlen(namespace);
	}
	rest = strlen(name);
	if (!is_namespace(namespace, space))
		return error_set(error, 0,
			"the tensor's namespace has 1 to 63 printable ASCII characters");
	if (!rest)
		return error_set(error, 0, "the tensor has a namespace and no name");
	if (space == strlen(REGISTRY_DEFAULT) && !memcmp(namespace, REGISTRY_DEFAULT, space) &&
		!strchr(name, '/')) {
		if (!strcmp(name, "cmd"))
			return error_set(
				error, 0, "no tensor is called cmd: the list of commands is");
		memmove(out, name, rest + 1);
		return 0;
	}
	if (space + 1 + rest > REGISTRY_NAME)
		return error_set(error, 0,
			"the tensor's name has more than %d bytes with its namespace",
			REGISTRY_NAME);
	memmove(out, namespace, space);
	out[space] = '/';
	memmove(out + space + 1, name, rest + 1);
	return 0;
}

void registry_namespace(char out[REGISTRY_NAMESPACE + 1], const char *name)
{
	const char *slash = strchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	if (!slash || n > REGISTRY_NAMESPACE) {
		memcpy(out, REGISTRY_DEFAULT, sizeof(REGISTRY_DEFAULT));
		return;
	}
	memcpy(out, name, n);
	out[n] = 0;
}

unsigned registry_dtype(const char *dtype)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} list[] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f8e4m3", 1},
		{"f8e5m2", 1}, {"i64", 8}, {"i32", 4}, {"i16", 2}, {"i8", 1}, {"u8", 1},
		{"bool", 1}};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (!strcmp(list[i].name, dtype))
			return list[i].bytes;
	}
	return 0;
}

int registry_bytes(const char *dtype, const uint64_t *shape, uint32_t dimensions,
	uint64_t *bytes, struct error *error)
{
	uint64_t product = registry_dtype(dtype);

	if (!product)
		return error_set(error, 0,
			"the dtype is none of f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 "
			"bool");
	if (dimensions > REGISTRY_DIMENSIONS)
		return error_set(
			error, 0, "the shape has more than %d dimensions", REGISTRY_DIMENSIONS);
	for (uint32_t i = 0; i < dimensions; i++) {
		if (!shape[i])
			return error_set(error, 0, "dimension %u of the shape is 0", i);
		if (__builtin_mul_overflow(product, shape[i], &product) ||
			product > REGISTRY_BYTES_MAX)
			return error_set(error, 0, "the shape has more than 2^50 bytes");
	}
	*bytes = product;
	return 0;
}
