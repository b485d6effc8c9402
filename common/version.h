/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMMON_VERSION_H
#define VCUDA_COMMON_VERSION_H

/* Of every product: major.minor.patch of semver.org. */
#define VCUDA_VERSION "0.1.0"

/* With the commit where the Makefile says it; not in fuzzers, which link the same sources. */
#ifdef VCUDA_COMMIT
#define VCUDA_BUILD VCUDA_VERSION " (commit " VCUDA_COMMIT ")"
#else
#define VCUDA_BUILD VCUDA_VERSION
#endif

#endif
