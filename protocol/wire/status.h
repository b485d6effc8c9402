/* SPDX-License-Identifier: Apache-2.0
 *
 * The statuses that travel outside of a call's answer, in WELCOME, LOST, an answer on the Unix
 * socket, a worker's datagram, a tensor's message: CUresult by number, since who sends them has
 * no header of NVIDIA's.  The worker, which has, checks them (gpu-agent/worker/worker.c).
 */
#ifndef VCUDA_PROTOCOL_STATUS_H
#define VCUDA_PROTOCOL_STATUS_H

enum wire_status {
	STATUS_OK = 0,
	STATUS_INVALID_VALUE = 1,
	STATUS_OUT_OF_MEMORY = 2,
	STATUS_UNAVAILABLE = 46, /* no GPU is free: a limit of the agent's */
	STATUS_NO_DEVICE = 100,
	STATUS_INVALID_DEVICE = 101,
	STATUS_ECC = 214,	/* an uncorrectable error of the GPU's memory */
	STATUS_NVLINK = 220,	/* the same of an NVLink */
	STATUS_NOT_FOUND = 500, /* no tensor of that name */
	STATUS_PENDING = 600,	/* a tensor that is not sealed yet; a session that may be had
				   after another look (SESSION_FEATURE_SEEN) */
	STATUS_NOT_PERMITTED = 800, /* token or quota */
	STATUS_NOT_READY = 802,	    /* draining, no agent, no sidecar */
	STATUS_MISMATCH = 803,	    /* another version of the protocol */
	STATUS_LOST = 911,	    /* the process's CUDA ends, and no bug of it */
};

#endif
