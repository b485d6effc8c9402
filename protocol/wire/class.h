/* SPDX-License-Identifier: Apache-2.0
 *
 * Which class a frame counts to where times are kept (common/latency.h): by its opcode and by
 * whether it is awaited.  The worker checks the numbers against the description.
 */
#ifndef VCUDA_PROTOCOL_WIRE_CLASS_H
#define VCUDA_PROTOCOL_WIRE_CLASS_H

#include <stdint.h>

#include "common/latency.h"
#include "protocol/wire/frame.h"

#define CLASS_MODULE_LOAD 5
#define CLASS_MODULE_DATA 6
#define CLASS_COPY_IN 17
#define CLASS_COPY_OUT 18
#define CLASS_ARRAY_IN 163
#define CLASS_ARRAY_OUT 164
#define CLASS_LIBRARIES 1280 /* all from here on */

static inline enum latency_class class_of(const struct frame_header *header)
{
	switch (header->op) {
	case CLASS_MODULE_LOAD:
	case CLASS_MODULE_DATA: return LATENCY_MODULE;
	case CLASS_COPY_IN:
	case CLASS_ARRAY_IN: return LATENCY_COPY_IN;
	case CLASS_COPY_OUT:
	case CLASS_ARRAY_OUT: return LATENCY_COPY_OUT;
	default: break;
	}
	if (header->op >= CLASS_LIBRARIES)
		return LATENCY_LIBRARY;
	return header->kind == FRAME_CALL ? LATENCY_CALL : LATENCY_POST;
}

#endif
