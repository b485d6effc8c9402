/* SPDX-License-Identifier: Apache-2.0
 *
 * Exit statuses that one of our programs tells another by.
 */
#ifndef VCUDA_COMMON_EXIT_STATUS_H
#define VCUDA_COMMON_EXIT_STATUS_H

/* vcuda-client probe: the agent answers, and does not let this pod in (token, quota). */
#define EXIT_NOT_PERMITTED 3

#endif
