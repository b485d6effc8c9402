/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels print, on the app's stdout.
 */
#ifndef VCUDA_SHIM_OUTPUT_H
#define VCUDA_SHIM_OUTPUT_H

/* Prints what has come since the last time; one load where nothing has. Call it after each
 * answer that tells of finished work. Takes its own lock; makes calls. */
void output_fetch(void);

#endif
