/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's numbers of the program's calls (CUpti_CallbackId) and what it calls them, as the
 * CUPTI of this ABI has them: protocol/api/cupti_callbacks.txt.
 */
#ifndef VCUDA_CUPTI_CALLBACKS_H
#define VCUDA_CUPTI_CALLBACKS_H

#include <stdint.h>

/* CUpti_CallbackDomain's. */
enum callback_domain {
	CALLBACK_NONE,
	CALLBACK_DRIVER,
	CALLBACK_RUNTIME,
	CALLBACK_RESOURCE,
	CALLBACK_SYNCHRONIZE,
	CALLBACK_NVTX,
	CALLBACK_STATE,
	CALLBACK_DOMAINS
};

struct callback {
	uint16_t domain; /* CALLBACK_NONE: CUPTI has no number for it, 0 */
	uint16_t number;
};

/* CALL: CALL_… of shim/generated/cuda_calls.h. */
struct callback callback_of(unsigned call);
/* The name of a number of the driver or the runtime, which lasts; that of 0 is INVALID. NULL:
 * there is no such number. */
const char *callback_name(unsigned domain, uint32_t number);
/* How many numbers a domain has, with 0: CUPTI_…_TRACE_CBID_SIZE. */
uint32_t callback_numbers(unsigned domain);

#endif
