# SPDX-License-Identifier: Apache-2.0
"""A Python program with managed memory, for test_managed.py.

managed.py sparse FILE   touches one of a thousand pages after the device wrote all of them, then the
                         device works again; what that cost goes to FILE
managed.py crash WHEN    has faulthandler enabled "before" or "after" there is managed memory, uses
                         that, and reads address 16
"""
import ctypes
import faulthandler
import sys

PAGES, STEP, PAGE = 20000, 1000, 4096
cuda = ctypes.CDLL("libcuda.so.1")


def do(status):
    if status:
        sys.exit(f"managed.py: status {status}")


def managed(size):
    context, memory = ctypes.c_void_p(), ctypes.c_uint64()
    do(cuda.cuInit(0))
    do(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    do(cuda.cuCtxSetCurrent(context))
    do(cuda.cuMemAllocManaged(ctypes.byref(memory), ctypes.c_size_t(size), 1))
    return memory.value


def fill(memory, value, size):
    do(cuda.cuMemsetD8_v2(ctypes.c_uint64(memory), ctypes.c_ubyte(value), ctypes.c_size_t(size)))
    do(cuda.cuCtxSynchronize())


def sparse(path):
    memory = managed(PAGES * PAGE)
    fill(memory, 7, PAGES * PAGE)
    do(cuda.vcuda_stats_begin())
    for page in range(STEP // 2, PAGES, STEP):
        byte = ctypes.c_ubyte.from_address(memory + page * PAGE)
        assert byte.value == 7, byte.value
        byte.value = 9
    fill(memory, 8, PAGE)  # what is new goes to the device before that
    assert ctypes.c_ubyte.from_address(memory).value == 8
    byte = ctypes.c_ubyte.from_address(memory + STEP // 2 * PAGE)
    assert byte.value == 9, byte.value
    do(cuda.vcuda_stats_end(path.encode()))


def crash(when):
    if when == "before":
        faulthandler.enable()
    memory = managed(PAGE)
    byte = ctypes.c_ubyte.from_address(memory)
    fill(memory, 5, PAGE)
    if when == "after":
        faulthandler.enable()
    assert byte.value == 5
    print("used", flush=True)
    ctypes.string_at(16)


sparse(sys.argv[2]) if sys.argv[1] == "sparse" else crash(sys.argv[2])
