# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules over memory of the GPU, by ctypes (dlpack.h, versions 0.8 and 1.0)."""
import ctypes

CUDA = 2
# code, bits
_TYPES = {"f64": (2, 64), "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "i64": (0, 64), "i32": (0, 32),
          "i16": (0, 16), "i8": (0, 8), "u8": (1, 8), "bool": (6, 8), "f8e4m3": (10, 8), "f8e5m2": (12, 8)}
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", _DELETER), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_alive = {}  # address of what a consumer has -> what it stands on
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
# PyCapsule keeps pointers to its names.
_NAMES = (b"dltensor", b"dltensor_versioned")


@_DELETER
def _delete(address):
    _alive.pop(address, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule):
    """A capsule that nobody took."""
    for name in _NAMES:
        if _api.PyCapsule_IsValid(capsule, name):
            _delete(_api.PyCapsule_GetPointer(capsule, name))


def capsule(tensor, versioned=False, as_bytes=False):
    shape = (tensor.nbytes,) if as_bytes else tensor.shape
    code, bits = _TYPES["u8" if as_bytes else tensor.dtype]
    managed = _Versioned() if versioned else _Managed()
    if versioned:
        managed.major, managed.minor = 1, 0
        managed.flags = 0 if tensor.writable else _READ_ONLY
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    strides = (ctypes.c_int64 * max(1, len(shape)))()
    step = 1
    for i in reversed(range(len(shape))):
        strides[i], step = step, step * shape[i]
    managed.tensor = _Tensor(tensor.data, CUDA, tensor.device, len(shape), code, bits, 1, sizes, strides, 0)
    managed.deleter = _delete
    _alive[ctypes.addressof(managed)] = managed, sizes, strides, tensor
    return _api.PyCapsule_New(ctypes.addressof(managed), _NAMES[versioned], ctypes.cast(_destroy, ctypes.c_void_p))


class Bytes:
    """The tensor as bytes, for consumers that do not know its dtype in DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return CUDA, self.tensor.device

    def __dlpack__(self, **_):
        return capsule(self.tensor, as_bytes=True)
