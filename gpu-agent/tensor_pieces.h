/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed tensors have their memory together (store/pieces.c): who adds up a table's bytes
 * counts each piece once.  The set is the caller's, all zero before a walk through the table.
 */
#ifndef VCUDA_GPU_AGENT_TENSOR_PIECES_H
#define VCUDA_GPU_AGENT_TENSOR_PIECES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/tensor_table.h"

#define PIECE_SLOTS (2 * TENSORS_MAX) /* a table has fewer: a search ends */

struct piece_set {
	uint32_t pieces[PIECE_SLOTS];
};

/* Whether the walk has met the piece before; from now on it has. 0 is none, and is never met.
 */
static inline bool piece_met(struct piece_set *set, uint32_t piece)
{
	uint32_t at = piece * 2654435761u >> 16; /* Fibonacci hashing */

	if (!piece)
		return false;
	for (at %= PIECE_SLOTS; set->pieces[at]; at = (at + 1) % PIECE_SLOTS)
		if (set->pieces[at] == piece)
			return true;
	set->pieces[at] = piece;
	return false;
}

#endif
