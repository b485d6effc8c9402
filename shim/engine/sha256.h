/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), by which images are named.  The shim links libc only.
 */
#ifndef VCUDA_SHIM_ENGINE_SHA256_H
#define VCUDA_SHIM_ENGINE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const void *bytes, size_t n, uint8_t digest[32]);

#endif
