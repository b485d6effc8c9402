/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda-client install FROM TO [LINE]: copies what programs preload, and the commands for
 * people, out of the client's image into a volume that a pod's containers share.  Done again
 * beside programs that run, it disturbs none: each file appears whole, under its name, at once.
 */
#ifndef VCUDA_SIDECAR_INSTALL_H
#define VCUDA_SIDECAR_INSTALL_H

/* The arguments from `install` on. Exit status: 0, 1 where a file could not be made, 2 for
 * wrong usage; said on stderr. */
int install_main(int argc, char **argv);

#endif
