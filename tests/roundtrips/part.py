# SPDX-License-Identifier: Apache-2.0
"""Measures a part of itself: part.py FILE leaves there what ten allocations and three
synchronisations counted (one that waits: nothing came after it), and nothing of what was before
and after."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()


def do(status):
    if status:
        sys.exit(f"part.py: status {status}")


do(cuda.cuInit(0))
do(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
do(cuda.cuCtxSetCurrent(context))
do(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)))
do(cuda.vcuda_stats_begin())
for _ in range(10):
    do(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)))
for _ in range(3):
    do(cuda.cuCtxSynchronize())
do(cuda.vcuda_stats_end(sys.argv[1].encode()))
do(cuda.cuCtxSynchronize())
if cuda.vcuda_stats_end(None) != -1:
    sys.exit("part.py: ended twice")
