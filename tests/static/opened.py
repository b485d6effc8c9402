#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CUDA runtimes that a Python program opens by path: NVIDIA's shared ones, in each mode, under the
names that wheels give them, several at once, closed and opened again.

    opened.py FOLDER-OF-CUDA-12 FOLDER-OF-CUDA-13     (each with NVIDIA's libcudart.so.*)
"""
import _ctypes
import ctypes
import os
import shutil
import sys
import tempfile

VERSIONS = {12: 12090, 13: 13000}
failures = 0


def check(right, what):
    global failures
    failures += not right
    print("pass " if right else "fail ", what, flush=True)


def works(runtime, version):
    """Its version, and 1000 bytes there and back."""
    number, memory = ctypes.c_int(), ctypes.c_void_p()
    sent, got = ctypes.create_string_buffer(os.urandom(1000)), ctypes.create_string_buffer(1000)
    if runtime.cudaRuntimeGetVersion(ctypes.byref(number)) or number.value != version:
        return False
    if runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1000)):
        return False
    done = (runtime.cudaMemcpy(memory, sent, ctypes.c_size_t(1000), 1) or
            runtime.cudaMemcpy(got, memory, ctypes.c_size_t(1000), 2) or runtime.cudaFree(memory))
    return not done and sent.raw[:1000] == got.raw[:1000]


def main():
    with tempfile.TemporaryDirectory() as folder:
        for major, cuda in zip((12, 13), sys.argv[1:]):
            version, kept = VERSIONS[major], []
            path = os.path.join(cuda, "lib", f"libcudart.so.{major}")
            for mode in ("RTLD_LOCAL", "RTLD_GLOBAL", "RTLD_DEEPBIND"):
                kept.append(ctypes.CDLL(path, os.RTLD_NOW | getattr(os, mode)))
                check(works(kept[-1], version), f"CUDA {major} by its path, {mode}")
            for name in (f"libcudart-9335f6a2.so.{major}.0.1", "libruntime.so"):
                renamed = os.path.join(folder, f"{major}-{name}")
                shutil.copy(path, renamed)
                for mode in ("RTLD_LOCAL", "RTLD_DEEPBIND"):
                    library = ctypes.CDLL(renamed, os.RTLD_LAZY | getattr(os, mode))
                    check(works(library, version), f"CUDA {major} as {name}, {mode}")
                    _ctypes.dlclose(library._handle)
                kept.append(ctypes.CDLL(renamed))
            check(all(works(one, version) for one in kept), f"CUDA {major}: all at once")
    print(f"{failures} failed")
    sys.exit(failures != 0)


main()
