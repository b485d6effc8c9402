# SPDX-License-Identifier: Apache-2.0
"""Weights that every pod shares: a safetensors file as one tensor with a name.

    tensors = vcuda.load_file("model.safetensors")   # name -> torch.Tensor, read-only
    with vcuda.empty():
        model = Model()
    vcuda.load(model, "DIR")                         # sharded, tied

The first process that asks makes one allocation for the file, uploads it and seals it; others wait for
that and map it.  A file is named by its header's SHA-256 and by samples of its content, so that a copy of
it elsewhere is the same and another training step is not; both stand behind its data too, so that a name that was
told is not taken for another file's.  One that dies while it uploads leaves
nothing, and the next one that waits takes its place.
"""
import contextlib
import ctypes
import hashlib
import json
import mmap
import os
import struct
import time

from . import _TORCH, DTYPES, Tensor, create, get, wait
from .library import Error

_SAFETENSORS = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "F8_E4M3": "f8e4m3", "F8_E5M2": "f8e5m2",
                "I64": "i64", "I32": "i32", "I16": "i16", "I8": "i8", "U8": "u8", "BOOL": "bool"}
_BYTES = dict(zip(DTYPES, (8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1)))
HEADER_MAX = 100 << 20  # as safetensors has it
SAMPLES, SAMPLE = 64, 4096
IDENTITY = b"vcudafil"  # behind the data, before the two digests
IDENTITY_BYTES = len(IDENTITY) + 64
PIECE = 16 << 20
ALIGNED = 256  # as memory of the driver's is


class Part:
    """A tensor of the file, in the memory of `whole`."""

    def __init__(self, whole, name, dtype, shape, offset, nbytes):
        self.whole, self.name, self.dtype, self.shape = whole, name, dtype, tuple(shape)
        self.offset, self.nbytes = offset, nbytes

    writable, sealed = False, True
    data = property(lambda self: self.whole.data + self.offset)
    device = property(lambda self: self.whole.device)
    __dlpack_device__ = Tensor.__dlpack_device__
    __dlpack__ = Tensor.__dlpack__
    __cuda_array_interface__ = Tensor.__cuda_array_interface__

    def torch(self):
        if self.nbytes:
            return Tensor.torch(self)
        import torch
        return torch.empty(self.shape, dtype=getattr(torch, _TORCH[self.dtype]), device=torch.device("cuda", self.device))

    def __repr__(self):
        return f"<vcuda.Part '{self.name}' {self.dtype} {self.shape} of '{self.whole.name}'>"


def _bad(path, what):
    return Error(1, f"{os.fspath(path)}: {what}")


def header(path):
    """(the parts as {name: (dtype, shape, offset, bytes)}, where the data begins, its bytes, the header's SHA-256)."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
        n = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= n <= HEADER_MAX or n + 8 > size:
            raise _bad(path, "is no safetensors file: the length of its header cannot be")
        text = file.read(n)
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"is no safetensors file: its header is no JSON ({error})") from None
    parts, data = {}, size - 8 - n
    if not isinstance(told, dict):
        raise _bad(path, "is no safetensors file: its header is no object")
    for name, one in told.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = _SAFETENSORS[one["dtype"]], one["shape"]
            first, end = one["data_offsets"]
            count = 1
            if type(shape) is not list or any(type(n) is not int or n < 0 for n in (*shape, first, end)):
                raise ValueError
            for dimension in shape:
                count *= dimension
            if not 0 <= first <= end <= data or end - first != count * _BYTES[dtype] or len(shape) > 8:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise _bad(path, f"tensor '{name}' has a dtype, a shape or a place that cannot be") from None
        parts[name] = dtype, shape, first, end - first
    at = 0
    for name, (_, _, first, nbytes) in sorted(parts.items(), key=lambda part: part[1][2:]):
        if first != at:
            raise _bad(path, f"tensor '{name}' begins at byte {first}, and what is before it ends at {at}")
        at += nbytes
    if at != data:
        raise _bad(path, f"it has {data} bytes of data, and its tensors {at}")
    if not data:
        raise _bad(path, "has no data")
    return parts, 8 + n, data, hashlib.sha256(start + text).hexdigest()


def _layout(parts, size):
    """The parts at their places in memory; what to copy, as (place in the file's data, place, bytes); all bytes.  A file may
    have a tensor where its dtype cannot be read from: kernels want addresses that are multiples of an element's bytes."""
    if all(first % _BYTES[dtype] == 0 for dtype, _, first, nbytes in parts.values() if nbytes):
        return parts, [(0, 0, size)], size
    placed, copies, at = {}, [], 0
    for name, (dtype, shape, first, nbytes) in parts.items():
        at = -(-at // ALIGNED) * ALIGNED
        placed[name] = dtype, shape, at, nbytes
        copies.append((first, at, nbytes))
        at += nbytes
    return placed, copies, at


def _identity(path, at, size, digest):
    """What tells the file from others, as it stands in memory behind its data."""
    content = hashlib.sha256()
    with open(path, "rb") as file:
        for i in range(SAMPLES):
            file.seek(at + (size - min(size, SAMPLE)) * i // (SAMPLES - 1))
            content.update(file.read(SAMPLE))
    return IDENTITY + bytes.fromhex(digest) + content.digest()


def _name(identity, size):
    header_digest, content = identity[len(IDENTITY):-32], identity[-32:]
    return f"weights.{header_digest.hex()[:32]}.{content.hex()[:16]}.{size + IDENTITY_BYTES}"


def name_of(path):
    """The name under which the file's weights are known."""
    parts, at, size, digest = header(path)
    return _name(_identity(path, at, size, digest), _layout(parts, size)[2])


def _copy_in(to, source, n, path):
    status = ctypes.CDLL("libcuda.so.1").cuMemcpyHtoD_v2(ctypes.c_uint64(to), source, ctypes.c_size_t(n))
    if status:
        raise Error(status, f"{os.fspath(path)}: the upload failed")


def _upload(whole, path, at, copies, size, identity):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as data:
        view = (ctypes.c_char * len(data)).from_buffer(data)
        try:
            for first, place, nbytes in copies:
                for done in range(0, nbytes, PIECE):
                    source = ctypes.c_void_p(ctypes.addressof(view) + at + first + done)
                    _copy_in(whole.data + place + done, source, min(PIECE, nbytes - done), path)
        finally:
            del view
    _copy_in(whole.data + size, ctypes.c_char_p(identity), IDENTITY_BYTES, path)


def _check(whole, path, size, identity):
    """A name that was told says nothing of what is under it."""
    there = ctypes.create_string_buffer(IDENTITY_BYTES)
    if whole.nbytes == size + IDENTITY_BYTES:
        status = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2(there, ctypes.c_uint64(whole.data + size), ctypes.c_size_t(IDENTITY_BYTES))
        if status:
            raise Error(status, f"{os.fspath(path)}: what '{whole.name}' is could not be read")
    if there.raw != identity:
        raise _bad(path, f"'{whole.name}' is there already, and was not made of this file")


def _context(device):
    """A copy needs one: the primary, where the program has none yet."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if driver.cuInit(0) or driver.cuCtxGetCurrent(ctypes.byref(context)) or context.value:
        return
    if not driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), max(device, 0)):
        driver.cuCtxSetCurrent(context)


def open_file(path, *, name=None, device=-1, evictable=True, keep=False, seconds=600):
    """The whole file as one sealed tensor of bytes (Tensor.made: by this call), and its parts."""
    parts, at, size, digest = header(path)
    identity = _identity(path, at, size, digest)
    parts, copies, size = _layout(parts, size)
    name = name or _name(identity, size)
    _context(device)
    until = time.monotonic() + seconds
    while True:
        whole, elsewhere = None, False
        try:
            whole = get(name, device=device)
        except Error as error:
            if error.status not in (101, 500):
                raise
            elsewhere = error.status == 101  # another agent has it, and somebody there uploads it
        if whole and whole.sealed:
            try:
                _check(whole, path, size, identity)
            except Exception:
                whole.close()
                raise
            return whole, parts
        if whole:
            # Held, it would outlive a loader that dies: another one could not take its place.
            whole.close()
        elif not elsewhere:
            try:
                whole = create(name, "u8", (size + IDENTITY_BYTES,), device=device, evictable=evictable, keep=keep)
            except Error as error:
                if error.status != 101:
                    raise
                continue
            if whole.made:
                _upload(whole, path, at, copies, size, identity)
                whole.seal()
                return whole, parts
            whole.close()
        left = until - time.monotonic()
        if left <= 0:
            raise Error(600, f"'{name}' was not loaded by who began it within {seconds} s")
        if elsewhere:
            time.sleep(min(left, 0.1))
            continue
        try:
            wait(name, seconds=min(left, 5), device=device)
        except Error as error:
            if error.status not in (500, 600):
                raise


def load_parts(path, **more):
    """{name: Part}, for DLPack, the CUDA array interface or .torch()."""
    whole, parts = open_file(path, **more)
    return {name: Part(whole, name, *one) for name, one in parts.items()}


def load_file(path, **more):
    """{name: torch.Tensor}, over the shared memory: to be read only."""
    return {name: part.torch() for name, part in load_parts(path, **more).items()}


def files_of(folder):
    """The safetensors files of a model's folder: those of its index, or all."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        try:
            with open(index) as file:
                names = sorted(set(json.load(file)["weight_map"].values()))
            outside = any(os.path.basename(name) != name for name in names)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise _bad(index, "is no index of safetensors files: it has no weight_map of names") from None
        if outside:
            raise _bad(index, "names a file outside of its folder")
    else:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    if not names:
        raise _bad(folder, "has no *.safetensors")
    return [os.path.join(folder, name) for name in names]


@contextlib.contextmanager
def empty():
    """A model that is made in it has its parameters on the meta device, without memory; its buffers are computed as ever.
    (torch.device("meta") would leave those empty too that are in no file.)"""
    import torch
    register = torch.nn.Module.register_parameter

    def on_meta(module, name, parameter):
        register(module, name, parameter)
        if parameter is not None and not parameter.is_meta:
            made = type(parameter)(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
            module._parameters[name] = made
    torch.nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def _tied(model):
    """Lists of the names that one parameter has, of those with several."""
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [found for found in names.values() if len(found) > 1]


def _place(model, name):
    module, _, own = name.rpartition(".")
    return model.get_submodule(module)._parameters, own


def load(model, folder, *, strict=True, **more):
    """Gives the model, made within empty() or on the meta device, the shared weights of that folder; a weight that the
    model has under several names is in the files once.  The weights are to be read only: gradients are not for them."""
    state, tied = {}, _tied(model)
    for path in files_of(folder):
        state.update(load_file(path, **more))
    if hasattr(model, "tie_weights"):
        model.tie_weights()
        tied = tied or _tied(model)
    for names in tied:
        known = next((name for name in names if name in state), None)
        state.update({name: state[known] for name in names if known})
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    if strict and (missing or unexpected):
        raise Error(1, f"{folder}: weights that the model has and the files do not {missing[:5]}, and the other way round "
                       f"{list(unexpected)[:5]}")
    for first, *others in tied:
        parameters, own = _place(model, first)
        for name in others:
            _place(model, name)[0][name.rpartition(".")[2]] = parameters[own]
    lacking = [name for name, buffer in model.named_buffers() if buffer.is_meta]
    if strict and lacking:
        raise Error(1, f"{folder}: buffers that are in no file {lacking[:5]}: make the model within vcuda.empty(), not on the "
                       "meta device")
    device = next(iter(state.values())).device if state else None
    for module in model.modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and not buffer.is_meta and device:
                module._buffers[name] = buffer.to(device)
    return model.requires_grad_(False)
