/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel given as PTX: its module is loaded and one thread of it launched on the legacy
 * stream.
 */
#ifndef VCUDA_TESTS_UNIT_WORKER_IMAGE_H
#define VCUDA_TESTS_UNIT_WORKER_IMAGE_H

#include <openssl/sha.h>

#include "tests/unit/worker/worker_peer.h"

/* Brings the text PTX and loads it as MODULE; the load's status. */
static inline CUresult image_load(struct peer *p, const char *ptx, uint64_t module)
{
	uint32_t size = (uint32_t)strlen(ptx) + 1;
	struct {
		struct wire_vcudaModuleData data;
		uint8_t digest[32];
	} data = {.data = {.digest = {sizeof(data.data), 32}, .size = size}};
	struct {
		struct wire_vcudaModuleLoad load;
		uint8_t digest[32];
	} load = {.load = {.module = module,
			  .digest = {sizeof(load.load), 32},
			  .size = size,
			  .kind = IMAGE_PTX,
			  .jit = {sizeof(load.load), 0}}};
	struct frame_header h = call_header(p, OP_vcudaModuleData, sizeof(data));

	SHA256((const void *)ptx, size, data.digest);
	memcpy(load.digest, data.digest, 32);
	h.kind = FRAME_POST;
	h.length += size;
	peer_send(p, &h, &data);
	assert_int_equal(send(p->commands, ptx, size, MSG_NOSIGNAL), size);
	return CALL_OF(OP_vcudaModuleLoad, load);
}

/* PTX with its NUL; the kernel's NAME has four letters. */
static inline void image_launch(struct peer *p, const char *ptx, const char *name)
{
	const uint64_t module = handle_make(1, KIND_CUmodule, 1);
	struct {
		struct wire_vcudaFunctionGet get;
		char name[8];
	} get = {.get = {.module = module,
			 .function = handle_make(1, KIND_CUfunction, 2),
			 .name = {sizeof(get.get), 5}}};
	struct wire_vcudaLaunch launch = {.function = get.get.function,
		.gridX = 1,
		.gridY = 1,
		.gridZ = 1,
		.blockX = 1,
		.blockY = 1,
		.blockZ = 1};
	struct frame_header h;

	assert_int_equal(strlen(name), 4);
	memcpy(get.name, name, 5);
	assert_int_equal(image_load(p, ptx, module), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaFunctionGet, get), CUDA_SUCCESS);
	h = call_header(p, OP_vcudaLaunch, sizeof(launch));
	h.kind = FRAME_POST;
	peer_send(p, &h, &launch);
}

#endif
