#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node with an NVML of its own (node.c): its figures come out of pynvml in the app, each in its
place; what it lacks is not supported."""
import ctypes
import os
import subprocess
import sys

import pynvml as nv

GIB = 1 << 30

nv.nvmlInit()
d = nv.nvmlDeviceGetHandleByIndex(0)


def is_(got, want):
    assert got == want, f"{got!r}, not {want!r}"


def refused(call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError_NotSupported:
        return
    raise AssertionError(f"{call.__name__} is not refused")


is_(nv.nvmlSystemGetDriverVersion(), "580.65.06")
is_(nv.nvmlSystemGetNVMLVersion(), "13.580.65.06")
is_(nv.nvmlSystemGetDriverBranch().branch, "r580_65")
memory = nv.nvmlDeviceGetMemoryInfo(d)
is_((memory.total, memory.free, memory.used), (1000 * GIB, 600 * GIB, 400 * GIB))
memory = nv.nvmlDeviceGetMemoryInfo(d, version=nv.nvmlMemory_v2)
is_((memory.reserved, memory.used), (100 << 20, 400 * GIB - (100 << 20)))
load = nv.nvmlDeviceGetUtilizationRates(d)
is_((load.gpu, load.memory), (61, 62))
pci = nv.nvmlDeviceGetPciInfo(d)
is_((pci.pciDeviceId, pci.pciSubSystemId), (0x233510DE, 0x18BE10DE))
is_(nv.nvmlDeviceGetPowerUsage(d), 301000)
is_(nv.nvmlDeviceGetPowerManagementLimit(d), 302000)
is_(nv.nvmlDeviceGetPowerManagementDefaultLimit(d), 303000)
is_(nv.nvmlDeviceGetEnforcedPowerLimit(d), 304000)
is_(nv.nvmlDeviceGetTotalEnergyConsumption(d), 5000000000000)
is_(nv.nvmlDeviceGetPerformanceState(d), 2)
is_(nv.nvmlDeviceGetPersistenceMode(d), 1)
is_(nv.nvmlDeviceGetComputeMode(d), nv.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
is_(nv.nvmlDeviceGetMinorNumber(d), 5)
is_(nv.nvmlDeviceGetBrand(d), nv.NVML_BRAND_NVIDIA)
is_(nv.nvmlDeviceGetEccMode(d), [1, 0])
is_(nv.nvmlDeviceGetMigMode(d), [0, 1])
is_(nv.nvmlDeviceGetTemperature(d, nv.NVML_TEMPERATURE_GPU), 41)
is_(nv.nvmlDeviceGetTemperatureThreshold(d, nv.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN), 90)
is_(nv.nvmlDeviceGetTemperatureThreshold(d, nv.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN), 91)
is_([nv.nvmlDeviceGetClockInfo(d, t) for t in range(4)], [1000, 1001, 1002, 1003])
is_([nv.nvmlDeviceGetMaxClockInfo(d, t) for t in range(4)], [2000, 2001, 2002, 2003])
is_((nv.nvmlDeviceGetCurrPcieLinkGeneration(d), nv.nvmlDeviceGetMaxPcieLinkGeneration(d)), (4, 6))
is_((nv.nvmlDeviceGetCurrPcieLinkWidth(d), nv.nvmlDeviceGetMaxPcieLinkWidth(d)), (8, 16))
is_(nv.nvmlDeviceGetVbiosVersion(d), "96.00.99.00.01")
is_(nv.nvmlDeviceGetMaxMigDeviceCount(d), 7)
is_(nv.nvmlDeviceIsMigDeviceHandle(d).value, 0)
for fabric in (nv.c_nvmlGpuFabricInfo_v2_t(), nv.c_nvmlGpuFabricInfo_v3_t()):
    nv.nvmlDeviceGetGpuFabricInfoV(d, ctypes.byref(fabric))
    is_(bytes(fabric.clusterUuid), bytes(range(200, 216)))
    is_((fabric.status, fabric.cliqueId, fabric.state, fabric.healthMask),
        (nv.NVML_ERROR_NO_DATA, 4000000001, nv.NVML_GPU_FABRIC_STATE_COMPLETED, 0x2A1))
is_(fabric.healthSummary, 3)
# More than one call of the wire takes; of one field several scopes.
asked = [(nv.NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, scope) for scope in range(70)]
asked += [nv.NVML_FI_DEV_NVLINK_LINK_COUNT, nv.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION]
fields = nv.nvmlDeviceGetFieldValues(d, asked)
is_([f.value.ullVal for f in fields[:70]], [f << 32 | scope for f, scope in asked[:70]])
is_({f.nvmlReturn for f in fields[:70]}, {nv.NVML_SUCCESS})
is_((fields[1].timestamp, fields[1].latencyUsec), (1700000000000001, 71))
is_(fields[70].nvmlReturn, nv.NVML_ERROR_NOT_SUPPORTED)
is_((fields[71].valueType, fields[71].value.dVal), (nv.NVML_VALUE_TYPE_DOUBLE, 2.5))
refused(nv.nvmlDeviceGetFanSpeed, d)
refused(nv.nvmlDeviceGetNumFans, d)
refused(nv.nvmlDeviceGetEncoderUtilization, d)
refused(nv.nvmlDeviceGetSerial, d)
other = nv.nvmlDeviceGetHandleByIndex(1)
is_(nv.nvmlDeviceGetTopologyCommonAncestor(d, other), nv.NVML_TOPOLOGY_NODE)
is_(nv.nvmlDeviceGetTopologyCommonAncestor(d, d), nv.NVML_TOPOLOGY_INTERNAL)
is_([nv.nvmlDeviceGetIndex(n) for n in nv.nvmlDeviceGetTopologyNearestGpus(d, nv.NVML_TOPOLOGY_NODE)], [1])
is_(len(nv.nvmlDeviceGetTopologyNearestGpus(d, nv.NVML_TOPOLOGY_SYSTEM)), 0)
is_(nv.nvmlDeviceOnSameBoard(d, other), 1)
is_([nv.nvmlDeviceGetP2PStatus(d, other, i) for i in range(4)],
    [nv.NVML_P2P_STATUS_OK, nv.NVML_P2P_STATUS_GPU_NOT_SUPPORTED, nv.NVML_P2P_STATUS_OK,
     nv.NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED])
refused(nv.nvmlDeviceGetP2PStatus, d, other, 4)
is_([nv.nvmlDeviceGetNvLinkState(d, i) for i in range(4)], [1, 1, 1, 0])
is_(nv.nvmlDeviceGetNvLinkVersion(other, 3), 73)
is_([nv.nvmlDeviceGetNvLinkRemotePciInfo(d, i).busId for i in range(3)],
    ["00000000:40:00.0", "00000000:02:00.0", "00000000:42:00.0"])
is_(nv.nvmlDeviceGetNvLinkRemotePciInfo(other, 1).bus, 1)
refused(nv.nvmlDeviceGetNvLinkState, d, 4)
for words, cells in ((["topo"], ["X NV2", "NV2 X"]), (["topo", "-m"], ["X NV2", "NV2 X"]),
                     (["topo", "-p2p", "r"], ["X OK", "OK X"]), (["topo", "-p2p", "w"], ["X GNS", "GNS X"]),
                     (["topo", "-p2p", "a"], ["X TNS", "TNS X"]), (["topo", "-p2p", "p"], ["X N/A", "N/A X"])):
    lines = subprocess.run([sys.argv[1], "smi", *words], capture_output=True, text=True, check=True,
                           timeout=20).stdout.splitlines()
    is_(lines[0].split(), ["GPU0", "GPU1"])
    is_([" ".join(line.split()) for line in lines[1:3]], [f"GPU{i} {cells[i]}" for i in range(2)])
print("nvml of the node: as it should be")
os._exit(0)
