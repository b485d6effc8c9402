/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/engine/thread.h"

void thread_gone(struct thread_rest *rest)
{
	thread_rest_end(rest);
}
