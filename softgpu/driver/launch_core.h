/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of launches share: launch.c makes and runs them, launch_attributes.c has their
 * attributes.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_LAUNCH_CORE_H
#define VCUDA_SOFTGPU_DRIVER_LAUNCH_CORE_H

#include "softgpu/driver/softgpu.h"

#define PARAMS_READ 256 /* of a graph's node, as pointers */

/* Attributes that change nothing here, kept for who asks a graph's node. */
struct hints {
	CUaccessPolicyWindow window;
	int priority;
	CUclusterSchedulingPolicy cluster_policy;
	CUlaunchMemSyncDomainMap domain_map;
	CUlaunchMemSyncDomain domain;
	unsigned carveout;
	bool has_cluster; /* set as an attribute */
	/* Blocks run in clusters of the regular size all the same. */
	bool has_preferred;
	unsigned preferred[3];
};
struct launch {
	struct ptx_launch ptx;
	size_t dynamic_shared;
	struct CUfunc_st *function;
	struct hints hints;
};
struct launch_op {
	struct op op;
	struct ptx_launch ptx;
	struct hints hints;
	struct CUfunc_st *function;
	void *pointers[PARAMS_READ]; /* into `params`, for who asks a node */
	_Alignas(16) unsigned char params[];
};

/* Whether the function may be launched so. */
CUresult launch_check(const struct launch *launch);
/* Every block resident at once: as many as the occupancy says. */
CUresult launch_cooperative_check(const struct launch *launch);

/* One that a launch and a node may have. */
CUresult launch_attribute_set(struct ptx_launch *ptx, struct hints *hints,
	CUlaunchAttributeID id, const CUlaunchAttributeValue *value);

/* module/occupancy.c: struct ptx_launch's `resident`. */
int occupancy_resident(
	const struct ptx_kernel_info *info, unsigned threads, size_t dynamic_shared);
/* module/function.c: what a kernel that has its `info` may use at first. */
void function_limits(struct CUfunc_st *function);

#endif
