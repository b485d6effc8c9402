/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes on the two session ports. The first byte chooses the port.
 */
#include "tests/fuzz/agent_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (n)
		target_send(bytes[0] & 1 ? LISTEN_RECV : LISTEN_SEND, bytes + 1, n - 1);
	return 0;
}
