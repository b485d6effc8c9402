# SPDX-License-Identifier: Apache-2.0
"""A program of CUDA's driver interface in plain Python that brings 16 MiB to the device and back, the same ones each time."""
import ctypes
import hashlib

SIZE = 16 << 20
cuda = ctypes.CDLL("libcuda.so.1")


def do(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        raise SystemExit(f"{name}: error {code}")


context, there = ctypes.c_void_p(), ctypes.c_uint64()
given = b"".join(hashlib.sha256(i.to_bytes(4, "little")).digest() for i in range(SIZE // 32))
back = ctypes.create_string_buffer(SIZE)
do("cuInit", 0)
do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
do("cuCtxSetCurrent", context)
do("cuMemAlloc_v2", ctypes.byref(there), ctypes.c_size_t(SIZE))
do("cuMemcpyHtoD_v2", there, given, ctypes.c_size_t(SIZE))
do("cuMemcpyDtoH_v2", back, there, ctypes.c_size_t(SIZE))
print("the same bytes" if back.raw == given else "other bytes")
