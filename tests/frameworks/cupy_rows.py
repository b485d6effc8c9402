# SPDX-License-Identifier: Apache-2.0
"""CuPy: arrays, kernels, and the libraries behind cupy.linalg, fft, random and sparse, a row each."""
import os
import sys

import answers
import cupy
import numpy
from answers import answer

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples", "cupy"))
X = cupy.asarray(numpy.random.RandomState(3).standard_normal((96, 96)).astype(numpy.float32))


@answer
def elementwise():
    return cupy.sin(X) * 2 + cupy.tanh(X)


@answer
def reductions():
    return X.sum(), X.max(axis=0), X.argmax(axis=1), X.mean(), X.std(axis=1)


@answer
def sorts_and_scans():
    return cupy.sort(X, axis=1), cupy.argsort(X[0]), cupy.cumsum(X), cupy.unique(cupy.round(X)), cupy.partition(X[1], 9)


@answer
def indexing():
    y = X.copy()
    y[::2, 1::3] = -1
    y[y > 1] = 0
    return y, y[cupy.arange(10), cupy.arange(10)], cupy.take(X, cupy.array([3, 1]), axis=1)


@answer
def types():
    return [X.astype(kind) for kind in ("f2", "f8", "i4", "u1", "?", "c8", "c16")]


@answer
def products():
    return X @ X, X.astype("f8") @ X.astype("f8"), X.astype("c8") @ X.astype("c8"), X[0] @ X, cupy.tensordot(X, X)


@answer
def product_half():
    return X.astype("f2") @ X.astype("f2")


@answer
def batched_product():
    y = X.reshape(6, 16, 96)
    return cupy.matmul(y, y.transpose(0, 2, 1))


@answer
def solve():
    return cupy.linalg.solve(X, X[:, :3]), cupy.linalg.inv(X)


@answer
def decompositions():
    s = X @ X.T + 100 * cupy.eye(96, dtype="f4")
    return cupy.linalg.cholesky(s), cupy.linalg.qr(X), cupy.linalg.svd(X), cupy.linalg.eigh(s), cupy.linalg.det(X / 10)


@answer
def least_squares():
    return cupy.linalg.lstsq(X[:, :20], X[:, 20:24], rcond=None)[0], cupy.linalg.pinv(X[:, :20])


@answer
def fft():
    return cupy.fft.fft(X), cupy.fft.rfft2(X), cupy.fft.irfft(X), cupy.fft.fftn(X.reshape(6, 16, 96))


@answer
def random():
    cupy.random.seed(5)
    return (cupy.random.rand(1000), cupy.random.randn(1000), cupy.random.randint(0, 100, 1000),
            cupy.random.permutation(1000), cupy.random.default_rng(5).standard_normal(1000))


@answer
def sparse():
    from cupyx.scipy import sparse as sp
    y = sp.csr_matrix(cupy.where(X > 1, X, 0))
    return (y @ X, y @ X[0], (y @ y).toarray(), y.tocsc().toarray(), y.tocoo().toarray(), y.T.toarray(), (y + y).toarray(),
            y.sum(axis=0), y.multiply(X).toarray())


@answer
def sparse_solve():
    from cupyx.scipy import sparse as sp
    from cupyx.scipy.sparse import linalg
    y = sp.csr_matrix(cupy.where(X > 1, X, 0) + 20 * cupy.eye(96, dtype="f4"))
    return linalg.spsolve(y, X[0]), linalg.cg(y @ y.T, X[0])[0], linalg.spsolve_triangular(sp.tril(y).tocsr(), X[0])


@answer
def raw_kernel():
    kernel = cupy.RawKernel(r'extern "C" __global__ void twice(float *x, int n)'
                            r'{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }', "twice")
    y = X.copy()
    kernel((36,), (256,), (y, y.size))
    return y


@answer
def raw_module():
    module = cupy.RawModule(code=r'__constant__ float factor; extern "C" __global__ void by(float *x)'
                            r'{ extern __shared__ float s[]; s[threadIdx.x] = x[threadIdx.x] * factor; __syncthreads();'
                            r' x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; }')
    at = module.get_global("factor")
    cupy.ndarray((1,), "f4", at)[:] = 3
    y = X[0].copy()
    module.get_function("by")((1,), (96,), (y,), shared_mem=96 * 4)
    return y


@answer
def own_kernels():
    squared = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "row_norm")
    return squared(X, X.T), norm(X, axis=1)


@answer
def fused():
    return cupy.fuse(kernel_name="fused_row")(lambda x, y: cupy.sqrt(cupy.absolute(x * y + 1)) - x)(X, X.T)


@answer
def streams_and_events():
    one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()
    with one:
        y = X * 2
        event = one.record()
    two.wait_event(event)
    with two:
        z = y + 1
    two.synchronize()
    return z


@answer
def graph():
    stream = cupy.cuda.Stream(non_blocking=True)
    y = cupy.zeros(96, dtype="f4")
    with stream:
        cupy.add(y, X[0], out=y)  # compiled before the capture
        stream.begin_capture()
        cupy.add(y, X[0], out=y)
        captured = stream.end_capture()
        for _ in range(5):
            captured.launch()
    stream.synchronize()
    return y


@answer
def pools():
    pool = cupy.get_default_memory_pool()
    big = cupy.zeros(1 << 22, dtype="f4")
    used = pool.used_bytes() > 0
    del big
    pool.free_all_blocks()
    pinned = cupy.cuda.alloc_pinned_memory(4096)
    host = numpy.frombuffer(pinned, "f4", 96)
    X[1].get(out=host)
    return used, host.copy()


@answer
def asynchronous_allocator():
    with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        return cupy.ones(5000).sum()


@answer
def managed():
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        return cupy.arange(1000).sum()


@answer
def texture():
    from cupy.cuda import texture as t
    array = t.CUDAarray(t.ChannelFormatDescriptor(32, 0, 0, 0, cupy.cuda.runtime.cudaChannelFormatKindFloat), 96, 96)
    array.copy_from(X)
    described = t.TextureDescriptor((cupy.cuda.runtime.cudaAddressModeClamp,) * 2,
                                    cupy.cuda.runtime.cudaFilterModeLinear, cupy.cuda.runtime.cudaReadModeElementType)
    found = t.TextureObject(t.ResourceDescriptor(cupy.cuda.runtime.cudaResourceTypeArray, cuArr=array), described)
    kernel = cupy.RawKernel(r'extern "C" __global__ void read(cudaTextureObject_t t, float *out)'
                            r'{ out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.25f, 3.5f); }', "read")
    out = cupy.zeros(96, dtype="f4")
    kernel((1,), (96,), (found, out))
    return out


@answer
def scipy_functions():
    import cupyx.scipy.ndimage
    import cupyx.scipy.signal
    import cupyx.scipy.special
    return (cupyx.scipy.ndimage.gaussian_filter(X, 2), cupyx.scipy.ndimage.convolve(X, X[:3, :3]),
            cupyx.scipy.signal.convolve2d(X, X[:5, :5]), cupyx.scipy.special.erf(X), cupyx.scipy.special.gammaln(abs(X)))


@answer
def error_then_work():
    try:
        cupy.zeros(1 << 50, dtype="u1")
        got = "allocated"
    except Exception as error:
        got = type(error).__name__
    return got, X.sum()


@answer
def prices():
    import elementwise as example
    return example.build(small=True)()


answers.main("CuPy", cupy.__version__)
