# SPDX-License-Identifier: Apache-2.0
"""include/vcuda/tensor.h by ctypes."""
import ctypes
import functools


class Error(RuntimeError):
    """`status`: the CUresult."""

    def __init__(self, status, text):
        super().__init__(f"{text} (CUDA error {status})")
        self.status, self.text = status, text


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("device", ctypes.c_int),
                ("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("shape", ctypes.c_int64 * 8), ("version", ctypes.c_uint64), ("reserved", ctypes.c_uint64 * 4)]


class Stat(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("holders", ctypes.c_uint32), ("shape", ctypes.c_int64 * 8),
                ("version", ctypes.c_uint64), ("ctime", ctypes.c_uint64), ("mtime", ctypes.c_uint64),
                ("name", ctypes.c_char * 336)]


@functools.cache
def load():
    """What is preloaded in a pod; else libvcuda-tensor.so."""
    for name in (None, "libvcuda-tensor.so"):
        try:
            library = ctypes.CDLL(name)
            library.vcuda_tensor_error.restype = ctypes.c_char_p
            return library
        except (OSError, AttributeError):
            continue
    raise Error(100, "vcuda is not preloaded here: run the program in an annotated pod, or by `vcuda run`")


def call(function, *arguments):
    status = getattr(load(), function)(*arguments)
    if status:
        raise Error(status, load().vcuda_tensor_error().decode(errors="replace"))
