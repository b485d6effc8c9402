/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's activity records as they lie in a buffer: the newest form of each kind as of
 * CUDA 13.0, under NVIDIA's names, with the numbers of kinds and results.  A newer form appends
 * to an older one, so a program of an older CUDA reads the beginning of ours.
 *
 * Times are nanoseconds of CLOCK_REALTIME; 0 is unknown.  A record's `name` belongs to who made
 * the record and lives as long as the process.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUPTI_RECORDS_H
#define VCUDA_PROTOCOL_LIBRARIES_CUPTI_RECORDS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cupti.h"

enum {
	CUPTI_SUCCESS = 0,
	CUPTI_ERROR_INVALID_PARAMETER = 1,
	CUPTI_ERROR_INVALID_DEVICE = 2,
	CUPTI_ERROR_INVALID_CONTEXT = 3,
	CUPTI_ERROR_OUT_OF_MEMORY = 8,
	CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT = 10,
	CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
	CUPTI_ERROR_NOT_READY = 13,
	CUPTI_ERROR_NOT_COMPATIBLE = 14,
	CUPTI_ERROR_NOT_INITIALIZED = 15,
	CUPTI_ERROR_QUEUE_EMPTY = 18,
	CUPTI_ERROR_INVALID_HANDLE = 19,
	CUPTI_ERROR_INVALID_STREAM = 20,
	CUPTI_ERROR_INVALID_KIND = 21,
	CUPTI_ERROR_NOT_SUPPORTED = 27,
	CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED = 38,
	CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
	CUPTI_ERROR_UNKNOWN = 999,
};

enum {
	CUPTI_ACTIVITY_KIND_INVALID = 0,
	CUPTI_ACTIVITY_KIND_MEMCPY = 1,
	CUPTI_ACTIVITY_KIND_MEMSET = 2,
	CUPTI_ACTIVITY_KIND_KERNEL = 3, /* one at a time */
	CUPTI_ACTIVITY_KIND_DRIVER = 4,
	CUPTI_ACTIVITY_KIND_RUNTIME = 5,
	CUPTI_ACTIVITY_KIND_DEVICE = 8,
	CUPTI_ACTIVITY_KIND_CONTEXT = 9,
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_ACTIVITY_KIND_NAME = 11,
	CUPTI_ACTIVITY_KIND_OVERHEAD = 17,
	CUPTI_ACTIVITY_KIND_MEMCPY2 = 22, /* between two devices */
	CUPTI_ACTIVITY_KIND_MODULE = 27,
	CUPTI_ACTIVITY_KIND_CUDA_EVENT = 36,
	CUPTI_ACTIVITY_KIND_STREAM = 37,
	CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
	CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
	CUPTI_ACTIVITY_KIND_MEMORY = 45,
	CUPTI_ACTIVITY_KIND_MEMORY2 = 49,
	CUPTI_ACTIVITY_KIND_MEMORY_POOL = 50,
	CUPTI_ACTIVITY_KIND_GRAPH_TRACE = 51,
	CUPTI_ACTIVITY_KIND_COUNT = 56, /* 13.0 */
};

enum {
	CUPTI_EXTERNAL_CORRELATION_KIND_INVALID = 0,
	CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN = 1,
	CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC = 2,
	CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3,
	CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1 = 4,
	CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 = 5,
	CUPTI_EXTERNAL_CORRELATION_KIND_SIZE = 6,
};

enum { /* CUpti_ActivityMemcpyKind */
	CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN = 0,
	CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
	CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
	CUPTI_ACTIVITY_MEMCPY_KIND_HTOA = 3,
	CUPTI_ACTIVITY_MEMCPY_KIND_ATOH = 4,
	CUPTI_ACTIVITY_MEMCPY_KIND_ATOA = 5,
	CUPTI_ACTIVITY_MEMCPY_KIND_ATOD = 6,
	CUPTI_ACTIVITY_MEMCPY_KIND_DTOA = 7,
	CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
	CUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
	CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10,
};

enum { /* CUpti_ActivityMemoryKind */
	CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN = 0,
	CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
	CUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
	CUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
	CUPTI_ACTIVITY_MEMORY_KIND_ARRAY = 4,
	CUPTI_ACTIVITY_MEMORY_KIND_MANAGED = 5,
	CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC = 6,
	CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC = 7,
};

enum { /* CUpti_ActivityFlag: of a record, or of cuptiActivityFlushAll */
	CUPTI_ACTIVITY_FLAG_NONE = 0,
	CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS = 1,
	CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1,
	CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC = 1,
	CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC = 1,
};

enum { /* CUpti_ActivityLaunchType */
	CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR = 0,
	CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE = 1,
	CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE = 2,
};

enum { /* CUpti_ChannelType */
	CUPTI_CHANNEL_TYPE_INVALID = 0,
	CUPTI_CHANNEL_TYPE_COMPUTE = 1,
	CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY = 2,
};

enum { /* CUpti_ActivitySynchronizationType */
	CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE = 1,
	CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT = 2,
	CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE = 3,
	CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE = 4,
};

enum { /* CUpti_ActivityStreamFlag */
	CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT = 1,
	CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING = 2,
	CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL = 3,
};

enum { /* CUpti_ActivityComputeApiKind */
	CUPTI_ACTIVITY_COMPUTE_API_CUDA = 1,
};

enum { /* CUpti_ActivityObjectKind */
	CUPTI_ACTIVITY_OBJECT_UNKNOWN = 0,
	CUPTI_ACTIVITY_OBJECT_PROCESS = 1,
	CUPTI_ACTIVITY_OBJECT_THREAD = 2,
	CUPTI_ACTIVITY_OBJECT_DEVICE = 3,
	CUPTI_ACTIVITY_OBJECT_CONTEXT = 4,
	CUPTI_ACTIVITY_OBJECT_STREAM = 5,
};

enum { /* CUpti_ActivityOverheadKind */
	CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER = 1,
	CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH = 1 << 16,
	CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION = 2 << 16,
	CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE = 3 << 16,
	CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING = 4 << 16,
	CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING = 5 << 16,
	CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL = 6 << 16,
	CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST = 7 << 16,
};

enum { /* CUpti_ActivityMemoryOperationType */
	CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_INVALID = 0,
	CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION = 1,
	CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE = 2,
};

enum { /* CUpti_ActivityMemoryPoolType */
	CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID = 0,
	CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL = 1,
	CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED = 2,
};

enum { /* CUpti_ActivityAttribute */
	CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE = 0,
	CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP = 1,
	CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT = 2,
	CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE = 3,
	CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT = 4,
	CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER = 5,
	CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE = 6,
	CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE = 7,
	CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED = 8,
	CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9,
	CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS = 10,
};

#define CUPTI_INVALID_CONTEXT_ID 0xffffffffu
#define CUPTI_INVALID_STREAM_ID 0xffffffffu
#define CUPTI_INVALID_CHANNEL_ID 0xffffffffu
#define CUPTI_SYNCHRONIZATION_INVALID_VALUE 0xffffffffu

/* A buffer is aligned to 8 bytes, and so is each record in it. */
#define CUPTI_RECORD __attribute__((__packed__, __aligned__(8)))

/* KERNEL and CONCURRENT_KERNEL. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	union {
		uint8_t both;
		struct {
			uint8_t requested : 4;
			uint8_t executed : 4;
		} config;
	} cacheConfig;
	uint8_t sharedMemoryConfig;
	uint16_t registersPerThread;
	int32_t partitionedGlobalCacheRequested;
	int32_t partitionedGlobalCacheExecuted;
	uint64_t start, end;
	uint64_t completed; /* with the kernels that it launched; 0 for KERNEL */
	uint32_t deviceId, contextId, streamId;
	int32_t gridX, gridY, gridZ;
	int32_t blockX, blockY, blockZ;
	int32_t staticSharedMemory, dynamicSharedMemory; /* bytes */
	uint32_t localMemoryPerThread, localMemoryTotal;
	uint32_t correlationId; /* of the API call */
	int64_t gridId;
	const char *name; /* mangled */
	void *reserved0;
	uint64_t queued, submitted;
	uint8_t launchType;
	uint8_t isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested;
	uint8_t padding;
	uint32_t sharedMemoryExecuted;
	uint64_t graphNodeId;	  /* graph << 32 | index of the node */
	int32_t shmemLimitConfig; /* CUpti_FuncShmemLimitConfig */
	uint32_t graphId;	  /* of the graph that was instantiated; 0: none */
	CUaccessPolicyWindow *pAccessPolicyWindow;
	uint32_t channelID;
	int32_t channelType;
	uint32_t clusterX, clusterY, clusterZ;
	uint32_t clusterSchedulingPolicy;
	uint64_t localMemoryTotal_v2;
	uint32_t maxPotentialClusterSize, maxActiveClusters;
	uint8_t isDeviceLaunched;
	uint8_t padding3[7];
} CUpti_ActivityKernel10;

/* MEMCPY. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint8_t copyKind, srcKind, dstKind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t deviceId, contextId, streamId;
	uint32_t correlationId, runtimeCorrelationId;
	uint32_t pad;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId;
	uint32_t channelID;
	int32_t channelType;
	uint8_t isDeviceLaunched;
	uint8_t pad2[3];
	uint64_t copyCount;
} CUpti_ActivityMemcpy6;

/* MEMCPY2. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint8_t copyKind, srcKind, dstKind;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t deviceId, contextId, streamId;
	uint32_t srcDeviceId, srcContextId;
	uint32_t dstDeviceId, dstContextId;
	uint32_t correlationId;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId;
	uint32_t channelID;
	int32_t channelType;
} CUpti_ActivityMemcpyPtoP4;

/* MEMSET. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start, end;
	uint32_t deviceId, contextId, streamId;
	uint32_t correlationId;
	uint16_t flags;
	uint16_t memoryKind;
	uint32_t pad;
	void *reserved0;
	uint64_t graphNodeId;
	uint32_t graphId;
	uint32_t channelID;
	int32_t channelType;
	uint8_t isDeviceLaunched;
	uint8_t pad2[3];
} CUpti_ActivityMemset4;

/* GRAPH_TRACE: all of a graph's launch. */
typedef struct {
	CUpti_ActivityKind kind;
	uint32_t correlationId;
	uint64_t start, end;
	uint32_t deviceId, graphId, contextId, streamId;
	void *reserved;
	uint32_t endDeviceId, endContextId;
} CUpti_ActivityGraphTrace2;

/* EXTERNAL_CORRELATION. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	CUpti_ExternalCorrelationKind externalKind;
	uint64_t externalId;
	uint32_t correlationId;
	uint32_t reserved;
} CUpti_ActivityExternalCorrelation;

/* DRIVER and RUNTIME. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	CUpti_CallbackId cbid;
	uint64_t start, end;
	uint32_t processId, threadId;
	uint32_t correlationId;
	uint32_t returnValue;
} CUpti_ActivityAPI;

/* SYNCHRONIZATION. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	int32_t type; /* CUpti_ActivitySynchronizationType */
	uint64_t start, end;
	uint32_t correlationId;
	uint32_t contextId, streamId;
	uint32_t cudaEventId;
	uint64_t cudaEventSyncId;
	uint32_t returnValue;
	uint32_t pad;
} CUpti_ActivitySynchronization2;

/* CUDA_EVENT. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint32_t correlationId;
	uint32_t contextId, streamId;
	uint32_t eventId;
	uint32_t pad;
	uint32_t deviceId;
	uint32_t pad2;
	void *reserved0;
	uint64_t deviceTimestamp;
	uint64_t cudaEventSyncId;
} CUpti_ActivityCudaEvent2;

/* DEVICE. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	int32_t flags;
	uint64_t globalMemoryBandwidth; /* kbyte/s */
	uint64_t globalMemorySize;
	uint32_t constantMemorySize;
	uint32_t l2CacheSize;
	uint32_t numThreadsPerWarp;
	uint32_t coreClockRate; /* kHz */
	uint32_t numMemcpyEngines;
	uint32_t numMultiprocessors;
	uint32_t maxIPC;
	uint32_t maxWarpsPerMultiprocessor, maxBlocksPerMultiprocessor;
	uint32_t maxSharedMemoryPerMultiprocessor, maxRegistersPerMultiprocessor;
	uint32_t maxRegistersPerBlock, maxSharedMemoryPerBlock, maxThreadsPerBlock;
	uint32_t maxBlockDimX, maxBlockDimY, maxBlockDimZ;
	uint32_t maxGridDimX, maxGridDimY, maxGridDimZ;
	uint32_t computeCapabilityMajor, computeCapabilityMinor;
	uint32_t id;
	uint32_t eccEnabled;
	CUuuid uuid;
	const char *name;
	uint8_t isCudaVisible, isMigEnabled;
	uint8_t reserved[6];
	uint32_t gpuInstanceId, computeInstanceId;
	CUuuid migUuid;
	uint32_t isNumaNode, numaId;
} CUpti_ActivityDevice5;

/* CONTEXT. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint32_t contextId, deviceId;
	uint16_t computeApiKind;
	uint16_t nullStreamId;
	uint32_t parentContextId;
	uint8_t isGreenContext;
	uint8_t padding;
	uint16_t numMultiprocessors;
	int32_t cigMode; /* CUpti_ContextCigMode */
	uint32_t padding2;
} CUpti_ActivityContext3;

/* STREAM. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint32_t contextId, streamId;
	uint32_t priority;
	int32_t flag; /* CUpti_ActivityStreamFlag */
	uint32_t correlationId;
} CUpti_ActivityStream;

typedef union {
	struct {
		uint32_t processId, threadId;
	} pt;
	struct {
		uint32_t deviceId, contextId, streamId;
	} dcs;
} CUpti_ActivityObjectKindId;

/* OVERHEAD. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	int32_t overheadKind, objectKind;
	CUpti_ActivityObjectKindId objectId;
	uint64_t start, end;
	uint32_t correlationId;
	uint32_t reserved0;
	void *overheadData;
} CUpti_ActivityOverhead3;

/* MEMORY2. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	int32_t memoryOperationType, memoryKind;
	uint32_t correlationId;
	uint64_t address, bytes;
	uint64_t timestamp;
	uint64_t PC;
	uint32_t processId;
	uint32_t deviceId, contextId, streamId;
	const char *name;
	uint32_t isAsync;
	uint32_t pad1;
	struct CUPTI_RECORD {
		int32_t memoryPoolType;
		uint32_t pad2;
		uint64_t address;
		uint64_t releaseThreshold;
		union {
			uint64_t size;
			uint64_t processId;
		} pool;
		uint64_t utilizedSize;
	} memoryPoolConfig;
	const char *source;
} CUpti_ActivityMemory4;

/* NAME. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	int32_t objectKind;
	CUpti_ActivityObjectKindId objectId;
	uint32_t pad;
	const char *name;
} CUpti_ActivityName;

/* MODULE. */
typedef struct CUPTI_RECORD {
	CUpti_ActivityKind kind;
	uint32_t contextId;
	uint32_t id;
	uint32_t cubinSize;
	const void *cubin;
} CUpti_ActivityModule;

_Static_assert(sizeof(CUpti_ActivityKernel10) == 216, "");
_Static_assert(offsetof(CUpti_ActivityKernel10, partitionedGlobalCacheRequested) == 8, "");
_Static_assert(offsetof(CUpti_ActivityKernel10, start) == 16, "");
_Static_assert(offsetof(CUpti_ActivityKernel10, gridId) == 96, "");
_Static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == 144, "");
_Static_assert(offsetof(CUpti_ActivityKernel10, clusterX) == 176, "");
_Static_assert(sizeof(CUpti_ActivityMemcpy6) == 96, "");
_Static_assert(offsetof(CUpti_ActivityMemcpy6, graphNodeId) == 64, "");
_Static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == 96, "");
_Static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, correlationId) == 60, "");
_Static_assert(sizeof(CUpti_ActivityMemset4) == 88, "");
_Static_assert(offsetof(CUpti_ActivityMemset4, graphNodeId) == 64, "");
_Static_assert(sizeof(CUpti_ActivityGraphTrace2) == 56, "");
_Static_assert(sizeof(CUpti_ActivityExternalCorrelation) == 24, "");
_Static_assert(sizeof(CUpti_ActivityAPI) == 40, "");
_Static_assert(sizeof(CUpti_ActivitySynchronization2) == 56, "");
_Static_assert(sizeof(CUpti_ActivityCudaEvent2) == 56, "");
_Static_assert(sizeof(CUpti_ActivityDevice5) == 184, "");
_Static_assert(offsetof(CUpti_ActivityDevice5, name) == 136, "");
_Static_assert(sizeof(CUpti_ActivityContext3) == 32, "");
_Static_assert(sizeof(CUpti_ActivityStream) == 24, "");
_Static_assert(sizeof(CUpti_ActivityOverhead3) == 56, "");
_Static_assert(offsetof(CUpti_ActivityOverhead3, start) == 24, "");
_Static_assert(sizeof(CUpti_ActivityMemory4) == 128, "");
_Static_assert(offsetof(CUpti_ActivityMemory4, memoryPoolConfig) == 80, "");
_Static_assert(sizeof(CUpti_ActivityName) == 32, "");
_Static_assert(sizeof(CUpti_ActivityModule) == 24, "");

#endif
