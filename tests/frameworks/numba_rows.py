# SPDX-License-Identifier: Apache-2.0
"""Numba's CUDA target: kernels in Python, a row each."""
import answers
import numba
import numpy
from answers import answer
from numba import cuda

X = numpy.random.RandomState(3).standard_normal(5000).astype(numpy.float32)


@cuda.jit(device=True)
def twice(x):
    return x * 2


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = a * x[i] + twice(y[i])


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, min(max(int(x[i] * 4) + 16, 0), 31), 1)


@cuda.jit
def block_sums(x, out):
    shared = cuda.shared.array(256, numba.float32)
    i = cuda.grid(1)
    shared[cuda.threadIdx.x] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 128
    while step:
        if cuda.threadIdx.x < step:
            shared[cuda.threadIdx.x] += shared[cuda.threadIdx.x + step]
        cuda.syncthreads()
        step //= 2
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = shared[0]


@answer
def kernel():
    out = numpy.zeros_like(X)
    saxpy[20, 256](numpy.float32(3), X, X[::-1].copy(), out)
    return out


@answer
def device_arrays():
    x = cuda.to_device(X)
    out = cuda.device_array_like(x)
    saxpy[20, 256](numpy.float32(3), x, x, out)
    return out.copy_to_host()


@answer
def atomics():
    bins = numpy.zeros(32, numpy.int32)
    histogram[20, 256](X, bins)
    return bins


@answer
def shared_memory():
    out = numpy.zeros(20, numpy.float32)
    block_sums[20, 256](X, out)
    return out


@answer
def streams():
    stream = cuda.stream()
    with cuda.pinned(X):
        x = cuda.to_device(X, stream=stream)
        out = cuda.device_array_like(x, stream=stream)
        saxpy[20, 256, stream](numpy.float32(1), x, x, out)
        got = out.copy_to_host(stream=stream)
        stream.synchronize()
    return got


@answer
def events():
    start, end = cuda.event(), cuda.event()
    start.record()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(start, end) >= 0


@answer
def reduced():
    return float(cuda.reduce(lambda a, b: a + b)(X.astype(numpy.float64)))


@answer
def vectorized():
    @numba.vectorize(["float32(float32, float32)"], target="cuda")
    def more(a, b):
        return a * b + 1
    return more(X, X)


@answer
def cooperative_groups():
    @cuda.jit
    def all_meet(out):
        out[cuda.grid(1)] = 1
        cuda.cg.this_grid().sync()
        if cuda.grid(1) == 0:
            total = 0
            for one in range(out.size):
                total += out[one]
            out[0] = total

    out = cuda.to_device(numpy.zeros(512, numpy.int64))
    all_meet[4, 128](out)
    return out.copy_to_host()


@answer
def random_numbers():
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def draw(states, out):
        out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.grid(1))

    out = numpy.zeros(256, numpy.float32)
    draw[2, 128](create_xoroshiro128p_states(256, seed=1), out)
    return out


@answer
def managed_memory():
    both = cuda.managed_array(1000, numpy.float32)
    both[:] = X[:1000]
    saxpy[4, 256](numpy.float32(2), both, both, both)
    cuda.synchronize()
    return both[:500].copy()


answers.main("Numba", numba.__version__)
