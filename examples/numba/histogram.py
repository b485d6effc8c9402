#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts random numbers by Numba's CUDA target: a kernel in Python with atomics and shared memory."""
import argparse

import numba
import numpy
from numba import cuda

BINS, THREADS = 64, 128


@cuda.jit
def count(values, bins):
    mine = cuda.shared.array(BINS, numba.int32)
    if cuda.threadIdx.x < BINS:
        mine[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, min(int(values[i] * BINS), BINS - 1), 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < BINS:
        cuda.atomic.add(bins, cuda.threadIdx.x, mine[cuda.threadIdx.x])


def numbers(small):
    return numpy.random.RandomState(3).rand(5000 if small else 5_000_000).astype(numpy.float32)


def summed_up(bins):
    return {"largest": float(bins.max()), "spread": float(bins.std()), "weighted": float((bins * numpy.arange(BINS)).sum())}


def build(device=None, small=False, show=False):
    values = cuda.to_device(numbers(small))

    def run():
        bins = cuda.to_device(numpy.zeros(BINS, numpy.int32))
        count[16, THREADS](values, bins)
        return summed_up(bins.copy_to_host())

    return run


def reference(small=False):
    """The same by NumPy, on the CPU."""
    return summed_up(numpy.bincount(numpy.minimum((numbers(small) * BINS).astype(int), BINS - 1), minlength=BINS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="little data")
    options = parser.parse_args()
    for name, value in build(small=options.small)().items():
        print(f"{name}: {value:.6f}, on the CPU {reference(options.small)[name]:.6f}")
