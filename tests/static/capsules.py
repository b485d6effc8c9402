#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Modules like those of cuda.bindings: a static CUDA runtime without symbols, whose functions other
modules get as capsules.  They are ours then, of the module's CUDA and default stream.

    capsules.py FILE.so=MAJOR ...     ("ptds" in a name: compiled for the thread's default stream)
"""
import ctypes
import os
import sys

failures = 0
POINTER = ctypes.pythonapi.PyCapsule_GetPointer
POINTER.restype, POINTER.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def check(right, what):
    global failures
    failures += not right
    print("pass " if right else "fail ", what, flush=True)


def ours(major, name):
    library = ctypes.CDLL(f"libcudart.so.{major}")
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def main():
    for path, major in (one.rsplit("=", 1) for one in sys.argv[1:]):
        module = ctypes.PyDLL(path)
        module.offers.restype = ctypes.py_object
        offered = module.offers()
        address = {name: POINTER(one, b"function") for name, one in offered.items() if not isinstance(one, str)}
        what = os.path.basename(path)

        copy = ours(major, "cudaMemcpy_ptds" if "ptds" in path else "cudaMemcpy")
        check(address["_cudaMemcpy"] == copy, f"{what}: the copy of its default stream")
        check(address["_cudaMalloc"] == ours(major, "cudaMalloc"), f"{what}: the name as an object")
        check(address["_cudaGetDeviceCount"] == ours(major, "cudaGetDeviceCount"), f"{what}: the name as text")
        count = ctypes.c_int()
        status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address["_cudaGetDeviceCount"])(ctypes.byref(count))
        check(status == 0 and count.value > 0, f"{what}: it counts the devices")
        check(ctypes.CFUNCTYPE(ctypes.c_int)(address["_cudaSeven"])() == 7, f"{what}: what is not the runtime's stays")
        check(offered["_cudaFree"] == "text" and len(offered) == 6, f"{what}: what is no capsule stays")
    print(f"{failures} failed")
    sys.exit(failures != 0)


main()
