/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names (docs/TENSORS.md): memory of the GPU that a vcuda agent owns, which any
 * program of the same namespace maps by its name, wherever its pod runs.
 *
 *	struct vcuda_tensor t;
 *	int64_t shape[] = {4096, 4096};
 *
 *	if (vcuda_tensor_create("x", VCUDA_BF16, 2, shape, -1, 0, &t))
 *		errx(1, "%s", vcuda_tensor_error());
 *	cudaMemcpyAsync((void *)t.data, …, stream);
 *	vcuda_tensor_seal(&t, stream);		// from here on nobody writes it
 *	…
 *	vcuda_tensor_close(&t);
 *
 * The functions are the preloaded library's; link with libvcuda-tensor.so, which has the names.
 * They return 0 or what CUDA calls such a failure (CUresult); vcuda_tensor_error() then is a
 * sentence.  Any thread may call them; one thread's question waits for another's answer.
 *
 * A name is NAME, of the session's own namespace, or NAMESPACE/NAME, of one that shares it; 1
 * to 256 bytes, no control characters.
 */
#ifndef VCUDA_TENSOR_H
#define VCUDA_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vcuda_dtype {
	VCUDA_F64 = 1,
	VCUDA_F32,
	VCUDA_F16,
	VCUDA_BF16,
	VCUDA_F8E4M3,
	VCUDA_F8E5M2,
	VCUDA_I64,
	VCUDA_I32,
	VCUDA_I16,
	VCUDA_I8,
	VCUDA_U8,
	VCUDA_BOOL,
};

#define VCUDA_TENSOR_RANK 8

/* Without one of the first two a tensor is gone when its last holder is. */
#define VCUDA_TENSOR_KEEP 0x1u	    /* create: it stays until it is deleted */
#define VCUDA_TENSOR_EVICTABLE 0x2u /* create: it stays until memory is short */
/* create: below 1 MiB, it shares 2 MiB with its owner's other packed ones, which takes less
 * memory. Its owner alone writes it, and no other namespace has it; not with EVICTABLE. */
#define VCUDA_TENSOR_PACKED 0x4u
/* Of what comes back: another agent, or another GPU, was the first to have it. */
#define VCUDA_TENSOR_REPLICA 0x8u
#define VCUDA_TENSOR_WRITE 0x100u /* get: to be written, while it is not sealed */
#define VCUDA_TENSOR_NEW 0x200u	  /* create: one that is there already is an error */
/* get: what is on another GPU of the agent, which DEVICE reaches, is mapped from there instead
 * of copied, sealed or not. Of what comes back: it is. */
#define VCUDA_TENSOR_PEER 0x1000u
/* What comes back in flags, beside the first four. */
#define VCUDA_TENSOR_OWNED 0x10000u    /* this process may seal it */
#define VCUDA_TENSOR_WRITABLE 0x20000u /* its memory can be written, until it is sealed */
#define VCUDA_TENSOR_MADE                                                                      \
	0x40000u /* create: it was not there before; memory that its                           \
		    namespace had before is not zeroed */
#define VCUDA_TENSOR_SEALED                                                                    \
	0x80000u /* its memory can be read only: a kernel that writes it                       \
		    ends with error 700 */

struct vcuda_tensor {
	uint64_t data; /* CUdeviceptr, until it is closed */
	uint64_t bytes;
	int device; /* CUdevice */
	uint32_t dtype, rank, flags;
	int64_t shape[VCUDA_TENSOR_RANK]; /* dense, the last dimension first in memory */
	uint64_t version;		  /* rises with each touch */
	uint64_t reserved[4];		  /* the library's */
};

struct vcuda_tensor_stat {
	uint64_t bytes;
	uint32_t dtype, rank, flags, holders;
	int64_t shape[VCUDA_TENSOR_RANK];
	uint64_t version, ctime, mtime; /* ns since 1970 */
	char name[336];			/* NAMESPACE/NAME */
};

/* DEVICE: a CUdevice; -1: the current context's, or 0 where there is none. */

/* Makes it, or opens it where it is there with that shape and dtype (flags say which). The
 * memory is 256-byte aligned. 2: a limit or the GPU has no more; 802: the agent's store is away
 * for the moment. */
int vcuda_tensor_create(const char *name, uint32_t dtype, uint32_t rank, const int64_t *shape,
	int device, uint32_t flags, struct vcuda_tensor *tensor);

/* Opens COUNT of them, or none. 500: one is not there; 800: it is sealed and to be written;
 * 101: it is on another GPU (without PEER), or at another agent, and not sealed: what is sealed
 * is copied here first, once for all. */
int vcuda_tensor_get(const char *const *names, size_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors);

/* Waits for STREAM (a cudaStream_t or CUstream; NULL: for the whole context), then nobody can
 * write it any more. Its owner only: 800. */
int vcuda_tensor_seal(struct vcuda_tensor *tensor, void *stream);

/* Unmaps it, once the current context's work is done. */
int vcuda_tensor_close(struct vcuda_tensor *tensor);

/* The name goes at once, the memory when its last holder has closed it. */
int vcuda_tensor_delete(const char *name, int device);

/* Version and mtime rise. */
int vcuda_tensor_touch(const char *name, int device);

/* Once it is sealed, programs of that namespace may open it too; "*": of every one. */
int vcuda_tensor_share(const char *name, const char *space, int device);

int vcuda_tensor_stat(const char *name, int device, struct vcuda_tensor_stat *stat);

/* The next one whose name begins with PREFIX ("": any). *CURSOR: 0 at first. 500: there are no
 * more. */
int vcuda_tensor_list(
	const char *prefix, int device, uint64_t *cursor, struct vcuda_tensor_stat *stat);

/* Until it is sealed; 600 after MS milliseconds, 500: it is not there. */
int vcuda_tensor_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat);

/* Why this thread's last call failed: one sentence, valid until its next one. */
const char *vcuda_tensor_error(void);

#ifdef __cplusplus
}
#endif

#endif
