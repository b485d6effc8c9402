/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMMON_VERSION_H
#define VCUDA_COMMON_VERSION_H

#define VCUDA_VERSION "0.1.0"

#endif
