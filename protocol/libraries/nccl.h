/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL as both ends know it: the types of its ABI (no header of NVIDIA's is needed to build),
 * and the frames.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_NCCL_H
#define VCUDA_PROTOCOL_LIBRARIES_NCCL_H

#include <driver_types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "protocol/libraries/plain.h"

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef int ncclResult_t;
typedef int ncclRedOp_t;
typedef int ncclDataType_t;
typedef int ncclScalarResidence_t;
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8,
	ncclNumResults = 9,
};
enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg, ncclNumOps };
enum {
	ncclInt8,
	ncclUint8,
	ncclInt32,
	ncclUint32,
	ncclInt64,
	ncclUint64,
	ncclFloat16,
	ncclFloat32,
	ncclFloat64,
	ncclBfloat16,
	ncclFloat8e4m3,
	ncclFloat8e5m2,
	ncclNumTypes
};
enum { ncclScalarDevice, ncclScalarHostImmediate };

typedef int ncclCommMemStat_t;
typedef struct ncclParamHandle *ncclParamHandle_t;

#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_SIM_MAGIC 0x74685283 /* of a ncclSimInfo_t */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0
#define NCCL_SHRINK_ABORT 1
#define NCCL_REVOKE_DEFAULT 0

/* As of 2.31; an older program's is shorter, as `size` says. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
	int graphUsageMode;
	int numRmaCtx;
	int maxP2pPeers;
	int graphStreamOrdering;
	int launchOrderImplicit;
	int numRmaSig;
	int rmaEagerInit;
	int hostCftMode;
	int nvlsHostMode;
} ncclConfig_t;

typedef struct ncclConfigExt ncclConfigExt_t;
/* As of 2.32. */
typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	ncclConfigExt_t *ext;
	int minCTAs;
	int maxCTAs;
	int nvlsCTAs;
	int cgaClusterSize;
	const char *algSelection;
	int forceAlgSelection;
	int CTAPolicy;
	uint64_t userProfilerTag;
	cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

typedef struct {
	int opCnt;
	int peer;
	int sigIdx;
	int ctx;
} ncclWaitSignalDesc_t;

typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;
} ncclSimInfo_t;

static inline uint32_t nccl_type_bytes(int type)
{
	static const uint8_t bytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return (unsigned)type < ncclNumTypes ? bytes[type] : 0;
}

/* Ranks of one communicator; more are refused by both ends. */
#define NCCL_RANKS 65536
/* Communicators that one group makes, operations of one group. */
#define NCCL_MAKINGS 64u
#define NCCL_OPERATIONS 65536u
/* Ids of ncclCommInitRankScalable; ranks that ncclCommShrink leaves out. */
#define NCCL_IDS 256u
#define NCCL_EXCLUDED 4096u
/* Reductions of a program's own, of one communicator. */
#define NCCL_REDUCTIONS 1024
#define NCCL_NAME 64 /* bytes of a configuration's texts, their NUL included */
#define NCCL_TEXT 512

struct wire_ncclGetVersion {
	uint32_t major;
	uint32_t reserved;
};
struct wire_ncclGetVersion_reply {
	struct library_reply plain;
	int32_t version;
	uint32_t reserved;
};

struct wire_ncclGetUniqueId {
	uint32_t major;
	uint32_t reserved;
};
struct wire_ncclGetUniqueId_reply {
	struct library_reply plain;
	ncclUniqueId id;
};

/* By which ranks join the communicator. */
struct wire_ncclCommGetUniqueId {
	uint64_t comm;
	uint32_t major;
	uint32_t reserved;
};
struct wire_ncclCommGetUniqueId_reply {
	struct library_reply plain;
	ncclUniqueId id;
};

/* How a communicator is made. */
enum nccl_form {
	NCCL_FORM_RANK,	  /* nranks, rank; behind the struct `count` ids */
	NCCL_FORM_SPLIT,  /* of `parent`: rank is the key, nranks the color */
	NCCL_FORM_SHRINK, /* of `parent`: nranks are the flags; behind the struct `count` ranks,
			   * int32_t each, that are left out */
	NCCL_FORM_GROW,	  /* of `parent`, where rank is -1, or 0: a rank that joins; nranks, and
			   * behind the struct the id of who joins or called for it: `count` */
	NCCL_FORM_LAST
};

/* With one more of the same group behind it, it is posted. */
struct wire_ncclCommInitRank {
	uint32_t major;
	uint32_t form; /* enum nccl_form */
	uint64_t comm; /* minted by the shim */
	uint64_t parent;
	int32_t nranks, rank;
	uint32_t group; /* its number, where it has several; else 0 */
	uint32_t reserved0;
	uint32_t count;
	uint8_t more;	    /* another one of the group follows */
	uint8_t configured; /* config holds; its texts are below, empty for NULL */
	uint16_t reserved;
	ncclConfig_t config;
	char net_name[NCCL_NAME], comm_name[NCCL_NAME];
};
/* Of each of the group, in order. */
struct nccl_made {
	int32_t nranks, rank; /* -1: it is in no communicator */
};
struct wire_ncclCommInitRank_reply {
	struct library_reply plain;
	struct nccl_made made[NCCL_MAKINGS];
};

enum nccl_end {
	NCCL_END_FINALIZE,
	NCCL_END_DESTROY,
	NCCL_END_ABORT,
	NCCL_END_REVOKE,
	NCCL_END_LAST
};
struct wire_ncclCommDestroy {
	uint64_t comm;
	uint32_t major;
	uint32_t end; /* enum nccl_end */
};
struct wire_ncclCommDestroy_reply {
	struct library_reply plain;
};

struct wire_ncclGetLastError {
	uint32_t major;
	uint32_t reserved;
};
struct wire_ncclGetLastError_reply {
	struct library_reply plain;
	char text[NCCL_TEXT];
};

struct wire_ncclCommGetAsyncError {
	uint64_t comm;
	uint32_t major;
	uint32_t reserved;
};
struct wire_ncclCommGetAsyncError_reply {
	struct library_reply plain;
	int32_t error;
	int32_t nranks, rank; /* as of a communicator that is made */
	uint32_t reserved;
};

struct wire_ncclCommRegister {
	uint64_t comm;
	uint32_t major;
	uint32_t number; /* the shim's, of the registration; not 0 */
	uint64_t address, bytes;
};
struct wire_ncclCommRegister_reply {
	struct library_reply plain;
};
struct wire_ncclCommDeregister {
	uint64_t comm;
	uint32_t major;
	uint32_t number;
};
struct wire_ncclCommDeregister_reply {
	struct library_reply plain;
};

struct wire_ncclRedOpCreatePreMulSum {
	uint64_t comm;
	uint32_t major;
	uint32_t number; /* below NCCL_REDUCTIONS, the shim's */
	int32_t type, residence;
	uint64_t scalar; /* its address, or the bytes */
};
struct wire_ncclRedOpCreatePreMulSum_reply {
	struct library_reply plain;
};
struct wire_ncclRedOpDestroy {
	uint64_t comm;
	uint32_t major;
	uint32_t number;
};
struct wire_ncclRedOpDestroy_reply {
	struct library_reply plain;
};

enum nccl_function {
	NCCL_ALL_REDUCE,
	NCCL_BROADCAST,
	NCCL_REDUCE,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_TO_ALL,
	NCCL_GATHER,
	NCCL_SCATTER,
	NCCL_SEND,
	NCCL_RECEIVE,
	NCCL_PUT_SIGNAL,
	NCCL_ONLY_SIGNAL,
	NCCL_WAIT_SIGNAL, /* for `count` signals of one rank */
	NCCL_WINDOW, /* a window of `count` bytes at `send`; this and what follows is awaited */
	NCCL_SUSPEND, /* `op`: its flags */
	NCCL_RESUME,
	NCCL_FUNCTIONS
};
/* Whether somebody waits for each of them, however often it was done before. */
static inline bool nccl_asks(unsigned function)
{
	return function >= NCCL_WINDOW;
}

/* An operation: what it is learned by, and what may differ from one to the next. */
struct nccl_key {
	uint64_t comm;
	uint8_t function; /* enum nccl_function */
	uint8_t type;
	uint8_t magnitude; /* 1 + log2 of its bytes; 0: none */
	uint8_t context;   /* of a signal */
	/* ncclNumOps and more: a reduction of the program's own. A signal's index; a window's
	 * flags. */
	int32_t op;
	int32_t peer;	 /* or root */
	uint32_t window; /* that is put into, or made: the shim's number; not 0 */
};
struct nccl_rest {
	uint64_t send;
	/* Put: where in the window. Wait: how many of the same call follow directly. */
	uint64_t receive;
	uint64_t count, stream;
};
/* Then `count` keys, then `count` rests. Where more of the group follows it is posted. */
struct wire_ncclGroupEnd {
	uint32_t major;
	uint16_t count;
	uint16_t more;
	uint32_t group;	   /* its number, where it travels in several frames; else 0 */
	uint32_t simulate; /* it is not done, but foretold; it is awaited */
};
/* What posts is told less: the first member. */
struct wire_ncclGroupEnd_reply {
	struct library_reply plain;
	uint64_t windows; /* bit i: the group's window i was made */
	float estimate;	  /* of one that is foretold */
	uint32_t reserved;
};
/* Of one group. */
#define NCCL_WINDOWS 64u

struct wire_ncclCommMemStats {
	uint64_t comm;
	uint32_t major;
	int32_t stat;
};
struct wire_ncclCommMemStats_reply {
	struct library_reply plain;
	uint64_t value;
};

/* A parameter of the agent's NCCL: what it is, and its value. */
enum nccl_param {
	NCCL_PARAM_OTHER, /* only as bytes and as a text */
	NCCL_PARAM_I8,
	NCCL_PARAM_I16,
	NCCL_PARAM_I32,
	NCCL_PARAM_I64,
	NCCL_PARAM_U8,
	NCCL_PARAM_U16,
	NCCL_PARAM_U32,
	NCCL_PARAM_U64,
	NCCL_PARAM_TEXT
};
#define NCCL_KEY 64 /* bytes of a key, its NUL included */
struct wire_ncclParamBind {
	uint32_t major;
	uint32_t reserved;
	char key[NCCL_KEY];
};
struct wire_ncclParamBind_reply {
	struct library_reply plain;
	uint32_t type;	/* enum nccl_param */
	uint32_t bytes; /* of `value` */
	unsigned char value[NCCL_TEXT];
	char text[NCCL_TEXT];
};

/* Keys from that one on, as many as fit, each with its NUL. */
struct wire_ncclParamGetAllParameterKeys {
	uint32_t major;
	uint32_t from;
};
#define NCCL_KEYS_BYTES 1536
struct wire_ncclParamGetAllParameterKeys_reply {
	struct library_reply plain;
	uint32_t count; /* of all */
	uint32_t here;
	char keys[NCCL_KEYS_BYTES];
};

struct wire_ncclCommWindowDeregister {
	uint64_t comm;
	uint32_t major;
	uint32_t number;
};
struct wire_ncclCommWindowDeregister_reply {
	struct library_reply plain;
};

/* Operations in one frame. */
#define NCCL_FRAME_OPERATIONS                                                                  \
	((FRAME_BODY_MAX - sizeof(struct wire_ncclGroupEnd)) /                                 \
		(sizeof(struct nccl_key) + sizeof(struct nccl_rest)))

#endif
