/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names (docs/TENSORS.md): what travels of them between program and worker, and
 * between the agent's processes.
 */
#ifndef VCUDA_PROTOCOL_WIRE_TENSOR_H
#define VCUDA_PROTOCOL_WIRE_TENSOR_H

#include <stdint.h>

#define TENSOR_NAME_MAX 256 /* bytes of NAMESPACE/NAME, or of NAME alone */
#define TENSOR_NAME 264	    /* room for it, with its NUL */
#define TENSOR_RANK 8
#define TENSOR_BYTES_MAX (1ull << 50)
#define TENSOR_BATCH 12 /* tensors of one vcudaTensorTake: its answer fits a slot */
/* Tensors that a worker keeps for a program which has not mapped them yet. */
#define TENSOR_WAITING 512
#define TENSOR_TEXT 160

/* As include/vcuda/tensor.h numbers them; never given to another type. */
enum tensor_dtype {
	TENSOR_F64 = 1,
	TENSOR_F32,
	TENSOR_F16,
	TENSOR_BF16,
	TENSOR_F8E4M3,
	TENSOR_F8E5M2,
	TENSOR_I64,
	TENSOR_I32,
	TENSOR_I16,
	TENSOR_I8,
	TENSOR_U8,
	TENSOR_BOOL,
	TENSOR_DTYPES
};

/* The name that people and Redis use; "" for a number that is none. */
static inline const char *tensor_dtype_name(uint32_t dtype)
{
	static const char *const names[TENSOR_DTYPES] = {"", "f64", "f32", "f16", "bf16",
		"f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"};

	return dtype < TENSOR_DTYPES ? names[dtype] : "";
}

/* Bytes of an element; 0 for a number that is no type. */
static inline uint32_t tensor_dtype_bytes(uint32_t dtype)
{
	static const uint8_t bytes[TENSOR_DTYPES] = {0, 8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1};

	return dtype < TENSOR_DTYPES ? bytes[dtype] : 0;
}

/* Bytes of that shape; 0 where a number is negative, there are too many, or the product is
 * nothing or more than any GPU has. Rank 0 is one element. */
static inline uint64_t tensor_shape_bytes(uint32_t dtype, uint32_t rank, const int64_t *shape)
{
	uint64_t bytes = tensor_dtype_bytes(dtype);

	if (rank > TENSOR_RANK)
		return 0;
	for (uint32_t i = 0; i < rank; i++)
		if (shape[i] <= 0 || __builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes))
			return 0;
	return bytes <= TENSOR_BYTES_MAX ? bytes : 0;
}

enum tensor_state {
	TENSOR_FREE = 0,
	TENSOR_CREATED = 1, /* its owner writes */
	TENSOR_SEALED = 2,  /* nobody writes */
	TENSOR_GONE = 3,    /* without a name, until the last holder has unmapped it */
	TENSOR_POOLED = 4,  /* memory that the next tensor of that namespace gets */
	TENSOR_COPYING = 5, /* what another agent has is on its way there */
};

/* tensor_about.flags, and what a wish says of a tensor that it makes. */
#define TENSOR_KEEP (1u << 0)	   /* it stays without holders, until it is deleted */
#define TENSOR_EVICTABLE (1u << 1) /* the same, until memory is short */
#define TENSOR_PACKED (1u << 2)	   /* small, it shares a piece with others of its owner */
/* Of an answer only: another agent was the first to have it. */
#define TENSOR_REPLICA (1u << 3)
#define TENSOR_LOCAL (1u << 4) /* a replica of what is on another GPU of the same agent */
/* Of a wish only. */
#define TENSOR_WRITE (1u << 8) /* to be written, while it is not sealed */
#define TENSOR_NEW (1u << 9)   /* one that is there already is an error */
#define TENSOR_MAKE (1u << 10) /* create; else get */
#define TENSOR_BY_HANDLE                                                                       \
	(1u << 11) /* get what the name says as a handle, in hexadecimal; it is written if the \
		      session may */
/* One on another GPU of the agent is mapped from there where the session's GPU reaches that.
 * Of an answer: it is. */
#define TENSOR_PEER (1u << 12)
/* Of an answer only. */
#define TENSOR_OWNED (1u << 16)	   /* the asking session may seal it */
#define TENSOR_WRITABLE (1u << 17) /* what is mapped of it may be written */
#define TENSOR_MADE (1u << 18)	   /* it was not there before */

/* What Redis has as ipc_handle, and programs pass to cudaIpcOpenMemHandle. Only the store makes
 * sense of it: each byte has to be as it writes it. */
#define TENSOR_HANDLE_MAGIC "vcudaTNS"
struct tensor_handle {
	char magic[8];
	uint8_t id[16];	   /* of the tensor, at random */
	uint8_t gpu[16];   /* its UUID */
	uint64_t bytes;	   /* the tensor's */
	uint64_t ctime;	   /* what had the id before has another one */
	uint64_t reserved; /* 0 */
};
#define TENSOR_HANDLE_DIGITS (2 * sizeof(struct tensor_handle))

struct tensor_about {
	uint32_t dtype, rank;
	uint32_t state; /* enum tensor_state */
	uint32_t flags;
	int64_t shape[TENSOR_RANK];
	uint64_t bytes;
	uint64_t room;	 /* of the memory that it lies in, … */
	uint64_t offset; /* … and where in there */
	uint64_t version;
	uint64_t ctime, mtime; /* ns since 1970 */
	uint32_t holders;      /* sessions */
	uint32_t reserved;
};

/* vcudaTensorTake: */
struct tensor_wish {
	uint64_t memory; /* the handle that it becomes */
	uint32_t flags;
	uint32_t dtype, rank; /* with TENSOR_MAKE, as shape */
	uint32_t reserved;
	int64_t shape[TENSOR_RANK];
	char name[TENSOR_NAME];
};

struct tensor_told {
	uint32_t status; /* CUresult */
	uint32_t reserved;
	struct tensor_about about;
};

/* vcudaTensorLook: */
struct tensor_entry {
	uint64_t cursor; /* for what comes after it */
	struct tensor_about about;
	char name[2 * TENSOR_NAME]; /* NAMESPACE/NAME */
};

/* vcudaTensorDo's `what`. */
enum tensor_do {
	TENSOR_DO_SEAL = 1,
	TENSOR_DO_DELETE = 2,
	TENSOR_DO_TOUCH = 3, /* version and mtime rise */
	TENSOR_DO_SHARE = 4, /* argument: another namespace that may have it once sealed */
};

#endif
