# SPDX-License-Identifier: Apache-2.0
"""Measures the first call of each library with a shape that it has not met: first.py FILE leaves there, for each
thing, the round trips of its first and of its second time.  Each has done another shape before, so what a handle
costs is not in it."""
import ctypes
import json
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
P, Z = ctypes.byref, ctypes.c_size_t
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
ONE, ZERO = ctypes.c_float(1), ctypes.c_float(0)
BYTES = 1 << 22
FILE = sys.argv[1]


def do(status):
    if status:
        raise SystemExit(f"first.py: status {status}")


do(cuda.cuInit(0))
do(cuda.cuDevicePrimaryCtxRetain(P(context), 0))
do(cuda.cuCtxSetCurrent(context))
do(cuda.cuMemAlloc_v2(P(memory), Z(BYTES)))
do(cuda.cuMemsetD32_v2(memory, 0, Z(BYTES // 4)))


def at(offset):
    return ctypes.c_void_p(memory.value + offset)


def loaded(name, create):
    """The library and a new handle of it."""
    library, handle = ctypes.CDLL(name), ctypes.c_void_p()
    do(getattr(library, create)(P(handle)))
    return library, handle


cublas, blas = loaded("libcublas.so.13", "cublasCreate_v2")
solver, dense = loaded("libcusolver.so.12", "cusolverDnCreate")
sparse, sparse_handle = loaded("libcusparse.so.12", "cusparseCreate")
lt_library, lt = loaded("libcublasLt.so.13", "cublasLtCreate")
fft = ctypes.CDLL("libcufft.so.12")
COMPUTE_32F, HEURISTIC_BYTES = 68, 96
R32F, INDEX_32, CSR_BASE = 0, 2, 0


def product(n):
    do(cublas.cublasSgemm_v2(blas, 0, 0, n, n, n, P(ONE), at(0), n, at(1 << 20), n, P(ZERO), at(2 << 20), n))


def layer(n):
    made, layout, preference, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    result = ctypes.create_string_buffer(HEURISTIC_BYTES)
    do(lt_library.cublasLtMatmulDescCreate(P(made), COMPUTE_32F, R32F))
    do(lt_library.cublasLtMatrixLayoutCreate(P(layout), R32F, ctypes.c_uint64(n), ctypes.c_uint64(n), ctypes.c_int64(n)))
    do(lt_library.cublasLtMatmulPreferenceCreate(P(preference)))
    do(lt_library.cublasLtMatmulAlgoGetHeuristic(lt, made, layout, layout, layout, layout, preference, 1, result, P(found)))
    do(lt_library.cublasLtMatmul(lt, made, P(ONE), at(0), layout, at(1 << 20), layout, P(ZERO), at(2 << 20), layout, at(2 << 20),
                                 layout, result, None, Z(0), None))
    do(lt_library.cublasLtMatmulPreferenceDestroy(preference))
    do(lt_library.cublasLtMatrixLayoutDestroy(layout))
    do(lt_library.cublasLtMatmulDescDestroy(made))


def transform(n):
    plan = ctypes.c_int()
    do(fft.cufftPlan1d(P(plan), n, 0x29, 1))
    do(fft.cufftExecC2C(plan, at(0), at(0), -1))
    do(fft.cufftDestroy(plan))


def solution(n):
    size = ctypes.c_int()
    do(cuda.cuMemsetD32_v2(memory, 0x3f800000, Z(1)))
    do(solver.cusolverDnSgetrf_bufferSize(dense, n, n, at(0), n, P(size)))
    do(solver.cusolverDnSgetrf(dense, n, n, at(0), n, at(1 << 20), at(2 << 20), at(3 << 20)))
    do(solver.cusolverDnSgetrs(dense, 0, n, 1, at(0), n, at(2 << 20), at(1 << 20), n, at(3 << 20)))


def eigenvalues(n):
    size = ctypes.c_int()
    do(solver.cusolverDnSsyevd_bufferSize(dense, 0, 0, n, at(0), n, at(1 << 19), P(size)))
    do(solver.cusolverDnSsyevd(dense, 0, 0, n, at(0), n, at(1 << 19), at(1 << 20), size, at(3 << 20)))


def sparse_product(n):
    matrix, x, y, size = (ctypes.c_void_p() for _ in range(4))
    size = Z()
    do(sparse.cusparseCreateCsr(P(matrix), ctypes.c_int64(n), ctypes.c_int64(n), ctypes.c_int64(0), at(0), at(1 << 20),
                                at(2 << 20), INDEX_32, INDEX_32, CSR_BASE, R32F))
    do(sparse.cusparseCreateDnVec(P(x), ctypes.c_int64(n), at(1 << 19), R32F))
    do(sparse.cusparseCreateDnVec(P(y), ctypes.c_int64(n), at(1 << 18), R32F))
    do(sparse.cusparseSpMV_bufferSize(sparse_handle, 0, P(ONE), matrix, x, P(ZERO), y, R32F, 0, P(size)))
    do(sparse.cusparseSpMV(sparse_handle, 0, P(ONE), matrix, x, P(ZERO), y, R32F, 0, at(3 << 20)))
    for one, drop in ((x, "DnVec"), (y, "DnVec"), (matrix, "SpMat")):
        do(getattr(sparse, f"cusparseDestroy{drop}")(one))


def cost(thing, n):
    part = FILE + ".part"
    do(cuda.vcuda_stats_begin())
    thing(n)
    do(cuda.vcuda_stats_end(part.encode()))
    with open(part, encoding="utf-8") as file:
        found = json.load(file)["round_trips"]
    os.unlink(part)
    return found


things = (product, layer, transform, solution, eigenvalues, sparse_product)
for one in things:
    one(32)
    do(cuda.cuCtxSynchronize())
with open(FILE, "w", encoding="utf-8") as out:
    json.dump({one.__name__: [cost(one, 48), cost(one, 48)] for one in things}, out)
do(cuda.cuCtxSynchronize())
