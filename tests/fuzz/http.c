/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes on the control port.
 */
#include "tests/fuzz/agent_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	target_send(LISTEN_CONTROL, bytes, n);
	return 0;
}
