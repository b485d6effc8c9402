/* SPDX-License-Identifier: Apache-2.0
 *
 * cuGetProcAddress: which of a function's versions a program of a given CUDA version gets.
 * What this library does not serve it does not export, and so it is not found.
 */
#include "softgpu/driver/softgpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Functions whose current name has a suffix, or had: from which CUDA version on which name. */
static const struct {
	const char *base;
	int since;
	const char *name;
} versions[] = {
	/* clang-format off */
	{"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
	{"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
	{"cuCtxCreate", 13000, "cuCtxCreate_v4"},
	{"cuCtxCreate", 11040, "cuCtxCreate_v3"},
	{"cuCtxCreate", 3020, "cuCtxCreate_v2"},
	{"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
	{"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
	{"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
	{"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"},
	{"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
	{"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
	{"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
	{"cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2"},
	{"cuTexRefGetAddress", 3020, "cuTexRefGetAddress_v2"},
	{"cuTexRefSetAddress", 3020, "cuTexRefSetAddress_v2"},
	{"cuTexRefSetAddress2D", 4010, "cuTexRefSetAddress2D_v3"},
	{"cuModuleGetGlobal", 3020, "cuModuleGetGlobal_v2"},
	{"cuLinkCreate", 6050, "cuLinkCreate_v2"},
	{"cuLinkAddData", 6050, "cuLinkAddData_v2"},
	{"cuLinkAddFile", 6050, "cuLinkAddFile_v2"},
	{"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
	{"cuMemAlloc", 3020, "cuMemAlloc_v2"},
	{"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2"},
	{"cuMemFree", 3020, "cuMemFree_v2"},
	{"cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2"},
	{"cuMemAllocHost", 3020, "cuMemAllocHost_v2"},
	{"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2"},
	{"cuMemHostRegister", 6050, "cuMemHostRegister_v2"},
	{"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2"},
	{"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2"},
	{"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2"},
	{"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
	{"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
	{"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
	{"cuMemcpy2D", 3020, "cuMemcpy2D_v2"},
	{"cuMemcpy2DUnaligned", 3020, "cuMemcpy2DUnaligned_v2"},
	{"cuMemcpy2DAsync", 3020, "cuMemcpy2DAsync_v2"},
	{"cuMemcpy3D", 3020, "cuMemcpy3D_v2"},
	{"cuMemcpy3DAsync", 3020, "cuMemcpy3DAsync_v2"},
	{"cuMemcpy3DBatchAsync", 13000, "cuMemcpy3DBatchAsync_v2"},
	{"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"},
	{"cuMemsetD8", 3020, "cuMemsetD8_v2"},
	{"cuMemsetD16", 3020, "cuMemsetD16_v2"},
	{"cuMemsetD32", 3020, "cuMemsetD32_v2"},
	{"cuMemsetD2D8", 3020, "cuMemsetD2D8_v2"},
	{"cuMemsetD2D16", 3020, "cuMemsetD2D16_v2"},
	{"cuMemsetD2D32", 3020, "cuMemsetD2D32_v2"},
	{"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
	{"cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"},
	{"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
	{"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
	{"cuStreamWriteValue32", 11070, "cuStreamWriteValue32_v2"},
	{"cuStreamWaitValue32", 11070, "cuStreamWaitValue32_v2"},
	{"cuStreamWriteValue64", 11070, "cuStreamWriteValue64_v2"},
	{"cuStreamWaitValue64", 11070, "cuStreamWaitValue64_v2"},
	{"cuStreamBatchMemOp", 11070, "cuStreamBatchMemOp_v2"},
	{"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
	{"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2"},
	{"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
	{"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"},
	{"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2"},
	{"cuGraphKernelNodeSetParams", 12000, "cuGraphKernelNodeSetParams_v2"},
	{"cuGraphExecKernelNodeSetParams", 12000, "cuGraphExecKernelNodeSetParams_v2"},
	{"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
	{"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
	{"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
	{"cuGraphGetEdges", 12030, "cuGraphGetEdges_v2"},
	{"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2"},
	{"cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v2"},
	{"cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v2"},
	{"cuGraphRemoveDependencies", 12030, "cuGraphRemoveDependencies_v2"},
	{"cuEventDestroy", 4000, "cuEventDestroy_v2"},
	{"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
	{"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
	/* clang-format on */
};

/* This library itself, whatever else in the process exports the same names. */
static void *self(void)
{
	static void *handle;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	Dl_info info;

	pthread_mutex_lock(&lock);
	if (!handle && dladdr(&settings, &info) && info.dli_fname)
		handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	pthread_mutex_unlock(&lock);
	return handle;
}

static void *find(const char *name, cuuint64_t flags)
{
	static const char *const suffixes[] = {"_ptsz", "_ptds"};
	char longer[128];
	void *library = self();

	if (!library)
		return NULL;
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		for (size_t i = 0; i < 2; i++) {
			void *at;

			if (snprintf(longer, sizeof(longer), "%s%s", name, suffixes[i]) >=
				(int)sizeof(longer))
				break;
			at = dlsym(library, longer);
			if (at)
				return at;
		}
	return dlsym(library, name);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
	CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	const char *name = NULL;
	bool versioned = false;

	if (!symbol || !*symbol || !pfn ||
		flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions) && !name; i++) {
		if (strcmp(versions[i].base, symbol))
			continue;
		versioned = true;
		if (cudaVersion >= versions[i].since)
			name = versions[i].name;
	}
	/* The first version of a function has no suffix; those of CUDA 3.1 have other arguments
	 * and are not exported. */
	if (!name)
		name = symbol;
	if (strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z')
		*pfn = find(name, flags);
	if (*pfn)
		status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (versioned)
		status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	if (symbolStatus) {
		*symbolStatus = status;
		return CUDA_SUCCESS;
	}
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

/* NVIDIA's private tables are not for us to imitate; its runtime takes this for an old driver.
 */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
