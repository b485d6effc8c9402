/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda smi topo: what the GPUs that programs here get are to each other, in the words of
 * nvidia-smi.  All of it comes from the agent's machine; where that has no NVML, whether one
 * reaches the other's memory is all that is known.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "command/topology.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TOPO_GPUS 64 /* the most that a program gets */
#define TOPO_CELL 16
#define TOPO_NVML(name) ((__typeof__(&name))dlsym(library, #name))

struct topology {
	unsigned count;
	nvmlDevice_t gpus[TOPO_GPUS];
	nvmlPciInfo_t places[TOPO_GPUS];
};

static bool same_place(const nvmlPciInfo_t *a, const nvmlPciInfo_t *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* NVLinks of ONE that lead to OTHER: to it, or to a switch, which all are behind. */
static unsigned links(void *library, const struct topology *t, unsigned one, unsigned other)
{
	unsigned n = 0;

	for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
		nvmlEnableState_t active;
		nvmlIntNvLinkDeviceType_t type;
		nvmlPciInfo_t at;

		if (TOPO_NVML(nvmlDeviceGetNvLinkState)(t->gpus[one], link, &active))
			return n; /* it has no more */
		if (active != NVML_FEATURE_ENABLED)
			continue;
		if (!TOPO_NVML(nvmlDeviceGetNvLinkRemoteDeviceType)(
			    t->gpus[one], link, &type) &&
			type == NVML_NVLINK_DEVICE_TYPE_SWITCH)
			n++;
		else if (!TOPO_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(
				 t->gpus[one], link, &at) &&
			 same_place(&at, &t->places[other]))
			n++;
	}
	return n;
}

static const char *level_name(nvmlGpuTopologyLevel_t level)
{
	switch (level) {
	case NVML_TOPOLOGY_INTERNAL:
	case NVML_TOPOLOGY_SINGLE: return "PIX";
	case NVML_TOPOLOGY_MULTIPLE: return "PXB";
	case NVML_TOPOLOGY_HOSTBRIDGE: return "PHB";
	case NVML_TOPOLOGY_NODE: return "NODE";
	case NVML_TOPOLOGY_SYSTEM: return "SYS";
	default: return "N/A";
	}
}

static void cell_way(void *library, const struct topology *t, unsigned one, unsigned other,
	char cell[TOPO_CELL])
{
	nvmlGpuTopologyLevel_t level;
	nvmlGpuP2PStatus_t status;
	/* Nothing is known of the access of two agents' GPUs; each may have a switch. */
	bool one_machine = !TOPO_NVML(nvmlDeviceGetP2PStatus)(
		t->gpus[one], t->gpus[other], NVML_P2P_CAPS_INDEX_READ, &status);
	unsigned n = one_machine ? links(library, t, one, other) : 0;

	if (n)
		snprintf(cell, TOPO_CELL, "NV%u", n);
	else if (!TOPO_NVML(nvmlDeviceGetTopologyCommonAncestor)(
			 t->gpus[one], t->gpus[other], &level))
		snprintf(cell, TOPO_CELL, "%s", level_name(level));
	else if (one_machine && status == NVML_P2P_STATUS_OK)
		snprintf(cell, TOPO_CELL, "P2P");
	else
		snprintf(cell, TOPO_CELL, "N/A");
}

static void cell_access(void *library, const struct topology *t, unsigned one, unsigned other,
	nvmlGpuP2PCapsIndex_t which, char cell[TOPO_CELL])
{
	static const char *const names[] = {[NVML_P2P_STATUS_OK] = "OK",
		[NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED] = "CNS",
		[NVML_P2P_STATUS_GPU_NOT_SUPPORTED] = "GNS",
		[NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED] = "TNS",
		[NVML_P2P_STATUS_DISABLED_BY_REGKEY] = "DR",
		[NVML_P2P_STATUS_NOT_SUPPORTED] = "NS",
		[NVML_P2P_STATUS_UNKNOWN] = "U"};
	nvmlGpuP2PStatus_t status;

	if (TOPO_NVML(nvmlDeviceGetP2PStatus)(t->gpus[one], t->gpus[other], which, &status) ||
		(unsigned)status >= sizeof(names) / sizeof(*names))
		snprintf(cell, TOPO_CELL, "N/A");
	else
		snprintf(cell, TOPO_CELL, "%s", names[status]);
}

static void print_legend(int access)
{
	fputs(access < 0 ? "\nLegend:\n\n"
			   "  X    = itself\n"
			   "  NV#  = # NVLinks\n"
			   "  PIX  = one PCIe bridge at most\n"
			   "  PXB  = several PCIe bridges, no host bridge\n"
			   "  PHB  = a PCIe host bridge\n"
			   "  NODE = host bridges of one NUMA node\n"
			   "  SYS  = from one NUMA node to another\n"
			   "  P2P  = they reach each other's memory; the agent does not know "
			   "the way\n"
			 : "\nLegend:\n\n"
			   "  X    = itself\n"
			   "  OK   = it can\n"
			   "  CNS  = the chipset does not support it\n"
			   "  GNS  = the GPU does not support it\n"
			   "  TNS  = the topology does not support it\n"
			   "  DR   = it is switched off\n"
			   "  NS   = it is not supported\n"
			   "  U    = unknown\n",
		stdout);
}

/* -1: the ways. */
int topology_print(void *library, unsigned count, int access)
{
	struct topology t = {.count = count < TOPO_GPUS ? count : TOPO_GPUS};
	char cell[TOPO_CELL];

	for (unsigned i = 0; i < t.count; i++)
		if (TOPO_NVML(nvmlDeviceGetHandleByIndex_v2)(i, &t.gpus[i]) ||
			TOPO_NVML(nvmlDeviceGetPciInfo_v3)(t.gpus[i], &t.places[i]))
			return -1;
	printf("%-6s", "");
	for (unsigned i = 0; i < t.count; i++)
		printf(" GPU%-4u", i);
	putchar('\n');
	for (unsigned one = 0; one < t.count; one++) {
		printf("GPU%-3u", one);
		for (unsigned other = 0; other < t.count; other++) {
			if (one == other)
				snprintf(cell, sizeof(cell), "X");
			else if (access < 0)
				cell_way(library, &t, one, other, cell);
			else
				cell_access(library, &t, one, other,
					(nvmlGpuP2PCapsIndex_t)access, cell);
			printf(" %-7s", cell);
		}
		putchar('\n');
	}
	print_legend(access);
	return 0;
}
