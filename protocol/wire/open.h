/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed structs inside the bodies of vcuda.api's calls that C prototypes cannot spell.
 */
#ifndef VCUDA_PROTOCOL_WIRE_OPEN_H
#define VCUDA_PROTOCOL_WIRE_OPEN_H

#include <stdint.h>

#include "protocol/wire/nvml.h"

#define OPEN_VERSION 2u
#define OPEN_ATTRIBUTES 256  /* CUdevice_attribute values 1..255; newer ones: NOT_SUPPORTED */
#define OPEN_LIMITS 16	     /* CUlimit 0..15 */
#define OPEN_DEVICES 16	     /* of an agent */
#define OPEN_DEVICES_MOST 64 /* of a process, which may have several agents */

/* vcudaOpen's `features`: where the worker is to reserve the windows of its devices, which lie
 * side by side then. In OPEN_WINDOW_UNITs, from the address that bits 32 to 47 say on, as many
 * as bits 48 to 63 say; 0: wherever it likes. It does so or refuses; one that does not know the
 * wish leaves them where they are, as the answer shows. The first frame of a session only. */
#define OPEN_WINDOW_UNIT (1ull << 36)
#define OPEN_WINDOW_FROM_SHIFT 32
#define OPEN_WINDOW_SPAN_SHIFT 48
/* Where both ends can have them: above ASan's shadow, below the mirror and programs. */
#define OPEN_WINDOW_LOW 0x200000000000ull
#define OPEN_WINDOW_HIGH 0x400000000000ull
#define OPEN_WINDOW_MOST (1ull << 41) /* of one device */

/* open_info.features, and the lower half of vcudaOpen's: what the one tells and the other wants
 * to know */
#define OPEN_FEATURE_PEERS                                                                     \
	(1ull << 0) /* behind the devices device_count² of struct open_peer */
#define OPEN_FEATURE_TENSORS (1ull << 2) /* the worker knows tensors with names (tensor.h) */
#define OPEN_FEATURE_SYMBOLS (1ull << 1) /* modules are loaded with addresses of variables */
#define OPEN_FEATURE_KERNELS (1ull << 3) /* of graphs: GRAPH_RESULT_KERNELS (graph.h) */
/* vcudaVmmAccess says what the device may do whose window a mapping is in. */
#define OPEN_FEATURE_ACCESS (1ull << 4)
/* vcudaVmmAccess gives other devices memory without a name, too. */
#define OPEN_FEATURE_UNNAMED (1ull << 5)
#define OPEN_FEATURE_LINKED (1ull << 6)	     /* links are made with addresses of variables */
#define OPEN_FEATURE_HOST_MEMORY (1ull << 7) /* vcudaVmmCreateHost */
#define OPEN_FEATURE_WITHIN (1ull << 8)	     /* vcudaQueryWithin */

/* open_device.flags */
#define OPEN_PTX_ONLY (1u << 0) /* the device runs PTX; machine code is of no use to it */

struct open_info {
	uint32_t version;
	uint32_t driver_version; /* cuDriverGetVersion */
	uint32_t device_count;
	uint32_t device_bytes; /* sizeof(struct open_device) */
	uint64_t features;
	/* Addresses that the worker keeps for host memory that kernels reach; 0 bytes: none. */
	uint64_t host_window;
	uint64_t host_window_bytes;
	char agent_version[32];
};

struct open_device {
	char name[256];
	uint8_t uuid[16];
	uint64_t total_memory;
	uint64_t window; /* first address of this process's window on the device */
	uint64_t window_bytes;
	uint64_t granularity; /* of vcudaMemMap */
	uint64_t lease;	      /* bytes that may be mapped without asking */
	uint32_t flags;
	int32_t stream_priority_least;
	int32_t stream_priority_greatest;
	uint32_t primary_flags;
	uint64_t limits[OPEN_LIMITS]; /* cuCtxGetLimit; ~0 = not known */
	char pci_bus_id[16];
	uint8_t attribute_known[OPEN_ATTRIBUTES / 8]; /* bit a: attributes[a] is valid */
	int32_t attributes[OPEN_ATTRIBUTES];
};

#define OPEN_PEER_ATTRIBUTES 8
#define OPEN_PEER_ATOMICS 16

/* What a device can do with another one's memory: row by row, the device and then the other. */
struct open_peer {
	uint8_t can; /* cuDeviceCanAccessPeer */
	uint8_t attribute_known;
	uint8_t atomics_known;
	uint8_t reserved;
	int32_t attributes[OPEN_PEER_ATTRIBUTES]; /* CUdevice_P2PAttribute */
	uint8_t atomics[OPEN_PEER_ATOMICS];	  /* CUatomicOperation: its capabilities */
};

/* vcudaModuleLoad's kind */
enum image_kind {
	IMAGE_PTX = 1,
	IMAGE_CUBIN = 2,
	IMAGE_FATBIN = 3, /* one entry or more in NVIDIA's container, compressed or not */
};

/* vcudaModuleLoad's jit: one of the modules of that library, a number of the program's, with
 * those of other contexts: they have one set of managed variables. An agent that is older does
 * not look at it. */
#define IMAGE_OPTION_LIBRARY 0x7fff0001u

/* vcudaModuleLoad's and vcudaLinkCreate's jit: CUjit_option and its value, scalars only.  A
 * variable of the program's (OPEN_FEATURE_SYMBOLS, OPEN_FEATURE_LINKED) is some of
 * CU_JIT_GLOBAL_SYMBOL_NAMES, with eight bytes of its name each, and
 * CU_JIT_GLOBAL_SYMBOL_ADDRESSES with its address behind them. */
struct image_option {
	uint32_t option;
	uint32_t reserved;
	uint64_t value;
};
#define IMAGE_OPTIONS_MAX 2048 /* of a module; half a frame's body */

/* vcudaModuleLoad: the module came from cuLibraryLoadData (kernels are context-free) */

#define FUNCTION_ATTRIBUTES 32
#define FUNCTION_PARAMS_MAX                                                                    \
	200 /* fit in one reply; a kernel with more: param_count says how many */
#define FUNCTION_PARAMS_ALL 8192 /* that are counted */

struct function_info {
	uint32_t param_count;
	uint32_t param_bytes;
	uint32_t attribute_known; /* bit a: attributes[a] is valid */
	uint32_t reserved;
	int32_t attributes[FUNCTION_ATTRIBUTES]; /* CUfunction_attribute */
};

struct function_param {
	uint32_t offset;
	uint32_t size;
};

/* vcudaLaunch's flags */
enum launch_flag {
	LAUNCH_COOPERATIVE = 1,
};

/* vcudaStreamCreate's flags, beside CUDA's: its copies, and waiting for it, come to their turn
 * though a host function holds back what was posted before. Host functions of graphs need it:
 * the app's memory is filled for them, and read after them, while their stream stands still. */
#define STREAM_AHEAD (1u << 31)

/* vcudaSync and vcudaQuery */
enum sync_scope {
	SYNC_CONTEXT = 0,
	SYNC_STREAM = 1,
	SYNC_EVENT = 2,
	SYNC_NONE = 3,	 /* nothing; vcudaMirrorFetch only */
	SYNC_SHARED = 4, /* an event that processes share, whoever recorded it last */
};

#endif
