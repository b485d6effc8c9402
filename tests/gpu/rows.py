#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What single calls and frameworks answer, a line `CASE WHAT VALUE` each: tests/gpu/rows.sh runs it
natively and through us, and compares.

    rows.py calls|torch|jax|cupy
"""
import ctypes
import subprocess
import sys

BAD_PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry k()
{ .reg .b32 %r<3>;
  frobnicate.u32 %r1, %r2;
  ret; }
"""
GOOD_PTX = BAD_PTX.replace(b"frobnicate", b"mov")


def tell(case, what, value):
    print(case, what, str(value).replace(" ", "_"), flush=True)


def calls():
    cuda = ctypes.CDLL("libcuda.so.1")
    version = ctypes.c_int(0)
    for name in ("libcublas.so.13", "libcublas.so.12"):
        try:
            blas = ctypes.CDLL(name)
        except OSError:
            continue
        tell("cublas", f"GetVersion-of-NULL-{name}", blas.cublasGetVersion_v2(None, ctypes.byref(version)))
        tell("cublas", f"has-a-version-{name}", version.value >= 120000)
        tell("cublas", f"GetVersion-NULL-NULL-{name}", blas.cublasGetVersion_v2(None, None))
    context, device, module = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
    assert not cuda.cuInit(0)
    assert not cuda.cuDeviceGet(ctypes.byref(device), 0)
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    assert not cuda.cuCtxSetCurrent(context)
    log = ctypes.create_string_buffer(4096)
    options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
    for name, text in (("bad", BAD_PTX), ("good", GOOD_PTX), ("empty", b""), ("garbage", b"no PTX at all"),
                       ("no-version", GOOD_PTX[GOOD_PTX.index(b"\n") + 1:]),
                       ("new-version", GOOD_PTX.replace(b"7.0", b"99.0"))):
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 4096)
        log.value = b""
        tell("ptx", f"cuModuleLoadDataEx-{name}",
             cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values))
        if name in ("bad", "good"):
            tell("ptx", f"a-log-{name}", bool(log.value))
        tell("ptx", f"cuModuleLoadData-{name}", cuda.cuModuleLoadData(ctypes.byref(module), text))


ASSERTION = """
import torch
x = torch.arange(10, device="cuda")
try:
    x[torch.tensor([3, 99], device="cuda")].cpu()
    print("nothing")
except Exception as error:
    print(type(error).__name__, "device-side assert" in str(error))
for name, what in (("product", lambda: torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")),
                   ("empty", lambda: torch.empty(1 << 28, device="cuda")),
                   ("synchronize", torch.cuda.synchronize),
                   ("current_device", torch.cuda.current_device),
                   ("device_count", torch.cuda.device_count),
                   ("memory_allocated", torch.cuda.memory_allocated),
                   ("current_stream", torch.cuda.current_stream),
                   ("mem_get_info", torch.cuda.mem_get_info),
                   ("Event", lambda: torch.cuda.Event().record()),
                   ("empty_cache", torch.cuda.empty_cache)):
    try:
        what()
        print(name, "fine")
    except Exception as error:
        print(name, type(error).__name__)
print("at-the-end")
"""


def torch():
    import torch
    got = subprocess.run([sys.executable, "-c", ASSERTION], capture_output=True, text=True, timeout=200)
    for line in got.stdout.splitlines():
        tell("torch-assertion", *line.split(" ", 1) if " " in line else (line, "-"))
    tell("torch-assertion", "exit-status", got.returncode)
    tell("torch-assertion", "text-of-the-assertion", "index out of bounds" in got.stdout + got.stderr)
    stream = torch.cuda.Stream()
    source, target = torch.ones(1000), torch.zeros(1000)
    inside = torch.zeros(1000, device="cuda")
    with torch.cuda.stream(stream):
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                inside.copy_(source, non_blocking=True)
                target.copy_(inside, non_blocking=True)
            source.fill_(5)
            graph.replay()
            stream.synchronize()
            tell("torch-capture", "pageable", f"{inside[0].item()},{target[0].item()}")
        except Exception as error:
            tell("torch-capture", "pageable", type(error).__name__)


def jax():
    import jax
    import jax.numpy as jnp
    tell("jax", "platform", jax.devices()[0].platform)
    x = jnp.arange(64 * 64, dtype=jnp.float32).reshape(64, 64) % 7
    tell("jax", "jitted-product", float(jax.jit(lambda a: (a @ a.T).sum())(x)))
    tell("jax", "gradient", float(jax.grad(lambda a: (a * a).sum())(x).sum()))


def cupy():
    import cupy
    x = cupy.arange(1000, dtype=cupy.float32)
    tell("cupy", "sum-of-x-plus-x", float((x + x).sum()))
    kernel = cupy.RawKernel('extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }', "twice")
    kernel((1,), (1000,), (x,))
    tell("cupy", "raw-kernel", float(x.sum()))


if __name__ == "__main__":
    case = sys.argv[1]
    try:
        {"calls": calls, "torch": torch, "jax": jax, "cupy": cupy}[case]()
    except ImportError as error:
        tell(case, "not-installed", error.name)
    except Exception as error:
        tell(case, "error", f"{type(error).__name__}: {str(error)[:80]}")
