/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor of cuDNN's graph API with all that it refers to, flat: 32-bit words.
 *
 *	tree:	   number of nodes, then the nodes; the last is the root.
 *	node:	   type | number of attributes << 16, then the attributes, by ascending name.
 *	attribute: name | type << 16, count, then `count` elements, padded to whole words:
 *		   bytes as in memory; but a descriptor is 1 + the number of its node, which
 *		   comes earlier (0: NULL), and a handle is nothing: the frame's own is meant.
 *
 * The same content gives the same words, so both ends keep things by them.  Answers that are
 * descriptors come as trees, one after the other, each behind the number of its words.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUDNN_TREE_H
#define VCUDA_PROTOCOL_LIBRARIES_CUDNN_TREE_H

#include <stdint.h>

#include "protocol/libraries/cudnn_backend.h"

#define CUDNN_TREE_BYTES (48u * 1024) /* a frame's body takes that and its head */
#define CUDNN_TREE_NODES 2048u
#define CUDNN_TREE_ATTRIBUTES 64u /* of one node */
#define CUDNN_TREE_ELEMENTS 4096u /* of one attribute, text apart */
#define CUDNN_ASK_NOTHING UINT32_MAX
#define CUDNN_ANSWER_BYTES 1900u

/* Bytes of an element; a handle or a descriptor has those of a pointer. 0: not known. */
static inline uint32_t cudnn_attribute_bytes(uint32_t type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
	case CUDNN_TYPE_CHAR: return 1;
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
	case CUDNN_TYPE_FRACTION: return 16;
	default: return type <= CUDNN_TYPE_CUDA_GRAPH_RETENTION ? 4 : 0;
	}
}

/* Words that the elements of an attribute take in a tree; UINT32_MAX: no such attribute. */
static inline uint32_t cudnn_attribute_words(uint32_t type, uint32_t count)
{
	uint32_t bytes = cudnn_attribute_bytes(type);

	if (!bytes || (type != CUDNN_TYPE_CHAR && count > CUDNN_TREE_ELEMENTS) ||
		count > CUDNN_TREE_BYTES)
		return UINT32_MAX;
	if (type == CUDNN_TYPE_HANDLE)
		return 0;
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return count;
	return (count * bytes + 3) / 4;
}

#endif
