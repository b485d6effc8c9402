/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies on a board (gpu-agent/worker/driver/ipc/ipc_board.c), as a hostile session sees it.
 */
#ifndef VCUDA_TESTS_UNIT_BOARD_PAGE_H
#define VCUDA_TESTS_UNIT_BOARD_PAGE_H

#include <stdint.h>

#include "gpu-agent/worker/driver/ipc/ipc_board.h"

struct page {
	uint64_t magic, unused[7];
	struct {
		uint64_t recording, serial, sessions[2];
	} events[BOARD_EVENTS];
	struct {
		uint64_t claim, done;
	} tracks[BOARD_TRACKS];
};

#endif
