/* SPDX-License-Identifier: Apache-2.0
 *
 * Where vcuda.exe -role client, while it runs, tells the programs of its user which agent they
 * are to use: a section by name, which goes with the process that made it.
 */
#ifndef VCUDA_WINDOWS_OS_AGENT_ADDRESS_H
#define VCUDA_WINDOWS_OS_AGENT_ADDRESS_H

#define PLACE_NAME "Local\\vcuda-agent"
#define PLACE_BYTES 4096 /* HOST:PORT and a NUL */

#endif
