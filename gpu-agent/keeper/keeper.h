/* SPDX-License-Identifier: Apache-2.0
 *
 * `gpu-agent keep`: runs once, in a Job of the chart's, beside no agent.  It keeps in objects
 * of the cluster what agents and sidecars have mounted: the cluster's public keys, and a
 * certificate with the CA that signed it.  The objects are there already, so it needs the right
 * to read and patch these few and no other.
 */
#ifndef VCUDA_GPU_AGENT_KEEPER_KEEPER_H
#define VCUDA_GPU_AGENT_KEEPER_KEEPER_H

/* ARGV as main's, without its first two words. The exit status: 0, 1 where something failed
 * (said on stderr), 2 where the command line is wrong. */
int keeper_main(int argc, char **argv);

#endif
