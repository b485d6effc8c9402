# SPDX-License-Identifier: Apache-2.0
"""Tensors with names in the memory of a vcuda agent (docs/TENSORS.md).

    import vcuda
    w = vcuda.create("w", "bf16", (4096, 4096))     # its owner writes it …
    w.torch().copy_(data)
    w.seal()                                        # … then nobody does
    vcuda.get("w").torch()                          # in another pod

A tensor is seen without a copy by whatever takes DLPack or the CUDA array interface: PyTorch,
CuPy, Numba, JAX.  It is closed with its object, or by close(), which ends every view of it.
"""
import ctypes
import importlib

from . import dlpack
from .library import Tensor as _Tensor, Stat as _Stat, call, load as _library

DTYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool")
_TYPESTR = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "|i1",
            "u8": "|u1", "bool": "|b1"}
_TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
          "bool": "bool"}
KEEP, EVICTABLE, PACKED, WRITE, NEW, PEER, OWNED, WRITABLE, MADE, SEALED = (
    0x1, 0x2, 0x4, 0x100, 0x200, 0x1000, 0x10000, 0x20000, 0x40000, 0x80000)

__all__ = ["create", "get", "delete", "touch", "share", "stat", "names", "wait", "Tensor", "Error", "DTYPES",
           "empty", "load", "load_file", "load_parts"]
from .library import Error  # noqa: E402


class Tensor:
    """An open tensor: memory of the GPU at `data`, until close()."""

    def __init__(self, name, raw):
        self.name, self._raw = name, raw
        self.shape = tuple(raw.shape[:raw.rank])
        self.dtype = DTYPES[raw.dtype - 1]

    data = property(lambda self: self._open().data)
    nbytes = property(lambda self: self._open().bytes)
    device = property(lambda self: self._open().device)
    version = property(lambda self: self._open().version)
    owned = property(lambda self: bool(self._open().flags & OWNED))
    writable = property(lambda self: bool(self._open().flags & WRITABLE))
    made = property(lambda self: bool(self._open().flags & MADE))
    sealed = property(lambda self: bool(self._open().flags & SEALED))
    peer = property(lambda self: bool(self._open().flags & PEER))

    def _open(self):
        if not self._raw.data:
            raise Error(1, f"tensor '{self.name}' is closed")
        return self._raw

    def seal(self, stream=None):
        """Waits for `stream` (its number, or torch's object; None: everything), then nobody writes it."""
        stream = getattr(stream, "cuda_stream", stream)
        call("vcuda_tensor_seal", ctypes.byref(self._open()), ctypes.c_void_p(stream or 0))

    def close(self):
        if self._raw.data:
            call("vcuda_tensor_close", ctypes.byref(self._raw))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # the session may have ended before
            pass

    def __repr__(self):
        return f"<vcuda.Tensor '{self.name}' {self.dtype} {self.shape}>"

    # What other libraries see.

    def __dlpack_device__(self):
        return dlpack.CUDA, self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("a tensor with a name is not copied")
        return dlpack.capsule(self, versioned=bool(max_version and max_version >= (1, 0)))

    @property
    def __cuda_array_interface__(self):
        if self.dtype not in _TYPESTR:
            raise AttributeError(f"the CUDA array interface has no {self.dtype}")
        return {"shape": self.shape, "typestr": _TYPESTR[self.dtype], "data": (self.data, not self.writable),
                "version": 3, "strides": None, "stream": None}

    def torch(self):
        """A torch.Tensor over the same memory."""
        import torch
        plain = torch.from_dlpack(dlpack.Bytes(self))
        return plain.view(getattr(torch, _TORCH[self.dtype])).reshape(self.shape)


def _text(name):
    """C would end it at a NUL, and take another one."""
    if "\0" in name:
        raise Error(1, f"{name!r} has a NUL")
    return name.encode()


def _dtype(dtype):
    if dtype not in DTYPES:
        raise Error(1, f"there is no dtype '{dtype}'; there are {', '.join(DTYPES)}")
    return DTYPES.index(dtype) + 1


def _shape(shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(shape) > 8 or any(not isinstance(n, int) or not 0 < n < 1 << 63 for n in shape):
        raise Error(1, f"{shape} is not a shape of at most 8 whole numbers above 0")
    return shape


def create(name, dtype, shape, *, device=-1, keep=False, evictable=False, packed=False, new=False):
    """Makes the tensor, or opens it where it is there with that dtype and shape (Tensor.made says)."""
    raw, shape = _Tensor(), _shape(shape)
    call("vcuda_tensor_create", _text(name), _dtype(dtype), len(shape), (ctypes.c_int64 * 8)(*shape), device,
         (KEEP if keep else 0) | (EVICTABLE if evictable else 0) | (PACKED if packed else 0) | (NEW if new else 0), ctypes.byref(raw))
    return Tensor(name, raw)


def get(names, *, device=-1, write=False, peer=False):
    """Opens the tensor of that name, or a list of them for a list of names: all or none. With `peer` what is on another GPU
    of the agent, which `device` reaches, is mapped from there instead of copied (Tensor.peer says)."""
    single = isinstance(names, str)
    wanted = [names] if single else list(names)
    raw = (_Tensor * max(1, len(wanted)))()
    call("vcuda_tensor_get", (ctypes.c_char_p * max(1, len(wanted)))(*[_text(n) for n in wanted]),
         ctypes.c_size_t(len(wanted)), device, (WRITE if write else 0) | (PEER if peer else 0), raw)
    tensors = [Tensor(name, _Tensor.from_buffer_copy(one)) for name, one in zip(wanted, raw)]
    return tensors[0] if single else tensors


def delete(name, *, device=-1):
    """The name goes at once, the memory with its last holder."""
    call("vcuda_tensor_delete", _text(name), device)


def touch(name, *, device=-1):
    """Its version and mtime rise."""
    call("vcuda_tensor_touch", _text(name), device)


def share(name, namespace, *, device=-1):
    """Programs of that namespace may open it once it is sealed; "*": of every one."""
    call("vcuda_tensor_share", _text(name), _text(namespace), device)


def _told(raw):
    return {"name": raw.name.decode(errors="replace"), "dtype": DTYPES[raw.dtype - 1],
            "shape": tuple(raw.shape[:raw.rank]), "bytes": raw.bytes, "sealed": bool(raw.flags & SEALED),
            "evictable": bool(raw.flags & EVICTABLE), "keep": bool(raw.flags & KEEP), "packed": bool(raw.flags & PACKED), "holders": raw.holders,
            "version": raw.version, "ctime": raw.ctime, "mtime": raw.mtime}


def stat(name, *, device=-1):
    raw = _Stat()
    call("vcuda_tensor_stat", _text(name), device, ctypes.byref(raw))
    return _told(raw)


def names(prefix="", *, device=-1):
    """What stat() tells of each tensor whose name begins so."""
    cursor, found = ctypes.c_uint64(), []
    while True:
        raw = _Stat()
        status = _library().vcuda_tensor_list(_text(prefix), device, ctypes.byref(cursor), ctypes.byref(raw))
        if status == 500:
            return found
        if status:
            raise Error(status, _library().vcuda_tensor_error().decode(errors="replace"))
        found.append(_told(raw))


def wait(name, *, seconds=60, device=-1):
    """Until it is sealed; what stat() tells then."""
    raw = _Stat()
    call("vcuda_tensor_wait", _text(name), device, min(int(seconds * 1000), 0xffffffff), ctypes.byref(raw))
    return _told(raw)


def __getattr__(name):
    """vcuda.load_file and its like: of vcuda.weights, which is read when it is asked for."""
    if name in ("empty", "load", "load_file", "load_parts"):
        return getattr(importlib.import_module(".weights", __name__), name)
    raise AttributeError(f"module 'vcuda' has no attribute '{name}'")
