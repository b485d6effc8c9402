/* SPDX-License-Identifier: Apache-2.0
 *
 * Which attributes of a launch travel: the shim sends no other, and the worker takes no other.
 */
#ifndef VCUDA_PROTOCOL_LAUNCH_H
#define VCUDA_PROTOCOL_LAUNCH_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum { LAUNCH_ATTRIBUTES_MAX = 16 }; /* of one launch */

/* Those whose value is a plain number.  Others hold events, device nodes, or pointers that the
 * driver would write through. */
static inline bool launch_attribute_travels(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return true;
	default: return false;
	}
}

/* How much of a value NVIDIA's driver writes where it tells one. */
static inline size_t launch_attribute_bytes(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return offsetof(CUaccessPolicyWindow, missProp) + sizeof(CUaccessProperty);
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: return 3 * sizeof(unsigned);
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return sizeof(CUlaunchMemSyncDomainMap);
	default: return sizeof(int);
	}
}

#endif
