/* SPDX-License-Identifier: Apache-2.0
 *
 * What two workers say on a connection over which a tensor is fetched (SESSION_COPY): the one
 * that has it sends a head, then its bytes; the one that fetches answers with one byte when it
 * has all of them.
 */
#ifndef VCUDA_PROTOCOL_WIRE_TENSOR_COPY_H
#define VCUDA_PROTOCOL_WIRE_TENSOR_COPY_H

#include <stdint.h>

#define TENSOR_COPY_MAGIC 0x31595043u /* "CPY1" */
#define TENSOR_COPY_ALL 0xA1u	      /* the answer */

struct tensor_copy_head {
	uint32_t magic;
	uint32_t reserved;
	uint64_t bytes; /* that follow */
};
_Static_assert(sizeof(struct tensor_copy_head) == 16, "");

#endif
