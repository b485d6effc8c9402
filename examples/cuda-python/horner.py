#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kernel in CUDA C++ by cuda.bindings: compiled to PTX by NVRTC, loaded and launched by the driver's API."""
import argparse
import ctypes

import numpy
from cuda.bindings import driver, nvrtc

TEXT = rb"""extern "C" __global__ void horner(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = ((0.5f * x[i] - 1) * x[i] + 2) * x[i] - 0.25f;
}"""


def right(got):
    if int(got[0]):
        raise RuntimeError(str(got[0]))
    return got[1] if len(got) == 2 else got[1:]


def numbers(small):
    return numpy.random.RandomState(3).standard_normal(3000 if small else 3_000_000).astype(numpy.float32)


def summed_up(y):
    return {"first": float(y[0]), "sum": float(y.astype(numpy.float64).sum()), "largest": float(y.max())}


def compiled():
    program = right(nvrtc.nvrtcCreateProgram(TEXT, b"horner.cu", 0, [], []))
    right(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"]))
    text = b" " * right(nvrtc.nvrtcGetPTXSize(program))
    right(nvrtc.nvrtcGetPTX(program, text))
    return right(driver.cuModuleGetFunction(right(driver.cuModuleLoadData(text)), b"horner"))


def build(device=None, small=False, show=False):
    x = numbers(small)
    right(driver.cuInit(0))
    right(driver.cuCtxSetCurrent(right(driver.cuDevicePrimaryCtxRetain(right(driver.cuDeviceGet(0))))))
    kernel = compiled()

    def run():
        memory, y = right(driver.cuMemAlloc(2 * x.nbytes)), numpy.zeros_like(x)
        right(driver.cuMemcpyHtoD(memory, x.ctypes.data, x.nbytes))
        right(driver.cuLaunchKernel(kernel, (x.size + 255) // 256, 1, 1, 256, 1, 1, 0, 0,
                                    ((int(memory), int(memory) + x.nbytes, x.size),
                                     (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)), 0))
        right(driver.cuMemcpyDtoH(y.ctypes.data, int(memory) + x.nbytes, x.nbytes))
        right(driver.cuMemFree(memory))
        return summed_up(y)

    return run


def reference(small=False):
    """The same by NumPy, on the CPU."""
    x = numbers(small)
    return summed_up(((0.5 * x - 1) * x + 2) * x - 0.25)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="little data")
    options = parser.parse_args()
    for name, value in build(small=options.small)().items():
        print(f"{name}: {value:.6f}, on the CPU {reference(options.small)[name]:.6f}")
