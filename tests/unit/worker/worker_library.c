/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of one library in the contexts of two devices: they have one managed variable, which
 * lives as long as one of them does; and what a hostile client says of libraries.
 */
#include "protocol/generated/cuda_wire.h"
#include "tests/unit/worker/worker_image.h"

#define MODULE(NUMBER) handle_make(1, KIND_CUmodule, NUMBER)

static const char managed[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .global .attribute(.managed) .align 4 .u32 shared = 5;\n"
	".visible .global .align 4 .u32 own;\n"
	".visible .entry none()\n{\n	ret;\n}\n";

static void start(struct peer *p)
{
	setenv("VCUDA_SOFTGPU_DEVICES", "2", 1);
	peer_start(p);
}

/* Brings TEXT, and loads it as MODULE in that context as one of LIBRARY's. */
static CUresult load(
	struct peer *p, const char *text, uint16_t context, uint64_t module, uint64_t library)
{
	uint32_t size = (uint32_t)strlen(text) + 1;
	struct {
		struct wire_vcudaModuleData data;
		uint8_t digest[32];
	} data = {.data = {.digest = {sizeof(data.data), 32}, .size = size}};
	struct {
		struct wire_vcudaModuleLoad load;
		uint8_t digest[32];
		struct image_option option;
	} load = {.load = {.module = module,
			  .digest = {sizeof(load.load), 32},
			  .size = size,
			  .kind = IMAGE_PTX,
			  .jit = {sizeof(load.load) + 32, sizeof(load.option)},
			  .jit_bytes = sizeof(load.option)},
		.option = {.option = IMAGE_OPTION_LIBRARY, .value = library}};
	struct frame_header h = call_header(p, OP_vcudaModuleData, sizeof(data));
	bool lost;

	SHA256((const void *)text, size, data.digest);
	memcpy(load.digest, data.digest, 32);
	h.kind = FRAME_POST;
	h.length += size;
	peer_send(p, &h, &data);
	assert_int_equal(send(p->commands, text, size, MSG_NOSIGNAL), size);
	h = call_header(p, OP_vcudaModuleLoad, sizeof(load));
	h.context = context;
	peer_send(p, &h, &load);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	return (CUresult)h.status;
}

static uint64_t variable(struct peer *p, uint64_t module, const char *name)
{
	struct {
		struct wire_vcudaGlobalGet get;
		char name[8];
	} get = {.get = {.module = module,
			 .name = {sizeof(get.get), (uint32_t)strlen(name) + 1}}};
	const struct wire_vcudaGlobalGet_reply *reply = (const void *)peer_body;

	strcpy(get.name, name);
	assert_int_equal(CALL_OF(OP_vcudaGlobalGet, get), CUDA_SUCCESS);
	assert_int_equal(reply->bytes, 4);
	return reply->address;
}

static void unload(struct peer *p, uint64_t module)
{
	struct wire_vcudaModuleUnload unload = {.module = module};

	assert_int_equal(CALL_OF(OP_vcudaModuleUnload, unload), CUDA_SUCCESS);
}

static void one_variable(void **state)
{
	const uint16_t first = CONTEXT_PRIMARY(0), second = CONTEXT_PRIMARY(1);
	struct wire_vcudaPrimaryReset reset = {.device = 1};
	struct peer peer, *p = &peer;
	uint64_t shared;

	(void)state;
	start(p);
	assert_int_equal(load(p, managed, first, MODULE(1), 7), CUDA_SUCCESS);
	assert_int_equal(load(p, managed, second, MODULE(2), 7), CUDA_SUCCESS);
	shared = variable(p, MODULE(1), "shared");
	assert_int_equal(variable(p, MODULE(2), "shared"), shared);
	assert_int_not_equal(variable(p, MODULE(1), "own"), variable(p, MODULE(2), "own"));
	/* Another library's is another one. */
	assert_int_equal(load(p, managed, second, MODULE(3), 8), CUDA_SUCCESS);
	assert_int_not_equal(variable(p, MODULE(3), "shared"), shared);
	/* Once one has gone the other goes on, and a new one has what that has. */
	unload(p, MODULE(2));
	assert_int_equal(variable(p, MODULE(1), "shared"), shared);
	assert_int_equal(load(p, managed, second, MODULE(4), 7), CUDA_SUCCESS);
	assert_int_equal(variable(p, MODULE(4), "shared"), shared);
	assert_int_equal(CALL_OF(OP_vcudaPrimaryReset, reset), CUDA_SUCCESS);
	assert_int_equal(load(p, managed, second, MODULE(5), 7), CUDA_SUCCESS);
	assert_int_equal(variable(p, MODULE(5), "shared"), shared);
	unload(p, MODULE(1));
	unload(p, MODULE(5));
	assert_int_equal(load(p, managed, second, MODULE(6), 7), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void what_is_wrong(void **state)
{
	static const char broken[] = ".version 7.0\n.target sm_50\n.visible .entry none(\n";
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (int i = 0; i < 3; i++) {
		assert_int_not_equal(
			load(p, broken, CONTEXT_PRIMARY(0), MODULE(1), 7), CUDA_SUCCESS);
		assert_int_equal(load(p, managed, CONTEXT_PRIMARY(3), MODULE(1), 7),
			CUDA_ERROR_INVALID_CONTEXT);
	}
	/* As often as one likes in one context; a library has so many modules. */
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(load(p, managed, CONTEXT_PRIMARY(0), MODULE(i), UINT64_MAX),
			CUDA_SUCCESS);
	assert_int_equal(load(p, managed, CONTEXT_PRIMARY(0), MODULE(64), UINT64_MAX),
		CUDA_ERROR_INVALID_VALUE);
	for (uint32_t i = 0; i < 64; i++)
		unload(p, MODULE(i));
	expect_alive(p);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_variable),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
