/* SPDX-License-Identifier: Apache-2.0
 *
 * What vcudaNvmlFacts, vcudaNvmlText and vcudaNvmlFields carry: what a worker knows of a GPU
 * beyond CUDA, as numbers and texts.  A fact that the agent cannot know (no NVML there, not on
 * this GPU) is not set in `known`; nothing is ever made up for it.
 */
#ifndef VCUDA_PROTOCOL_WIRE_NVML_H
#define VCUDA_PROTOCOL_WIRE_NVML_H

#include <stdint.h>

/* Units as in nvml.h. Numbers are never given to another fact. */
enum nvml_fact {
	NVML_FACT_MEMORY_TOTAL = 0, /* bytes */
	NVML_FACT_MEMORY_FREE = 1,
	NVML_FACT_MEMORY_USED = 2,	     /* without what is reserved */
	NVML_FACT_MEMORY_RESERVED = 3,	     /* by driver and firmware */
	NVML_FACT_SESSION_USED = 4,	     /* bytes that this session has mapped */
	NVML_FACT_UTILIZATION_GPU = 5,	     /* percent */
	NVML_FACT_UTILIZATION_MEMORY = 6,    /* percent */
	NVML_FACT_TEMPERATURE = 7,	     /* degrees C */
	NVML_FACT_POWER_USAGE = 8,	     /* mW */
	NVML_FACT_POWER_LIMIT = 9,	     /* mW */
	NVML_FACT_POWER_LIMIT_DEFAULT = 10,  /* mW */
	NVML_FACT_POWER_LIMIT_ENFORCED = 11, /* mW */
	NVML_FACT_POWER_LIMIT_MIN = 12,	     /* mW */
	NVML_FACT_POWER_LIMIT_MAX = 13,	     /* mW */
	NVML_FACT_ENERGY = 14,		     /* mJ */
	NVML_FACT_CLOCK = 16,		     /* MHz, + nvmlClockType_t, 4 of them */
	NVML_FACT_MAX_CLOCK = 20,	     /* the same */
	NVML_FACT_FAN_SPEED = 24,	     /* percent */
	NVML_FACT_FANS = 25,
	NVML_FACT_PERFORMANCE_STATE = 26,
	NVML_FACT_CLOCK_REASONS = 27,
	NVML_FACT_ECC = 28,
	NVML_FACT_ECC_PENDING = 29,
	NVML_FACT_PERSISTENCE = 30,
	NVML_FACT_COMPUTE_MODE = 31,
	NVML_FACT_MIG = 32,
	NVML_FACT_MIG_PENDING = 33,
	NVML_FACT_MINOR_NUMBER = 34,
	NVML_FACT_PCI_DEVICE_ID = 35,
	NVML_FACT_PCI_SUBSYSTEM_ID = 36,
	NVML_FACT_BRAND = 37,
	NVML_FACT_DISPLAY_MODE = 38,
	NVML_FACT_DISPLAY_ACTIVE = 39,
	NVML_FACT_PCIE_GENERATION = 40,
	NVML_FACT_PCIE_WIDTH = 41,
	NVML_FACT_PCIE_GENERATION_MAX = 42,
	NVML_FACT_PCIE_WIDTH_MAX = 43,
	NVML_FACT_BAR1_TOTAL = 44, /* bytes */
	NVML_FACT_BAR1_FREE = 45,
	NVML_FACT_BAR1_USED = 46,
	NVML_FACT_ENCODER = 47, /* percent */
	NVML_FACT_DECODER = 48, /* percent */
	NVML_FACT_CORES = 49,
	NVML_FACT_BUS_WIDTH = 50, /* bits */
	NVML_FACT_SLOWDOWN = 51,  /* degrees C */
	NVML_FACT_SHUTDOWN = 52,  /* degrees C */
	/* The fabric that the GPU belongs to; its cluster's UUID in two halves of 8 bytes. */
	NVML_FACT_FABRIC_STATE = 53,
	NVML_FACT_FABRIC_STATUS = 54,
	NVML_FACT_FABRIC_CLIQUE = 55,
	NVML_FACT_FABRIC_CLUSTER = 56,
	NVML_FACT_FABRIC_HEALTH = 58,	      /* a mask */
	NVML_FACT_FABRIC_HEALTH_SUMMARY = 59, /* NVML of 13.0 and newer */
	NVML_FACT_MIG_DEVICES_MAX = 60,
};
#define NVML_FACTS_MAX 64

struct nvml_facts {
	uint64_t known; /* bit f: values[f] is valid */
	int64_t values[NVML_FACTS_MAX];
};

/* vcudaNvmlText's `which`; of the machine (device -1) or of a device. */
enum nvml_text {
	NVML_TEXT_DRIVER_VERSION = 1,
	NVML_TEXT_NVML_VERSION = 2,
	NVML_TEXT_VBIOS = 3,
	NVML_TEXT_SERIAL = 4,
	NVML_TEXT_PART_NUMBER = 5,
	NVML_TEXT_DRIVER_BRANCH = 6, /* of the machine, as the first two */
};
#define NVML_TEXT_BYTES 96

/* One of the field values of vcudaNvmlFields: what is asked, and what is told. */
struct nvml_field {
	uint32_t field, scope;
};
struct nvml_field_value {
	int64_t timestamp, latency; /* us */
	uint32_t type;		    /* nvmlValueType_t: how `value` is read */
	int32_t status;		    /* nvmlReturn_t */
	uint64_t value;		    /* the bytes of nvmlValue_t */
};
#define NVML_FIELDS_MAX 32 /* in one call */

/* What two GPUs are to each other; bits of `known`. */
enum nvml_pair_known {
	NVML_PAIR_LEVEL = 1 << 0,
	NVML_PAIR_SAME_BOARD = 1 << 1,
	NVML_PAIR_P2P = 1 << 8, /* << nvmlGpuP2PCapsIndex_t */
};
#define NVML_PAIR_P2PS 5
#define NVML_PAIR_FARTHEST 50 /* NVML_TOPOLOGY_SYSTEM */

struct nvml_pair {
	uint32_t known;
	uint32_t level; /* nvmlGpuTopologyLevel_t */
	uint32_t same_board;
	uint32_t p2p[NVML_PAIR_P2PS]; /* nvmlGpuP2PStatus_t, by nvmlGpuP2PCapsIndex_t */
};

/* One of a GPU's NVLinks, and what is at its other end; bits of `known`. */
enum nvml_link_known {
	NVML_LINK_STATE = 1 << 0,
	NVML_LINK_VERSION = 1 << 1,
	NVML_LINK_REMOTE_TYPE = 1 << 2,
	NVML_LINK_REMOTE_PLACE = 1 << 3,
};

struct nvml_link {
	uint32_t known;
	uint32_t active;  /* nvmlEnableState_t */
	uint32_t version; /* of NVLink */
	uint32_t remote;  /* nvmlIntNvLinkDeviceType_t */
	uint32_t domain, bus, device;
	uint32_t device_id, subsystem_id;
};

#endif
