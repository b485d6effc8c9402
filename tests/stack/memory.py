# SPDX-License-Identifier: Apache-2.0
"""memory.py: allocates and uses device memory as its standard input says, for test_short.py. Each line is answered
with one.

alloc MIB    "alloc STATUS"
use          the last allocation is filled and waited for: "use STATUS STATUS"
free         "free STATUS"
info         "info MIB", what is free
"""
import ctypes
import sys

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
size = 0
statuses = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
print("ready", *statuses, flush=True)
for line in sys.stdin:
    what, *words = line.split()
    if what == "alloc":
        size = int(words[0]) * MIB
        said = [cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size))]
    elif what == "use":
        said = [cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(1), ctypes.c_size_t(size)), cuda.cuCtxSynchronize()]
    elif what == "free":
        said = [cuda.cuMemFree_v2(memory)]
    else:
        said = [cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) or free.value // MIB]
    print(what, *said, flush=True)
