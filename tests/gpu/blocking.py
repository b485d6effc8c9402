#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which calls of NVIDIA's driver wait for a host function that is outstanding, in the driver and on
one stream: what the worker must not do on its loop then (`waits` in protocol/api/*.api).

    tests/gpu/blocking.py [LIBCUDA]

Each call is made while a host function of another stream sleeps for 0.4 s: a line each, `waits` or
`returns`, milliseconds, and the status.  Natively, on a machine with a GPU; without arguments
libcuda.so.1. cuBLAS and cuDNN are tried where LD_LIBRARY_PATH has them.
"""
import ctypes
import sys
import time

PTX = b""".version 7.0
.target sm_75
.address_size 64
.global .align 4 .b8 variable%d[%d];
.visible .entry kernel%d(.param .u64 p)
{ .reg .b32 %%r<3>; .reg .b64 %%d<3>;
  ld.param.u64 %%d1, [p];
  setp.eq.u64 %%p1, %%d1, 0;
  @%%p1 ret;
  mov.u32 %%r1, %d;
  st.global.u32 [%%d1], %%r1;
  ret; }
""".replace(b".reg .b64", b".reg .pred %%p<2>; .reg .b64")
cuda = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcuda.so.1")
P, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
HOST_FUNCTION = ctypes.CFUNCTYPE(None, P)
sleep = HOST_FUNCTION(lambda _: time.sleep(0.4))
number = 0


def call(name, *arguments):
    return getattr(cuda, name)(*arguments)


def must(name, *arguments):
    status = call(name, *arguments)
    if status:
        raise SystemExit(f"{name}: {status}")


def ptx(size=4):
    global number
    number += 1
    return PTX % (number, size, number, number)


def module(size=4):
    handle = P()
    must("cuModuleLoadData", ctypes.byref(handle), ptx(size))
    return handle


def function_of(handle):
    function = P()
    must("cuModuleGetFunction", ctypes.byref(function), handle, b"kernel%d" % number)
    return function


def launch(function, stream=None):
    argument = ctypes.c_uint64(0)
    arguments = (P * 1)(ctypes.addressof(argument))
    return call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)


def device_memory(size=1 << 20):
    address = ctypes.c_uint64()
    must("cuMemAlloc_v2", ctypes.byref(address), SIZE(size))
    return address


def host_memory(size=1 << 20):
    address = P()
    must("cuMemHostAlloc", ctypes.byref(address), SIZE(size), 0)
    return address


def stream_of(flags=1):
    stream = P()
    must("cuStreamCreate", ctypes.byref(stream), flags)
    return stream


def event_of():
    event = P()
    must("cuEventCreate", ctypes.byref(event), 2)
    return event


def graph_of(function):
    graph, stream = P(), stream_of()
    must("cuStreamBeginCapture_v2", stream, 2)
    if launch(function, stream):
        raise SystemExit("launch in a capture")
    must("cuStreamEndCapture", stream, ctypes.byref(graph))
    return graph


def executable(graph):
    made = P()
    must("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_ulonglong(0))
    return made


class Location(ctypes.Structure):
    _fields_ = [("type", INT), ("id", INT)]


class Allocation(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", INT), ("handles", INT), ("location", Location), ("metadata", P), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", Location), ("flags", INT)]


class Pool(ctypes.Structure):  # CUmemPoolProps
    _fields_ = [("type", INT), ("handles", INT), ("location", Location), ("security", P), ("most", SIZE),
                ("reserved", ctypes.c_ubyte * 56)]


DEVICE = Location(1, 0)
GRANULE = 2 << 20


def create(made):
    """cuMemCreate of a granule that may have a file descriptor."""
    return call("cuMemCreate", ref(made), SIZE(GRANULE), ref(Allocation(1, 1, DEVICE)), ctypes.c_ulonglong(0))


def created():
    made = ctypes.c_uint64()
    if create(made):
        raise SystemExit("cuMemCreate")
    return made


def reserved():
    address = ctypes.c_uint64()
    must("cuMemAddressReserve", ref(address), SIZE(GRANULE), SIZE(0), ctypes.c_uint64(0), ctypes.c_ulonglong(0))
    return address


def map_at(address, memory):
    return call("cuMemMap", address, SIZE(GRANULE), SIZE(0), memory, ctypes.c_ulonglong(0))


def allow(address):
    return call("cuMemSetAccess", address, SIZE(GRANULE), ref(Access(DEVICE, 3)), SIZE(1))


def mapped(accessible=True):
    address, memory = reserved(), created()
    if map_at(address, memory) or (accessible and allow(address)):
        raise SystemExit("cuMemMap")
    return address, memory


def exported():
    descriptor = INT()
    must("cuMemExportToShareableHandle", ref(descriptor), created(), 1, ctypes.c_ulonglong(0))
    return descriptor


def registered():
    bytes_ = ctypes.create_string_buffer(1 << 20)
    must("cuMemHostRegister_v2", bytes_, SIZE(1 << 20), 0)
    return bytes_


def library():
    handle = P()
    must("cuLibraryLoadData", ref(handle), ptx(), None, None, 0, None, None, 0)
    return handle


def kernel_of(handle):
    kernel = P()
    must("cuLibraryGetKernel", ref(kernel), handle, b"kernel%d" % number)
    return kernel


def linking():
    state, text = P(), ptx()
    must("cuLinkCreate_v2", 0, None, None, ref(state))
    must("cuLinkAddData_v2", state, 1, text, SIZE(len(text) + 1), b"a", 0, None, None)
    return state


def cubin():
    bytes_, size = P(), SIZE()
    must("cuLinkComplete", linking(), ref(bytes_), ref(size))
    return ctypes.string_at(bytes_, size.value)


def pool():
    handle = P()
    must("cuMemPoolCreate", ref(handle), ref(Pool(1, 0, DEVICE)))
    return handle


def pool_memory():
    address = ctypes.c_uint64()
    must("cuMemAllocAsync", ref(address), SIZE(1 << 20), None)
    return address


def product(name, *sonames):
    """The first of NVIDIA's libraries that is there (LD_LIBRARY_PATH); what runs without it is tried all the same."""
    for soname in sonames:
        try:
            return ctypes.CDLL(soname)
        except OSError:
            pass
    raise SystemExit(f"no {name}")


def cublas():
    return product("cuBLAS", "libcublas.so.13", "libcublas.so.12")


def cudnn():
    return product("cuDNN", "libcudnn.so.9", "libcudnn.so.8")


def handle_of(create):
    handle = P()
    if create(ref(handle)):
        raise SystemExit("no handle")
    return handle


def context_of():
    """One more context; the one that was current is so again."""
    made, before = P(), P()
    must("cuCtxGetCurrent", ref(before))
    must("cuCtxCreate_v2", ref(made), 0, 0)
    must("cuCtxSetCurrent", before)
    return made


def used(handle=None):
    function = function_of(handle or module())
    if launch(function):
        raise SystemExit("launch")
    must("cuCtxSynchronize")
    return function


ref = ctypes.byref
NULL_ARGUMENT = ctypes.c_uint64(0)
# What each call needs is made before the host function is; then the call alone.
CASES = {
    "cuCtxSynchronize": lambda: lambda: call("cuCtxSynchronize"),
    "cuModuleLoadData, PTX": lambda: (lambda text: lambda: call("cuModuleLoadData", ref(P()), text))(ptx()),
    "cuModuleLoadData, 64 MiB of variables":
        lambda: (lambda text: lambda: call("cuModuleLoadData", ref(P()), text))(ptx(64 << 20)),
    "cuLibraryLoadData": lambda: (lambda text: lambda: call(
        "cuLibraryLoadData", ref(P()), text, None, None, 0, None, None, 0))(ptx()),
    "cuModuleGetFunction": lambda: (lambda m: lambda: call(
        "cuModuleGetFunction", ref(P()), m, b"kernel%d" % number))(module()),
    "cuModuleGetGlobal": lambda: (lambda m: lambda: call(
        "cuModuleGetGlobal_v2", ref(ctypes.c_uint64()), ref(SIZE()), m, b"variable%d" % number))(module()),
    "cuModuleUnload": lambda: (lambda m: lambda: call("cuModuleUnload", m))(module()),
    "cuModuleUnload of one that ran": lambda: (lambda m: (used(m), lambda: call("cuModuleUnload", m))[1])(module()),
    "cuFuncGetAttribute, first": lambda: (lambda f: lambda: call("cuFuncGetAttribute", ref(INT()), 4, f))(
        function_of(module())),
    "cuFuncSetAttribute, first": lambda: (lambda f: lambda: call("cuFuncSetAttribute", f, 8, 1024))(
        function_of(module())),
    "cuFuncLoad": lambda: (lambda f: lambda: call("cuFuncLoad", f))(function_of(module())),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda: (lambda f: lambda: call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", ref(INT()), f, 32, SIZE(0)))(function_of(module())),
    "cuLaunchKernel, first": lambda: (lambda f, s: lambda: launch(f, s))(function_of(module()), stream_of()),
    "cuLaunchKernel, first on the NULL stream": lambda: (lambda f: lambda: launch(f))(function_of(module())),
    "cuLaunchKernel": lambda: (lambda f, s: lambda: launch(f, s))(used(), stream_of()),
    "cuMemAlloc 1 MiB": lambda: lambda: call("cuMemAlloc_v2", ref(ctypes.c_uint64()), SIZE(1 << 20)),
    "cuMemAlloc 1 GiB": lambda: lambda: call("cuMemAlloc_v2", ref(ctypes.c_uint64()), SIZE(1 << 30)),
    "cuMemFree": lambda: (lambda a: lambda: call("cuMemFree_v2", a))(device_memory()),
    "cuMemHostAlloc": lambda: lambda: call("cuMemHostAlloc", ref(P()), SIZE(1 << 20), 0),
    "cuMemFreeHost": lambda: (lambda a: lambda: call("cuMemFreeHost", a))(host_memory()),
    "cuMemHostRegister": lambda: (lambda b: lambda: call("cuMemHostRegister_v2", b, SIZE(1 << 20), 0))(
        ctypes.create_string_buffer(1 << 20)),
    "cuMemGetInfo": lambda: lambda: call("cuMemGetInfo_v2", ref(SIZE()), ref(SIZE())),
    "cuMemsetD8Async": lambda: (lambda a, s: lambda: call("cuMemsetD8Async", a, 0, SIZE(1024), s))(
        device_memory(), stream_of()),
    "cuMemcpyHtoDAsync of pageable, 1 MiB": lambda: (lambda a, b, s: lambda: call(
        "cuMemcpyHtoDAsync_v2", a, b, SIZE(1 << 20), s))(device_memory(), ctypes.create_string_buffer(1 << 20), stream_of()),
    "cuMemAllocAsync": lambda: (lambda s: lambda: call("cuMemAllocAsync", ref(ctypes.c_uint64()), SIZE(1 << 20), s))(
        stream_of()),
    "cuStreamCreate": lambda: lambda: call("cuStreamCreate", ref(P()), 1),
    "cuStreamDestroy": lambda: (lambda s: lambda: call("cuStreamDestroy_v2", s))(stream_of()),
    "cuEventCreate": lambda: lambda: call("cuEventCreate", ref(P()), 2),
    "cuEventDestroy": lambda: (lambda e: lambda: call("cuEventDestroy_v2", e))(event_of()),
    "cuGraphInstantiate": lambda: (lambda g: lambda: call(
        "cuGraphInstantiateWithFlags", ref(P()), g, ctypes.c_ulonglong(0)))(graph_of(used())),
    "cuGraphInstantiate of a kernel never run": lambda: (lambda g: lambda: call(
        "cuGraphInstantiateWithFlags", ref(P()), g, ctypes.c_ulonglong(0)))(graph_of(function_of(module()))),
    "cuGraphUpload": lambda: (lambda g, s: lambda: call("cuGraphUpload", g, s))(
        executable(graph_of(used())), stream_of()),
    "cuGraphLaunch, first": lambda: (lambda g, s: lambda: call("cuGraphLaunch", g, s))(
        executable(graph_of(used())), stream_of()),
    "cuGraphExecDestroy": lambda: (lambda g: lambda: call("cuGraphExecDestroy", g))(executable(graph_of(used()))),
    "cuCtxSetLimit, printf": lambda: lambda: call("cuCtxSetLimit", 1, SIZE(2 << 20)),
    "cuCtxSetLimit, stack": lambda: lambda: call("cuCtxSetLimit", 0, SIZE(16384)),
    "cuMemPoolTrimTo": lambda: (lambda p: (must("cuDeviceGetDefaultMemPool", ref(p), 0), lambda: call(
        "cuMemPoolTrimTo", p, SIZE(0)))[1])(P()),
    "cuModuleLoadData, cubin": lambda: (lambda image: lambda: call("cuModuleLoadData", ref(P()), image))(cubin()),
    "cuLinkComplete": lambda: (lambda s: lambda: call("cuLinkComplete", s, ref(P()), ref(SIZE())))(linking()),
    "cuLibraryLoadData, cubin": lambda: (lambda image: lambda: call(
        "cuLibraryLoadData", ref(P()), image, None, None, 0, None, None, 0))(cubin()),
    "cuLibraryGetKernel": lambda: (lambda l: lambda: call(
        "cuLibraryGetKernel", ref(P()), l, b"kernel%d" % number))(library()),
    "cuKernelGetFunction, first": lambda: (lambda k: lambda: call(
        "cuKernelGetFunction", ref(P()), k))(kernel_of(library())),
    "cuKernelGetAttribute, first": lambda: (lambda k: lambda: call(
        "cuKernelGetAttribute", ref(INT()), 4, k, 0))(kernel_of(library())),
    "cuLaunchKernel of a CUkernel, first": lambda: (lambda k, s: lambda: launch(k, s))(
        kernel_of(library()), stream_of()),
    "cuLibraryGetGlobal, first": lambda: (lambda l: lambda: call(
        "cuLibraryGetGlobal", ref(ctypes.c_uint64()), ref(SIZE()), l, b"variable%d" % number))(library()),
    "cuLibraryGetModule, first": lambda: (lambda l: lambda: call("cuLibraryGetModule", ref(P()), l))(library()),
    "cuLibraryUnload": lambda: (lambda l: lambda: call("cuLibraryUnload", l))(library()),
    "cuLibraryUnload of one that ran": lambda: (lambda l: (
        must("cuLaunchKernel", kernel_of(l), 1, 1, 1, 1, 1, 1, 0, None,
            (P * 1)(ctypes.addressof(NULL_ARGUMENT)), None),
        lambda: call("cuLibraryUnload", l))[1])(library()),
    "cuMemCreate": lambda: lambda: create(ctypes.c_uint64()),
    "cuMemMap": lambda: (lambda a, m: lambda: map_at(a, m))(reserved(), created()),
    "cuMemSetAccess": lambda: (lambda a: lambda: allow(a))(mapped(False)[0]),
    "cuMemUnmap": lambda: (lambda a: lambda: call("cuMemUnmap", a, SIZE(GRANULE)))(mapped()[0]),
    "cuMemRelease, mapped": lambda: (lambda m: lambda: call("cuMemRelease", m))(mapped()[1]),
    "cuMemRelease, mapped nowhere": lambda: (lambda m: lambda: call("cuMemRelease", m))(created()),
    "cuMemExportToShareableHandle": lambda: (lambda m: lambda: call(
        "cuMemExportToShareableHandle", ref(INT()), m, 1, ctypes.c_ulonglong(0)))(created()),
    "cuMemImportFromShareableHandle": lambda: (lambda d: lambda: call(
        "cuMemImportFromShareableHandle", ref(ctypes.c_uint64()), P(d.value), 1))(exported()),
    "cuMemAddressReserve": lambda: lambda: call(
        "cuMemAddressReserve", ref(ctypes.c_uint64()), SIZE(GRANULE), SIZE(0), ctypes.c_uint64(0), ctypes.c_ulonglong(0)),
    "cuMemAddressFree": lambda: (lambda a: lambda: call("cuMemAddressFree", a, SIZE(GRANULE)))(reserved()),
    "cuMemHostUnregister": lambda: (lambda b: lambda: call("cuMemHostUnregister", b))(registered()),
    "cuMemFreeAsync": lambda: (lambda a, s: lambda: call("cuMemFreeAsync", a, s))(pool_memory(), stream_of()),
    "cuMemPoolCreate": lambda: lambda: call("cuMemPoolCreate", ref(P()), ref(Pool(1, 0, DEVICE))),
    "cuMemPoolDestroy": lambda: (lambda p: lambda: call("cuMemPoolDestroy", p))(pool()),
    "cuIpcGetMemHandle": lambda: (lambda a: lambda: call(
        "cuIpcGetMemHandle", ctypes.create_string_buffer(64), a))(device_memory()),
    "cuGraphDestroy": lambda: (lambda g: lambda: call("cuGraphDestroy", g))(graph_of(used())),
    "a capture": lambda: (lambda f: lambda: 0 if graph_of(f) else 1)(used()),
    "cuCtxCreate": lambda: lambda: call("cuCtxCreate_v2", ref(P()), 0, 0),
    "cuCtxDestroy": lambda: (lambda c: lambda: call("cuCtxDestroy_v2", c))(context_of()),
    "cublasCreate": lambda: (lambda b: lambda: b.cublasCreate_v2(ref(P())))(cublas()),
    "cublasDestroy": lambda: (lambda b, h: lambda: b.cublasDestroy_v2(h))(cublas(), handle_of(cublas().cublasCreate_v2)),
    "cudnnCreate": lambda: (lambda d: lambda: d.cudnnCreate(ref(P())))(cudnn()),
    "cudnnDestroy": lambda: (lambda d, h: lambda: d.cudnnDestroy(h))(cudnn(), handle_of(cudnn().cudnnCreate)),
    "cuCtxGetStreamPriorityRange": lambda: lambda: call("cuCtxGetStreamPriorityRange", ref(INT()), ref(INT())),
}


def main():
    context = P()
    must("cuInit", 0)
    must("cuDevicePrimaryCtxRetain", ref(context), 0)
    must("cuCtxSetCurrent", context)
    for name, prepare in CASES.items():
        try:
            tried = prepare()
        except (SystemExit, AttributeError) as error:
            print(f"{name:52} cannot be prepared: {error}")
            continue
        must("cuCtxSynchronize")
        must("cuLaunchHostFunc", stream_of(), sleep, None)
        time.sleep(0.05)
        begun = time.monotonic()
        try:
            status = tried()
        except (SystemExit, AttributeError) as error:
            status = error
        took = time.monotonic() - begun
        print(f"{name:52} {'waits' if took > 0.3 else 'returns'} {took * 1e3:8.1f} ms  {status}", flush=True)
        must("cuCtxSetCurrent", context)
        must("cuCtxSynchronize")


if __name__ == "__main__":
    main()
