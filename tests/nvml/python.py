#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pynvml, unchanged, through the front."""
import ctypes
import os

import pynvml as nv


def refused(call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError_NotSupported:
        return True
    return False


nv.nvmlInit()
assert nv.nvmlDeviceGetCount() == 1
device = nv.nvmlDeviceGetHandleByIndex(0)
assert nv.nvmlDeviceGetName(device) == "vcuda software GPU"
uuid = nv.nvmlDeviceGetUUID(device)
assert uuid.startswith("GPU-") and len(uuid) == 40, uuid
assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(uuid)) == 0
place = nv.nvmlDeviceGetPciInfo(device).busId
assert nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(place)) == 0
memory = nv.nvmlDeviceGetMemoryInfo(device, version=nv.nvmlMemory_v2)
assert memory.total == memory.free + memory.used + memory.reserved and memory.total > 1 << 26
assert 0 <= nv.nvmlDeviceGetUtilizationRates(device).gpu <= 100
assert nv.nvmlDeviceGetComputeRunningProcesses(device) == []
assert "python" in str(nv.nvmlSystemGetProcessName(os.getpid()))
assert nv.nvmlSystemGetCudaDriverVersion() >= 12000
release = [int(part) for part in nv.nvmlSystemGetDriverVersion().split(".")]  # XLA wants three numbers, too
assert len(release) == 3 and release[0] >= 12, release
assert refused(nv.nvmlDeviceGetTemperature, device, nv.NVML_TEMPERATURE_GPU)
assert refused(nv.nvmlDeviceSetPersistenceMode, device, 1)
assert refused(nv.nvmlDeviceGetGpuFabricInfoV, device, ctypes.byref(nv.c_nvmlGpuFabricInfo_v3_t()))
assert nv.nvmlDeviceIsMigDeviceHandle(device).value == 0
fields = nv.nvmlDeviceGetFieldValues(device, [nv.NVML_FI_DEV_NVLINK_LINK_COUNT, 999999])
assert {f.nvmlReturn for f in fields} == {nv.NVML_ERROR_NOT_SUPPORTED}
nv.nvmlShutdown()
try:
    nv.nvmlDeviceGetCount()
    raise SystemExit("nvmlDeviceGetCount works after nvmlShutdown")
except nv.NVMLError_Uninitialized:
    pass
print("pynvml: as it should be")
