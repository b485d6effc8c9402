/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print, on the app's stdout and stderr.
 */
#ifndef VCUDA_SHIM_OUTPUT_H
#define VCUDA_SHIM_OUTPUT_H

/* Prints what has come since the last time; two loads where nothing has. Call it after each
 * answer that tells of finished work or of a fault. Takes its own lock; makes calls. */
void output_fetch(void);

#endif
