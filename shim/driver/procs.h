/* SPDX-License-Identifier: Apache-2.0
 *
 * Which function answers for a name, by the CUDA version that the app asks for.
 */
#ifndef VCUDA_SHIM_PROCS_H
#define VCUDA_SHIM_PROCS_H

struct cuda_proc {
	const char *name; /* without _v2 */
	int since;	  /* e.g. 12050; the newest that is not newer than asked for wins */
	int per_thread_since;
	void *function;
	void *per_thread; /* NULL: the call has no per-thread form, use `function` */
};

/* The versions of NAME, oldest first, *COUNT of them; NULL where no function has that name. */
const struct cuda_proc *cuda_proc_find(const char *name, unsigned *count);

#endif
