/* SPDX-License-Identifier: Apache-2.0
 *
 * The per-thread forms (_ptsz, _ptds): the same calls, with NULL meaning the calling thread's
 * own stream.
 */
#include "softgpu/driver/copy_calls.h"
#include "softgpu/driver/softgpu.h"

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return cuEventRecordWithFlags(hEvent, stream_ptsz(hStream), flags);
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
	return cuEventRecord(hEvent, stream_ptsz(hStream));
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX,
	unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
	unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams)
{
	return cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
		blockDimZ, sharedMemBytes, stream_ptsz(hStream), kernelParams);
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData)
{
	return cuLaunchHostFunc(stream_ptsz(hStream), fn, userData);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
		sharedMemBytes, stream_ptsz(hStream), kernelParams, extra);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return cuMemAllocAsync(dptr, bytesize, stream_ptsz(hStream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return cuMemAllocFromPoolAsync(dptr, bytesize, pool, stream_ptsz(hStream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	return cuMemFreeAsync(dptr, stream_ptsz(hStream));
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return cuMemcpy2DAsync_v2(pCopy, stream_ptsz(hStream));
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return cuMemcpy3DAsync_v2(pCopy, stream_ptsz(hStream));
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return cuMemcpy3DPeerAsync(pCopy, stream_ptsz(hStream));
}

CUresult cuMemcpyAsync_ptsz(
	CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return cuMemcpyAsync(dst, src, ByteCount, stream_ptsz(hStream));
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	size_t *failIdx, CUstream hStream)
{
	return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
		stream_ptsz(hStream));
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	CUstream hStream)
{
	return cuMemcpyBatchAsync_v2(
		dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, stream_ptsz(hStream));
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, stream_ptsz(hStream));
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, stream_ptsz(hStream));
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, stream_ptsz(hStream));
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	return cuMemcpyPeerAsync(
		dstDevice, dstContext, srcDevice, srcContext, ByteCount, stream_ptsz(hStream));
}

CUresult cuMemsetD16Async_ptsz(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return cuMemsetD16Async(dstDevice, us, N, stream_ptsz(hStream));
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream hStream)
{
	return cuMemsetD2D16Async(dstDevice, dstPitch, us, Width, Height, stream_ptsz(hStream));
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	return cuMemsetD2D32Async(dstDevice, dstPitch, ui, Width, Height, stream_ptsz(hStream));
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	return cuMemsetD2D8Async(dstDevice, dstPitch, uc, Width, Height, stream_ptsz(hStream));
}

CUresult cuMemsetD32Async_ptsz(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return cuMemsetD32Async(dstDevice, ui, N, stream_ptsz(hStream));
}

CUresult cuMemsetD8Async_ptsz(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return cuMemsetD8Async(dstDevice, uc, N, stream_ptsz(hStream));
}

CUresult cuStreamAddCallback_ptsz(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	return cuStreamAddCallback(stream_ptsz(hStream), callback, userData, flags);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp(stream_ptsz(stream), count, paramArray, flags);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream_ptsz(stream), count, paramArray, flags);
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
	return cuStreamCopyAttributes(stream_ptsz(dst), stream_ptsz(src));
}

CUresult cuStreamGetAttribute_ptsz(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
	return cuStreamGetAttribute(stream_ptsz(hStream), attr, value_out);
}

CUresult cuStreamGetCaptureInfo_ptsz(
	CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo(stream_ptsz(hStream), captureStatus_out, id_out);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v2(stream_ptsz(hStream), captureStatus_out, id_out,
		graph_out, dependencies_out, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
	size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(stream_ptsz(hStream), captureStatus_out, id_out,
		graph_out, dependencies_out, edgeData_out, numDependencies_out);
}

CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext *pctx)
{
	return cuStreamGetCtx(stream_ptsz(hStream), pctx);
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	return cuStreamGetCtx_v2(stream_ptsz(hStream), pCtx, pGreenCtx);
}

CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice *device)
{
	return cuStreamGetDevice(stream_ptsz(hStream), device);
}

CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int *flags)
{
	return cuStreamGetFlags(stream_ptsz(hStream), flags);
}

CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long *streamId)
{
	return cuStreamGetId(stream_ptsz(hStream), streamId);
}

CUresult cuStreamGetPriority_ptsz(CUstream hStream, int *priority)
{
	return cuStreamGetPriority(stream_ptsz(hStream), priority);
}

CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return cuStreamIsCapturing(stream_ptsz(hStream), captureStatus);
}

CUresult cuStreamQuery_ptsz(CUstream hStream)
{
	return cuStreamQuery(stream_ptsz(hStream));
}

CUresult cuStreamSetAttribute_ptsz(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	return cuStreamSetAttribute(stream_ptsz(hStream), attr, value);
}

CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
	return cuStreamSynchronize(stream_ptsz(hStream));
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	return cuStreamWaitEvent(stream_ptsz(hStream), hEvent, Flags);
}

CUresult cuStreamWaitValue32_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWaitValue32_v2_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWaitValue64_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWaitValue64_v2_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWriteValue32_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWriteValue32_v2_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWriteValue64_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64(stream_ptsz(stream), addr, value, flags);
}

CUresult cuStreamWriteValue64_v2_ptsz(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream_ptsz(stream), addr, value, flags);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return soft_copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return soft_copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy_3d_peer_sync(pCopy, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy)
{
	return soft_copy_3d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_dtod(dstDevice, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_dtoh(dstHost, srcDevice, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_htod(dstDevice, srcHost, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	return copy_peer(
		dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_unified(dst, src, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return fill_submit(dstDevice, 0, us, 2, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D16_v2_ptds(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
	return fill_submit(
		dstDevice, dstPitch, us, 2, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D32_v2_ptds(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
	return fill_submit(
		dstDevice, dstPitch, ui, 4, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D8_v2_ptds(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	return fill_submit(
		dstDevice, dstPitch, uc, 1, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return fill_submit(dstDevice, 0, ui, 4, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return fill_submit(dstDevice, 0, uc, 1, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
	size_t *failIdx, unsigned long long flags, CUstream hStream)
{
	return cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, stream_ptsz(hStream));
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
	unsigned long long flags, CUstream hStream)
{
	return cuMemcpy3DBatchAsync_v2(numOps, opList, flags, stream_ptsz(hStream));
}
