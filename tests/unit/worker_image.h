/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel given as PTX: its module is loaded and one thread of it launched on the legacy
 * stream.
 */
#ifndef VCUDA_TESTS_UNIT_WORKER_IMAGE_H
#define VCUDA_TESTS_UNIT_WORKER_IMAGE_H

#include <openssl/sha.h>

#include "tests/unit/worker_peer.h"

/* Answered with success. */
static inline void image_call(struct peer *p, uint16_t op, const void *body, size_t n)
{
	struct frame_header h = call_header(p, op, (uint32_t)n);
	bool lost;

	peer_send(p, &h, body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
}

/* PTX with its NUL; the kernel's NAME has four letters. */
static inline void image_launch(struct peer *p, const char *ptx, const char *name)
{
	uint32_t size = (uint32_t)strlen(ptx) + 1;
	struct {
		struct wire_vcudaModuleData data;
		uint8_t digest[32];
	} data = {.data = {.digest = {sizeof(data.data), 32}, .size = size}};
	struct {
		struct wire_vcudaModuleLoad load;
		uint8_t digest[32];
	} load = {.load = {.module = handle_make(1, KIND_CUmodule, 1),
			  .digest = {sizeof(load.load), 32},
			  .size = size,
			  .kind = IMAGE_PTX,
			  .jit = {sizeof(load.load), 0}}};
	struct {
		struct wire_vcudaFunctionGet get;
		char name[8];
	} get = {.get = {.module = load.load.module,
			 .function = handle_make(1, KIND_CUfunction, 2),
			 .name = {sizeof(get.get), 5}}};
	struct wire_vcudaLaunch launch = {.function = get.get.function,
		.gridX = 1,
		.gridY = 1,
		.gridZ = 1,
		.blockX = 1,
		.blockY = 1,
		.blockZ = 1};
	struct frame_header h = call_header(p, OP_vcudaModuleData, sizeof(data));

	assert_int_equal(strlen(name), 4);
	memcpy(get.name, name, 5);
	SHA256((const void *)ptx, size, data.digest);
	memcpy(load.digest, data.digest, 32);
	h.kind = FRAME_POST;
	h.length += size;
	peer_send(p, &h, &data);
	assert_int_equal(send(p->commands, ptx, size, MSG_NOSIGNAL), size);
	image_call(p, OP_vcudaModuleLoad, &load, sizeof(load));
	image_call(p, OP_vcudaFunctionGet, &get, sizeof(get));
	h = call_header(p, OP_vcudaLaunch, sizeof(launch));
	h.kind = FRAME_POST;
	peer_send(p, &h, &launch);
}

#endif
