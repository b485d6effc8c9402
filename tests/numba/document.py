#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/COMPATIBILITY.md out of expected.txt, on standard output."""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = """# Other people's programs

(Made by `tests/numba/document.py`; `make generate`.)

`make test-numba` runs the CUDA tests of Numba 0.61.2 (1509, from its wheel, unmodified) through `vcuda run` in front of
an agent on the software GPU. On a machine with a GPU `tests/gpu/numba.sh` runs them natively and
through vcuda and names each test that ends differently. Compilers are the program's own: Numba's LLVM, CUDA 12.4's
libnvvm and CUDA 12.9's NVRTC.

{expected}
"""
EVERY = """Each of them passes, or skips itself (`tests/numba/expected.txt` is empty). On an H200 (2026-11-29 and 2026-12-01) every test that passes natively
passes through vcuda. `test_managed_alloc_driver_undersubscribe` did not pass there natively either: it fills 70 GiB of managed memory and reads all of it by the
CPU, into 70 GiB more of its own, on a machine of 128 GiB. A walk of the CPU through managed memory takes 0.95 s a GB remotely and 0.55 natively."""
SOME = "The tests below need not pass; every other one does, or skips itself."
FRAMEWORKS = """
## Frameworks

The programs of `tests/frameworks`, a row for each thing that people do with a framework: how many rows are answered in front of the
software GPU, which end in an error and in which (`tests/frameworks/record.py`), and what `tests/gpu/frameworks.py` said of them on an
H200. The software GPU runs PTX, which `vcuda run --software` lets frameworks make (docs/SOFTGPU.md); what a package brings as machine code
only it does not run: "no kernel image", `CUDA_ERROR_NO_BINARY_FOR_GPU`. PyTorch's wheels have machine code and no PTX (`torch.cuda.get_arch_list()`: sm_75 to sm_120), so each
of its own kernels ends a row: filling, random numbers, sums, what a compiled graph leaves to it. Kernels of Triton and of torch.compile run, and bitsandbytes' own.

| framework | rows answered on the software GPU | errors there | on an H200 |
|---|---|---|---|
"""
COLLECTION = """
## A collection of programs

HeCBench (github.com/zjin-lcf/HeCBench, commit f27000a5188f, 529 CUDA programs), built with nvcc 13.0 for PTX and run on the software GPU by the
driver that `tests/collection/run.py` was made from, on 2026-11-28. All were tried. Each checks its own numbers or
prints them; most ran with the repeats at 1 and smaller sizes, some with smaller constants in their sources (51 of those that pass).

| | programs |
|---|---|
| end with 0 and complain of nothing | 331 |
| not done in 10 to 60 s on two busy processors, with what was made smaller: by size | 85 |
| need data that the repository does not hold | 77 |
| do not build here: Boost, GDAL, GSL, a Fortran compiler, PyTorch, nvc++, files of a download, more than 120 to 240 s of nvcc | 25 |
| need MPI | 7 |
| `perlin`, `minisweep` ask for more than the 4 GiB that the device has (`VCUDA_SOFTGPU_MEMORY`) | 2 |
| `prefetch` waives itself: managed memory is not reached concurrently | 1 |
| `bscan` votes by `__ballot_sync` with masks that do not name the lane itself, which PTX leaves undefined | 1 |

So of the 335 that ended, 331 pass; `rle` of them only since vectors of 16 bytes move as a whole. Not compared with a GPU: a program that prints numbers without a check may be wrong.
Of the 57 that print numbers without a check, and have a version with OpenMP, that one was run on the CPU with the same arguments (2026-12-01, g++ 12): 11 print the same numbers, `ntt` and `zmddft` do
with as many threads as their teams want, `atan2`, `spm` and `divergence` differ by rounding, as the CPU does not fuse. `aop`, `debayer`, `pns` and `reaction` were not run with so many threads, `f16atomic`'s
is another program; 18 were not done in 25 s, 7 print none after all, 3 lack data, 3 do not build, and of 5 the OpenMP version does not end well.

On two H200s (2026-11-28, `tests/gpu/collection.py`) the same programs were built by the machine's own nvcc and run at their authors' sizes, natively and through
vcuda, ten at once; in the time that there was 319 of the 529 were begun.

| | programs |
|---|---|
| natively and through vcuda the same status and, but for times, the same text | 132 |
| `dwconv1d`: it prints PyTorch's table of operators in the order of the times that they took; its results are the same | 1 |
| `atomicSystemWide`: atomics of host and device on the same memory, which are undefined here (docs/SHIM.md) | 1 |
| `hungarian`: not done in three times the native time; each of its kernels is waited for | 1 |
| `mallocFree`: not done either; mended since, 3.2 times the native time | 1 |
| not done natively in 20 s | 95 |
| need data that the repository does not hold, or do not build there | 70 |
| fail natively | 18 |

On one H200 (2026-11-30, 01:38Z) from the other end of the list, eight at once, 15 s for each: of 251 begun 100 ended natively, and 98 of them the same through vcuda, in a median of 0.97 of the
native time. Not done in three times that were `ssim`, which waits twice in each of 65,536 steps of 80 µs, and `simpleMultiDevice`, whose time is copies from pageable memory; 68 were not done
natively in 15 s, 12 fail there, 71 need data or do not build.
The rest, 278 of 529, six at once, 12 s for each (2026-11-30, 04:58Z): 121 ended natively, and **120 of them the same** through vcuda, in a median of 0.80 of the native time; the other one is `dwconv1d` again.
130 were not done natively in that time, 23 fail there (most for data that they lack), 4 do not build.

NVIDIA's samples (github.com/NVIDIA/cuda-samples, commit c94ff366), built in the same way but at the sizes that their authors chose, two
software GPUs, 90 s for each on two processors at a load of ten, on the same day. Those that draw (OpenGL, Vulkan, EGL, Direct3D) or need NPP, nvJPEG, MPI,
NvSci or nvJitLink were left out; 139 were built. (`jitLto`, which needs nvJitLink, passes on 2026-12-01.)

| | samples |
|---|---|
| end with 0 and say so | 97 |
| not done in 90 s: by size, among them every GEMM by tensor cores and three sparse solvers, which are dense here (docs/SOFTGPU.md) | 28 |
| ask NVRTC for machine code, which the software GPU does not run; since it gives them PTX (2026-12-01) seven pass, and `matrixMul_nvrtc` and `BlackScholes_nvrtc` run on behind 60 s: by size | 9 |
| cuFFT over several GPUs, and its callbacks: refused that day; the former is served since, and both samples pass (2026-12-01) | 3 |
| waive themselves: compressed memory; concurrent managed access | 2 |

Five of the 97 failed before what they found was mended: `cudaSetDeviceFlags(cudaDeviceMapHost)`, the attributes of pools that are shared, a stream that is
destroyed in a capture, the end of a capture into a graph, a texture that ends behind its memory.

On one H200 (2026-11-30, 01:55Z, `tests/gpu/collection.py --under programs --suffix=-sample`, built there) all 140 were begun, and 123 ended natively; six want a second GPU or an older one, one is not
done in 20 s, ten do not build in so many processes at once or lack a header. **115 of the 123 said the same** through vcuda, in a median of 0.38 of the native time. Of the others
three print a name with their process's number; `graphMemoryNodes` and `graphMemoryFootprint` saw that a graph's node did not get the address that another had freed, `ptxjit` had no text of the linker, and
`simpleStreams`, which copies from memory of the flag `Mapped`, was not done in 20 s. These seven were the same at 02:58Z, after the mends (`simpleStreams` in 0.86 of the native time). `simpleCUFFT_callback` links
cuFFT statically, with a runtime whose calls are not all redirected, and fails.

NVIDIA's samples of its libraries (github.com/NVIDIA/CUDALibrarySamples, commit 34377293fb14), those of cuBLAS, cuBLASLt, cuFFT, cuRAND, cuSOLVER, cuSPARSE and
cuSPARSELt, each source with a `main` packed with a Makefile by `tests/collection/pack_library_samples.py`, built with nvcc 13.0 and run through `tests/gpu/collection.py --driver software`
on 2026-11-29, two software GPUs where a sample wants two, 100 s for each. The one that links cuFFT statically was left out.

| | programs | cuBLAS | cuBLASLt | cuFFT | cuRAND | cuSOLVER | cuSPARSE | cuSPARSELt |
|---|---|---|---|---|---|---|---|---|
| in all | 221 | 82 | 20 | 9 | 36 | 37 | 35 | 2 |
| end with 0, alone and through an agent of their own with the same text | 198 | 82 | 10 | 7 | 36 | 29 | 32 | 2 |
| do not build: functions of CUDA 13.1 and of cuBLAS behind 13.1 (products of groups, green contexts) | 6 | | 6 | | | | | |
| ask for cuSOLVER over several GPUs (cusolverMg), which has no front yet | 6 | | | | | 6 | | |
| use operators as LTO-IR or the experimental SpMVOp, which are refused | 2 | | | | | | 2 | |
| have callbacks as LTO-IR, which the software GPU does not run | 2 | | | 2 | | | | |
| multiply numbers of 4 and 8 bits with scale factors that NVIDIA documents for compute capability 10.0; not served | 2 | | 2 | | | | | |
| copy a row with `cudaMemcpy2D` whose pitch is shorter than the row, which an H200 refuses too; with that mended they solve | 2 | | | | | 2 | | |
| not done in 100 s: a thousand products each, to find the best algorithm | 2 | | 2 | | | | | |
| waives itself: compressed memory | 1 | | | | | | 1 | |

Eight of the 198 failed before what they found was mended: cuBLASLt's batches by addresses, complex numbers in planes, tiles of 8-bit integers and scale factors of blocks on the software GPU, its
algorithms by number, `cusparseSpVV` in a capture with its result on the host, `cusparseSpGEMM_estimateMemory` without a place for its second size, `gesvdaStridedBatched` with residuals.
The numbers were compared with what the READMEs show, and with the sources where these have other matrices by now: equal but for the last digits, signs of
singular vectors, orders that were asked not to be sorted, what `syevdx` leaves behind the eigenvalues that it was asked for, and the bits of cuRAND's generators that
the software GPU has of its own ([SOFTGPU.md](SOFTGPU.md#curand)). On two H200s (2026-11-29, 23:31Z, `tests/gpu/collection.py`, two minutes beside other work) 38 of
them ended natively, and all 38 the same through vcuda; 18 were not done natively in 15 s there, 158 were not begun.
"""
SUITES = """
## Suites that others wrote

CuPy 14.2.0's own tests (github.com/cupy/cupy, tag v14.2.0, unmodified), which compare with NumPy and SciPy, with `cupy-cuda13x` 14.2.0 in front of the
software GPU, on 2026-11-29 on two processors at a load of ten to fifteen, two software GPUs. Of each row so many tests were drawn at random, and as many run as 60 to 200 s let;
`cuda_tests` are `test_device`, `test_stream`, `test_driver` and `test_graph`, whole.

| folder of `tests/` | run | pass | skip themselves | fail now, and why |
|---|---|---|---|---|
| `cuda_tests` | 84 | 83 | | `test_stream_thread`, if it is the first to compile: of two threads that load NVRTC at once, one finds it before CuPy's loader has opened its builtins |
| `linalg_tests`, `test_cublas`, `test_cusolver`, `test_lapack`, `cupyx/linalg_tests` | 250 | 250 | | |
| the same and `test_cusparse`, another draw | 700 | 686 | 13 | `test_spgemm_ab` of 10^10 entries: no memory |
| `fft_tests`, `scipy_tests/fft_tests` | 300 | 286 | | 14 with `cb_ver='jit'`: callbacks in LTO-IR, which is machine code of a compiler that the software GPU does not have |
| `random_tests` | 185 | 183 | 1 | 1 not done in 25 s |
| `scipy_tests/sparse_tests`, `test_cusparse` | 193 | 168 | 8 | 14 by SciPy 1.18: it deprecates or lacks what the test uses, and `minres` keeps float32; 3 not done in 25 s |
| `core_tests` without `fusion_tests` | 92 | 86 | 5 | 1 not done in 25 s under that load, done alone; `test_core`, `test_raw` are not collected without an nvcc |
| `sorting_tests`, `statistics_tests` | 66 | 60 | 1 | 4 not done in 25 s: NVRTC takes 60 to 90 s for CUB; `test_argmin_int32_overflow` asks for 32 GiB |
| `creation_tests`, `indexing_tests`, `manipulation_tests`, `math_tests`, `logic_tests`, `binary_tests` | 300 | 300 | | |
| `jit_tests`, `tools_tests` | 71 | 21 | 1 | 43 of `test_thrust`: no nvcc was given; 2 download; 4 not done in 25 s: NVRTC |
| `scipy_tests/ndimage_tests` and, a tenth of them, the next row's | 82 | 80 | 1 | 1 not done in 25 s |
| `scipy_tests/linalg_tests`, `special_tests`, `stats_tests` | 59 | 53 | 4 | `gamma`, `betaln`: SciPy 1.18 answers float32 |

Five things failed before what they found was mended: the picture of a graph without its kernels' names (`test_debug_dot_str`), `cublasScasum` by OpenBLAS's wrong kernel
(`test_asum`), `gesvda` with an array for residuals (24 tests), pointers that are NULL in a sparse matrix without entries (`test_mul_csr`), and a cuSPARSE handle that failed for
good after a lack of memory (88 tests behind `test_spgemm_ab`). A sixth was met on the way: complex dot products that read behind the vector.

On an H200, natively and through vcuda (2026-11-29, 22:37Z to 23:00Z, `tests/gpu/suites.py`; the machine's Python 3.12, PyTorch 2.11.0+cu130, CuPy 14.2.0; PyTorch's tests are those of 2.6.0,
as Debian's source package has them, without their `conftest.py`). NCCL was not allowed at the agent:

| tests | ended both ways | natively | differently through vcuda |
|---|---|---|---|
| PyTorch `test_cuda.py` | 238 | 179 pass, 41 skipped, 15 fail, 3 expected to fail | none |
| PyTorch `test_cuda_trace.py`, `test_numba_integration.py`, `test_cuda_primary_ctx.py` | 23 | 16 pass, 7 skipped | none |
| PyTorch `test_spectral_ops.py`, a third of it in 141 s | 215 | 209 pass, 6 skipped | none |
| PyTorch `test_multiprocessing.py`, 2026-11-30, 03:00Z | 41 | 36 pass, 3 skipped, 2 fail | 1: `test_cuda_ipc_deadlock` gives its two processes 10 s to start and to send a hundred times, under that load; on 2026-11-29 it failed natively only. The three of events between processes, different then, are the same |
| PyTorch `test_sparse.py` (four fifths of it), `test_cuda_sanitizer.py`, `test_dlpack.py`, `test_matmul_cuda.py`, 2026-11-30 | 2200 | 1877 pass, 264 skipped, 58 fail, 1 expected to fail | none |
| PyTorch `test_ops.py`, a twenty-fifth of it, `test_ops_gradients.py`, `test_modules.py`, `test_autograd.py` likewise, 2026-11-30, 05:12Z | 1699 | 1340 pass, 332 skipped, 25 expected to fail, 2 fail | none |
| PyTorch `test_reductions.py`, `test_optim.py`, `test_indexing.py`, `test_sort_and_select.py`, `test_scatter_gather_ops.py`, a quarter of each; `test_tensor_creation_ops.py`, a seventh | 1530 | 1424 pass, 85 skipped, 13 fail, 8 expected to fail | none |
| PyTorch `test_foreach.py`, a fifth of it, 2026-11-30, 09:58Z | 671 | 661 pass, 6 expected to fail, 4 skipped | none (140 of 837 five hours before, when `torch.profiler` saw no kernels: they look for a kernel's name in what it has recorded) |
| PyTorch `profiler/test_profiler.py`, `test_kineto.py`, `test_profiler_tree.py`, `test_memory_profiler.py`, `test_record_function.py`, `test_execution_trace.py`, 2026-11-30, 09:14Z and 09:58Z | 137 | 105 pass, 20 fail, 12 skipped: the tests are of PyTorch 2.6, run with 2.11 | none |
| PyTorch `test_transformers.py`, a seventh of it | 1830 | 1272 pass, 500 skipped, 58 fail, 57 of them without memory | 84 that were not run again, and 60 that ended the same when they were: memory was short, as 12 processes natively and 12 through vcuda shared the GPU |
| JAX 0.11.2: `lax_test.py`, `lax_control_flow_test.py`, `lax_numpy_test.py`, `nn_test.py`, `random_lax_test.py`, `api_test.py`, `array_interoperability_test.py`, `triton_pallas_test.py`, `gpu_ops_test.py`, `mosaic_gpu_test.py`, `gpu_test.py` of Mosaic, 60 of each, and 46 of `linalg_test.py` and `matmul_test.py` (github.com/jax-ml/jax, commit cec06d11, unmodified), 2026-11-30, 05:50Z | 706 | 523 pass, 178 skipped, 5 fail | 1: `test_solve_sylvester9` was not done in 100 s, as 22 processes compiled; the Schur form in it is the CPU's |
| CuPy `cuda_tests`, whole | 886 | 854 pass, 23 fail, 9 skipped | 14: 10 of NCCL, which was not allowed, and 4 of what a pool says that it has, mended since (not run again there) |

NVIDIA's Python packages on 2026-11-30, on two processors at a load of ten to thirteen, two software GPUs, Python 3.12, NVRTC 13.0: the tests of cuda-bindings and cuda-core as of 2026-07-23
(github.com/mdboom/cuda-python, the newest copy at hand; one import in two files changed, as 1.2.2 has that name elsewhere), those of numba-cuda from its wheel, with Numba 0.61.2 and without
nvJitLink, so that it links by the driver. Left out: what wants a build with Cython, cuFile.

| suite | run | pass | skip themselves | fail now, and why |
|---|---|---|---|---|
| cuda-bindings 13.5.0 | 521 | 408 | 72 | 17 of NVML: not served, or not known of a software GPU ([NVML.md](NVML.md)); 12 of nvFatbin want NVRTC's machine code; 10 by the version: names that 13.5 has not (`reserved`), texts of errors; sparse mipmapped arrays; 1 not done in 60 s |
| cuda-core 1.2.2 | 3768 | 3358 | 349 | 1 fails as expected; 28 by the version: what the tests of July expect of enumerations, errors and caches; 17 of NVML, as above; 4 want machine code; 2 wait for checkpoints and 2 for graphs that the device launches, which are refused; 3 copy between devices without access, which is allowed here; 2 of errors of IPC: memory of another pool than the one that is named (refused since), a larger size than it has, are not refused; green contexts have parts of one processor; `nanosleep` only lets others go first |
| numba-cuda 0.30.4, the first 1662 of 2016 | 1662 | 1552 | 84 | 13 fail as expected; 5 by the version (`CUipcMemHandle.reserved`); 8 not done in 60 s or in the test's own limit under that load |

On an H200, natively and through vcuda at once, four processes each (2026-11-30, 03:00Z, the same tests):

| suite | ended both ways | natively | differently through vcuda |
|---|---|---|---|
| cuda-core 1.2.2 | 3837 | 3691 pass, 116 skipped, 29 fail | 139, of which the 60 that there was time for were different again. 55 want pools of pinned memory, and 53 pools of managed memory, or such that host and device use at once: the pools are served since, the latter is not ([SHIM.md](SHIM.md)); 16 NVML that is not served; 4 graphs that the device launches; 6 checkpoints; 2 errors of IPC, as above, of which memory of another pool is refused since; 2 are skipped natively only; `test_latchkernel` reads managed memory while a kernel runs, which ends a program where the device has no concurrent access |
| cuda-core 1.2.2, its tests of memory, pools and buffers, since pools of pinned and of managed memory are served (06:31Z) | 685 | 639 pass, 40 skipped, 6 fail | 61, of which 55 skip themselves on one side only, as managed memory is not reached by host and device at once ([SHIM.md](SHIM.md)); 3 ask what graphs use of memory that was freed behind the graph's end, 1 how far an imported pointer's memory reaches, 1 expects that such a device has no pool of managed memory. Not run a second time |
| cuda-bindings 13.5.0 | 415 | 349 pass, 55 skipped, 11 fail | 18: 12 of NVML, 6 skip themselves for managed memory |
| numba-cuda 0.30.4, `cudadrv` | 265 | 186 pass, 58 fail (most by the version of cuda-bindings), 21 skipped | 1: `test_select_device`, once |

Failed before what they found was mended: `cuda.bindings.runtime`, all of whose calls ended with 801 (63 tests); what is compiled by NVRTC for a real architecture (395 errors of cuda-core, and most of numba-cuda's); the
clones of embedded graphs (`cuGraphNodeFindInClone`) and the user objects in them, executable graphs that a thread without a context destroys while they run, nodes that fill pinned memory, nodes that allocate for another device too, updates of graphs with conditional
nodes, `CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT`, `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`, `nvmlSystemGetDriverBranch` (without which all tests of NVML skip themselves).

JAX 0.11.2's own tests (github.com/jax-ml/jax, the main branch of 2026-08-08, the newest copy at hand, unmodified), Python 3.12, NumPy 2.5, SciPy 1.18, in
front of the software GPU on 2026-11-30, two processors at a load of six to eighteen, two workers of pytest-xdist, two software GPUs where nothing else stands. Of each file 40 tests were drawn at random (eight GPUs: 22),
and as many run as there was time for:

| files of `tests/` | run | pass | skip themselves | fail now, and why |
|---|---|---|---|---|
| `lax`, `lax_numpy`, `lax_numpy_indexing`, `lax_numpy_operators`, `lax_numpy_reducers` | 200 | 197 | 3 | |
| `lax_control_flow`, `api`, `nn` | 120 | 92 | 28 | |
| `linalg`, `svd`, `qdwh`, `eigh`, `lobpcg`, `fft` (whole) | 240 | 214 | 26 | |
| `random`, `random_lax` | 80 | 73 | 7 | |
| `sparse`, `sparse_bcoo_bcsr`, `sparsify` | 120 | 118 | 2 | |
| `export`, `ffi`, `buffer_callback`, `python_callback`, `debugging_primitives`, `aot`, `cache_key`, `compilation_cache`, `ann` | 281 | 247 | 34 | |
| `fused_attention_stablehlo` | 40 | 15 | 25 | |
| `multi_device`, `pmap`, `shard_map`, on two GPUs | 100 | 64 | 36 | |
| `array`, `shard_map`, `pjit`, `memories`, `layout`, on eight GPUs | 109 | 93 | 16 | |
| `ragged_collective`, on eight GPUs | 12 | 12 | | `test_vmap_basic` alone: beside others not in 60 s, as its kernels of eight GPUs wait for one another on two processors |
| `linalg`, `fft`, `svd`, `lax`, `sparse`, with `JAX_ENABLE_X64` | 70 | 67 | 3 | |
| `pallas/triton_pallas`, `pallas/gpu_ops` | 46 | 31 | 15 | Pallas's Triton half knows GPUs by their names ([JAX.md](JAX.md)): the software GPU's was entered; what is left of `gpu_ops` and all of `gpu_attention` not done in the time there was |

Not collected by 0.11.2: `hijax`, `roofline`, `shard_alike`, `pallas/ops`; `pallas/pallas_test` and Mosaic's tests want a setting that it has no more, or Hopper. Failed before what they found was mended: a program that loads
more than some 980 modules that the cache has (`qdwh`, `svd`, `eigh`, `python_callback` behind them: 63 tests, two of them ended the process), on a GPU as well; a module that is loaded behind a barrier between GPUs
(`ragged_collective`, all of it on eight GPUs); new parameters for a node in the body of a loop of a graph, on the software GPU
(two of `lax_scipy` with `JAX_ENABLE_X64`: wrong numbers from the second call on); the driver's version, which XLA could not read.

NVIDIA Warp 1.19.0, its wheel as it is (CUDA 13.4's runtime and NVRTC linked in and stripped), its own tests, in front of two software GPUs with
`VCUDA_SOFTGPU_DRIVER_VERSION=13.4`, so that Warp hands over PTX; 2026-11-30, two processors at a load of ten to thirteen, 60 s for a test, 100 to 250 s for a file. Of each test so much ran as
there was time for; those of Warp's cpu device are not counted.

| files of `warp/tests` | run on the device | pass | skip themselves | fail now, and why |
|---|---|---|---|---|
| `cuda/`: streams, mempools, peers, several devices, pinned, captures, conditional nodes, occupancy, attributes, errors, clusters, registers, architectures, `test_clang_cuda` | 275 | 247 | 27 | 8 of IPC skip themselves: the software GPU said that it shares no events (it says so now). `test_event_external` once: the test reads what another stream still writes, which waits for nothing |
| `cuda/test_async`, the first 1161, and after the mend 135 drawn at random | 1296 | 1269 | | 19 (`p2p…Graph_AccessNone`): copies between pools without access are allowed here; 8 were mended (copies in another device's stream) |
| `cuda/test_unified_memory`, with two devices | 54 | 50 | 4 | 21 of them ended in errors before other devices' kernels reached managed memory |
| `cuda/test_texture`, `test_texture_compiler` | 90 | 86 | | 4 were mended; the half of `test_texture_compiler` that loads cubins wants machine code |
| `test_atomic`, `test_array_reduce`, `test_sparse`, `test_rand`, `test_utils`, `test_runlength_encode`, `test_fp16`, `test_bf16`, `test_dlpack` | 436 | 429 | 5 | 2 of `test_bf16` compare with the cpu device, whose compiler takes longer than 60 s |
| `tile/`: load, reduce, matmul, sort | 146 | 146 | | |
| `geometry/`: hash grid, BVH | 20 | 20 | | |
| `test_apic` | 103 | 102 | | 1 packs a compiled binary, which is machine code |
| `test_graph`, one device | 30 | 26 | 4 | left out, by size: `alloc_free_preserves_merged_frontier`, whose kernel turns 2^24 times in each thread, and `alloc_transient_stream`, a hundred launches of 64 Mi threads |

Failed before what they found was mended: all of it, since a stripped runtime was refused; copies between the host and a device in another device's stream; whole coordinates of textures with normalized ones.

tinygrad as of 2026-08-22 (github.com/tinygrad/tinygrad, a9069c177a), `DEV=CUDA`, NVRTC 13.0, the same day and machine, `test/backend`; it looks for the file `libcuda.so` in the folders
of `LD_LIBRARY_PATH` and the system and does not ask the dynamic linker: `vcuda run` names a folder that has it ([SHIM.md](SHIM.md#libraries-and-names)):

| file | run | pass | skip themselves | fail now, and why |
|---|---|---|---|---|
| `test_jit`, `test_graph`, `test_subbuffer` | 51 | 46 | 5 | 3 failed before graphs took nodes of other contexts than the current one |
| `test_symbolic_jit`, 21 of it | 21 | 18 | | `test_var`, `test_var_2d`, `test_attention` add kernels with a grid of 0 to a graph, which is refused, on an H200 too |
| `test_ops`, the first 42, with PyTorch 2.11 beside | 42 | 42 | | the rest was not begun in 330 s under that load |
| `test_multitensor`, six devices, the first 31 | 31 | 25 | 4 | 2: `test_simple_reduce`, whose copies between devices did not wait for the other device (mended since: 4 of 4 runs of its reductions are right, 3 of 3 were wrong before); the other's text was cut off |

On an H200 at 06:31Z (`tests/gpu/suites.py`, five processes each): `test_jit`, `test_graph`, `test_multitensor`, `test_symbolic_jit`, `test_randomness`, `test_dtype`, 297 tests that ended both ways, 200 pass and 22 fail natively (the
three with a grid of 0 among them), and **all end the same** through vcuda.

Taichi 1.7.4 (`arch=ti.cuda`, LLVM makes PTX at run time; a program with dense and sparse fields, atomics, arrays of NumPy, a gradient tape) gives the cpu device's numbers to the last digit. Its
module is opened with `RTLD_DEEPBIND`, which finds the C library's `dlopen` before the loader guard's, and opens `libcuda.so`, without a number: such modules are bound to the guard while they are loaded.

Others, on the software GPU by `vcuda run --software`, 2026-11-30, with their wheels as they are and a program of some lines for each:

| package | what was run | against what | found |
|---|---|---|---|
| OpenMM 8.6.1 (CUDA 12) | 81 to 192 atoms, PME and without cutoff, three precisions, a minimization, 20 steps | its Reference platform | the same to what the precision allows. On an H200 (CUDA 13, 648 atoms) all digits are those of a native run |
| XGBoost 3.2.0 (CUDA 12) | 5 trees of 3,000 rows, `device="cuda"` | its CPU | losses 0.17675 and 0.17659: its GPU draws other quantiles |
| MuJoCo Warp 4.0.0 (Warp 1.19.0) | 5 steps of a sphere and a box in 4 worlds | MuJoCo | 7e-8 |
| nvmath-python 1.0.0 (CUDA 12): products of cuBLASLt with epilogues and a search, cuFFT, cuDSS 0.8.0, cuTENSOR 2.8.0 | 12 calls | NumPy, SciPy | right; real transforms and cuTENSOR failed before what they found was mended |
| CuPy 14.2.0 under gdb | a sum | | right; NOT_SUPPORTED before |
| CatBoost 1.2.10 | training on the GPU | | refused by name: the static runtime of CUDA 11 |
| faiss-gpu-cu12 1.14.1, cuda-cccl 1.2.1 | | | machine code only: "no kernel image" |
| nvitop 1.7.2, gpustat | one look | | right |
| Dr.Jit 1.5.0 (makes PTX itself), its own tests (github.com/mitsuba-renderer/drjit, tag v1.5.0), `-k cuda` | 38 files: 6,923 tests, a third of `test_memop` and all of the others | itself, NumPy | 5,822 pass, 956 skip themselves or want OptiX by a flag; 144 more want OptiX ("Could not initialize OptiX!"), which is no part of this; 1 not done in 60 s. No CUDA at all before the driver had the functions of OpenGL; four sorts of PTX and reductions of 64 elements ended the process before they were mended |
| Mitsuba 3.9.1, `cuda_ad_rgb` | samplers, warps, 7 BSDFs, an environment, a phase function, a film, textures, two gradients; no ray tracing (OptiX) | `llvm_ad_rgb` | samplers, geometry and BSDFs to 9e-4 of the value, gradients to 3e-5; textures to 1/256 of a texel, as a GPU's filter |
| Halide 21.0.0 (LLVM makes PTX), its C++ tests that schedule for a GPU (tag v21.0.0), built against the wheel, `host-cuda`; a blur in Python | 88 | themselves; its CPU target 2e-7 | 78 pass, 8 skip themselves, 2 not done in 100 s (`atomics`, `boundary_conditions`: by size); 4 more want headers that the wheel has not |
| TensorFlow 2.21.0 (PTX for 9.0 in it; libdevice in `--xla_gpu_cuda_data_dir`, without that folder's ptxas) | 39 operations, XLA, two epochs of a small convolution network in Keras | its CPU | right to 1e-5 each, losses to 3e-5. "No DNN in stream executor" before what it found was mended; `tf.nn.lrn` failed before the software GPU's cuDNN had it |
| MLX 0.32.4 (`mlx-cuda-12`; NVRTC, PTX for 12.0 in it) | 21 operations, attention, a gradient, `mx.compile` | its CPU | 2e-5 at most; its own tests (tag v0.32.1) `test_reduce`, `test_random`, `test_fast`: 51 pass, 4 skip themselves; 3 of them failed before what they found was mended (`layer_norm`, `rms_norm`: a block that writes what it has yet to read) |
| CTranslate2 4.8.5 (PTX for 8.6 in it) | a Transformer of random weights, greedy and beams, float32, float16, bfloat16, int8 | its CPU in float32 | float32 and int8: the same tokens; scores of given tokens to 3e-6 in float32, 0.02 in float16, 0.08 in bfloat16 |
| bitsandbytes 0.50.2, its libraries of CUDA 12.6, 12.8 and 13.0 by ctypes (PTX in them) | blockwise and NF4 quantization and back | NumPy | the same codes; NF4 as it is defined |
| cuFINUFFT 2.5.1 (relocatable code, PTX for 9.0) with Numba's arrays | types 1 and 2, in one and two dimensions | sums | as exact as asked for (1e-5, 1e-9); more than 280 s before the linker was mended, 13 s since |
| PyCUDA 2026.1, built here without cuRAND, its own tests, with `compile(target="ptx")`, as it asks nvcc for machine code | 319, all of them | NumPy | 255 pass, 20 skip themselves, 5 fail as expected; 37 want cuRAND, 2 look for `libcudadevrt.a` in `lib64` |
| slangpy 0.43.1 (Slang, NVRTC 12.9) | a kernel with atomics, functions over arrays, a gradient | NumPy | 2e-6; a segmentation fault before what it found was mended |
| Quadrants 1.4.0 (Genesis', of Taichi) | as Taichi | its CPU | 1e-5 |
| Apache TVM 0.27.0 (NVRTC); Kernel Tuner 1.5.0 (`lang="nvcuda"`, NVRTC) | a kernel of two arrays; four sizes of a block | NumPy | 4e-6; all four are tried and right |
| DALI 2.4.0 (CUDA 12, PTX for 12.0 in it) | a pipeline of 11 operators: resizing, normalization, blur, colours, warps, reductions | its CPU | the same bytes; in warps and rotations some differ by 1 |
| JCuda 12.6.0 (Java 17; its natives with CUDA's static runtime; jcublas; NVRTC 12.9), its own tests and samples (github.com/jcuda) | 22 tests; 22 samples; a program with managed memory between null pointers, stack overflows, four collectors and 16 threads, watched either way | plain Java | right, but one sample that wants machine code. With ZGC and a heap of 300 GB (`-Xmx300g`) managed memory is OUT_OF_MEMORY: the heap lies at the same addresses |
| JavaCPP's presets of CUDA 12.9 (org.bytedeco 1.5.12), without CUDA's own files | cuBLAS, NVRTC, launches, 50 host functions, managed memory, `cudaMalloc3D`, an error | plain Java | right |
| ManagedCuda (C#, github.com/kunzmi/managedCuda, as of 12.8) by .NET Core 3.1.23 and Mono 6.8 | kernels, managed memory between null references, 12 threads, callbacks that collect garbage, textures, cuBLAS, cuFFT, cuRAND | plain C# | right; Mono waited for ever for the thread of a callback before it took signals. At its end Mono waits for any thread that has called back and lives on, without vcuda too |
| onnxruntime-gpu 1.31.1 | looked at | | machine code only |
| PyKeOps 2.3 (NumPy; headers and NVRTC of CUDA 12.9, with `libnvrtc.so` in `LIBRARY_PATH`) | a Gaussian sum, argmin, argKmin, log-sum-exp of 300 and 200 points | NumPy | 5e-6, the same, the same, 1e-6. It asks `ctypes.util.find_library("cuda")` and links with `-lcuda`, and stayed on the CPU before `vcuda run` named a folder with `libcuda.so` in `LIBRARY_PATH` |
| Blender 5.0.1 (`bpy`; Cycles on "CUDA", PTX for 7.5 in it) | the devices; the cube of a new file in 32 by 32 points, and 17 scenes: images, noise and bumps, glass, subsurface, coats, an area light, volumes, hair, motion blur and focus, occlusion and bevel, a sky, subdivision, passes, a shadow catcher, guiding, a bake, the denoiser; four renders in one process, two devices | its CPU | 5e-6 at most; 7e-4 where an image or the sky is read with a filter, which has 8 bits on a GPU. HIP and oneAPI find nothing and OptiX says so (7804), as natively without them. The denoiser on the GPU (Open Image Denoise 2.3.3) is machine code only |
| hashcat 6.2.6 (Debian; CUDA, NVRTC 12.9) | `-I`, a mask on an MD5, benchmarks of 8 modes, and the example hash of 40 modes, drawn, with a dictionary; each with its self-test | the passwords | all 29 whose example can be given are cracked (hashcat shortens those of the other 11) |
| ffmpeg 5.1.9 (Debian; PTX in it) | `hwupload_cuda`, `hwdownload`, `scale_cuda` (nearest, formats, P010), `overlay_cuda`, `yadif_cuda` | its CPU filters | the same bytes; `yadif_cuda` differs in 8 points of the edges, `scale_cuda` with a filter is another filter than swscale's. `h264_nvenc`, `h264_cuvid` and `-hwaccel cuda` say that `libnvidia-encode.so.1` and `libnvcuvid.so.1` cannot be loaded; the last decodes on the CPU then |
| RMM 26.10 | 15 memory resources (`managed`, `pool`, `arena`, `cuda_async`, pinned, binning, …), CuPy and Numba with it, four threads, too much | NumPy | right; fabric handles and system memory are refused, as the device has neither |
| cuDF 26.10 (CUDA 12; PTX for 12.0 in it) | some 100 operations: sorts, groups, joins, windows, strings, dates, lists, decimals, hashes, functions of users (Numba), CSV, JSON, Parquet and ORC with each codec; `cudf.pandas`, four threads | pandas | right but reading ZSTD (nvCOMP 5.3 chooses a launch for machine code of 8.0, and has PTX for 7.0); `melt`, `eval` and a regular expression are its own limits. Functions of users ended with "no kernel image" before nvJitLink gave PTX |
| cuML 26.10 | 17 models and transformations | the data | right; a segmentation fault at the import before what it found was mended |
| cuGraph, nx-cugraph, KvikIO 26.10 | 16 algorithms, PageRank by NetworkX, a file written and read | NumPy, NetworkX | PageRank to 9e-9; the others as they are defined |
| cuVS 26.10 | brute force, IVF-Flat, IVF-PQ, CAGRA, six distances, k-means | NumPy, SciPy | recall 1, 1, 0.9 and 1; 7e-5 at most. All but brute force and two distances failed before nvJitLink gave PTX |
| numba-cuda 0.30.4 with nvJitLink 12.9, its own tests | 14 of its files: linking, cooperative groups, extending, caching, atomics, … | themselves | 294 pass, 17 skip themselves; none would link before |
| nvCOMP 6.0 | 8 codecs, there and back | the data | right |
| CV-CUDA 0.19, nvImageCodec 0.9 | imports, 17 operators, a PNG | NumPy | machine code only but `stack`, which is right; its import was refused before the static runtime of CUDA 12.2 was known |
| cuStateVec 1.15, Qiskit Aer 0.18.2, PennyLane Lightning 0.45, CUDA-Q 0.16 (CUDA 12) | three gates; counts of a circuit by state vector and density matrix; a value and its gradient; states, samples and values of `nvidia` in both precisions | their CPU simulators | the same numbers (1e-7 in single precision). lightning.gpu ended with a segmentation fault before what it found was mended. Tensor networks (cuTensorNet 2.14) want kernels of cuTENSOR that are machine code |
| Open3D 0.20.0 (CUDA) | 18 operations of tensors, point clouds, searches, hash maps, images, TSDF | its CPU | 14 to 3e-6; what wants cuBLAS fails (`matmul`, ICP, `lstsq`, and the Gaussian filter after it): cuBLAS is linked in statically, stripped, and asks the runtime for tables that are not NVIDIA's to document ([RUNTIME.md](RUNTIME.md)) |
| pycolmap 4.2.1 (CUDA 12) | SIFT features and matches of two images | its CPU code, which is another | 178 features and 78 matches, 165 and 74; none before what it found was mended |
| spconv 2.3.8, cumm 0.7.11 | points to voxels | its CPU | the same voxels |
| cuPyNumeric 26.6.1 (Legate) | a start | | ends: its runtime, Realm, asks NVML for the generation of the PCIe link, which the software GPU has not, and takes no NOT_SUPPORTED |
| llama.cpp's ggml (github.com/ggml-org/ggml, d99724f), ggml-cuda by nvcc 13.0 for compute_80, PTX only; 39 of 75 instances of its matrix products and attention | `test-backend-ops`, 128 operators, 90 s for each; slices of MUL_MAT, MUL_MAT_ID and FLASH_ATTN_EXT; `test-opt`; a GPT-2 of random weights (`gpt-2-backend`, `-sched`, `-batched`, f32 and f16); graphs computed again and again on one GPU and two, the sum over two GPUs whose kernels wait for each other | its CPU | all right: some 5,980 cases, 1,000 more of the three, 164 of `test-opt`; the same tokens. Not done in time (by size): CONV_2D, ROPE, ROPE_BACK, LIGHTNING_INDEXER, nothing wrong until then; the same with unified memory, registered memory, no graphs, no pinned memory, `CUDA_LAUNCH_BLOCKING` |
| CCCL 3.4.2 (github.com/NVIDIA/cccl), its own tests, by nvcc 13.0 for compute_80 (90 where they ask for it) | CUB: device reduce, scan, merge, radix sort, select, run lengths, histogram, segmented reduce, launched from the host, from a kernel (scan) and by graphs (reduce); libcu++: 44 of `ccclrt`, memory resources, atomics, barriers, pipelines, host and device on one object; cudax: 20 of graphs and CUDASTF | themselves | CUB right; select, run lengths, histogram and segmented reduce not done in 150 s (by size), nothing wrong until then. Attributes of RDMA, trimmed pools, late threads at barriers and lists of captures failed before they were mended. Left: `createpolicy` gives 0, where NVIDIA's is a number; `affinity_gc` wants more SMs than a CPU has; `arrive_tx_cta`, `05-stencil-places` not done in 60 s; `barrier_parity`, which its authors switched off, counts by host and GPU at once, which is not atomic here; `cp_async_bulk_tensor_1d`'s map, over a variable that is aligned to 4 bytes by its type, is refused (open) |
| cudarc 0.19.10 (Rust; opens each library by name at run time; NVRTC 12.9), its own tests and 13 of its examples | 106 tests of driver, NVRTC, cuBLAS, cuBLASLt, cuRAND, cuSOLVER, cuSPARSE, cuDNN, cuFFT and NCCL, those for two devices too | themselves | 94 pass. The others: 2 give cuBLAS pointers to pageable memory; 4 want cuFile, 2 NVTX; a header that is not in `/usr/include`; managed memory that is concurrent; write-combined memory that is slower to read; a softmax to the last bit. cuBLASLt, NCCL and the told free memory failed before. Of its examples the limit of the device runtime's depth is refused, as an H200 does |
| cust 0.3.2 (Rust) | its own 75 tests | themselves | pass |
| llm.c (github.com/karpathy/llm.c, f1e2ace), by nvcc 13.0 as in all rows of C++ programs here | its kernels in `dev/cuda`, 81 variants, at smaller sizes; its training in CUDA (fp32) with a GPT-2 of random weights, 23 steps | its CPU code | 75 right; two write outside at the sizes that were taken, `layernorm_backward` 8 and 9 have no 1600 channels, and 10 writes to shared memory behind what it asks for with blocks of 32, which is refused here; one not done in 90 s (by size); `trimat_forward` wants larger sizes. The first loss is 10.75509, on the CPU 10.75538 (open: that is more than rounding) |
| nvbandwidth (NVIDIA, 66746a3), two devices | all its copies by engine and by kernel, which it checks | the patterns | right; `-lnvidia-ml` had no symbols before it was mended |
| nccl-tests 2.19.6 (NVIDIA, a0b82b2), two devices in one process | 11 programs, all types and operations, in place and not, with threads, graphs (`-G`), blocking | themselves | right; `-o mulsum` failed before `ncclRedOpDestroy` in a group was mended |
| Kokkos (github.com/kokkos/kokkos, 28848dfa8, two calls changed for CUDA 13), unit tests of its CUDA backend | 22 files: spaces, UVM, graphs, streams on two devices, parts of an execution space, atomics, scans, teams, scratch, memory pool, work graphs, aborts | themselves | 17 pass, one has no tests. Not done in 20 to 100 s (by size): team reductions, scratch of streams, reductions over several dimensions; nothing wrong until then. `shared_space` wants pages that migrate to be slow once and fast then |
| stdgpu (github.com/stotko/stdgpu, 22599cf; Thrust of CUDA 13), its own tests of memory, atomics, mutexes, bitsets, vectors, deques, sets and maps | 587 | themselves | 585 pass; `simultaneous_push_back_and_pop_back` not done in 420 s, `simultaneous_push_back_and_pop_front` in 25 s (open); both are right from the front |
| moderngpu (267cc8d), its 14 tests | 14 | themselves | 8 end as they should, 4 not done in 100 s (by size); `intervalmove` gives a kernel NULL on purpose; `bulkremove` reads shared memory that other warps write, with no barrier between, which ends in a fault here |
| gpu-burn (3ead140), matrices of 256, two devices | single, double, with tensor cores | itself | right, with an `nvidia-smi` of four lines beside it: without one its reader of temperatures ends it |
| BabelStream 5.0 (57637d5), without its question for the memory's clock, which the software GPU has not | device and managed memory, 2^16 elements | itself | right; with memory of `malloc` the kernel faults, as natively without concurrent access to pageable memory |
| cubecl-cuda 0.9.0 (Rust; Burn's; CUDA C++ by NVRTC 13.0), its own tests | 650 | its CPU | 630 pass, 20 skip themselves |
| candle-core 0.9.2 (Rust; its kernels by nvcc 13.0 for compute_80) | 9 files of its tests, 204 tests | its CPU | pass |
| nvml-wrapper 0.13.0 (Rust) | its own 165 tests that run | | 38 pass, 127 ask for what the software GPU has not, or for what is not served |
| go-nvml 0.13.4-1, go-nvlib 0.13.0 | their tests with the library, 4 examples, all functions by reflection, 8 goroutines that begin and end it | | right but for `SystemGetTopologyGpuSet` (NOT_SUPPORTED) and what the software GPU has not; events, units, and the addressing mode failed before |
| gorgonia.org/cu 0.9.6 (Go, cgo): driver, cuBLAS, NVRTC | its own tests | themselves | pass |
| a Go program by cgo, and one by purego 0.11.3 without cgo: managed and mapped memory from 8 goroutines beside preemption, signals, collections, `recover()` of nil pointers, callbacks, files, a child | | CPU | right |
| koffi 3.3.4 (Node 20): driver calls from the event loop, workers and libuv's threads, managed memory as a typed array, callbacks | | CPU | right |
| Mojo 1.1.0, MAX 26.6.0 (PTX by its LLVM, ptxas inside) | `gpu-query`; additions, functions of `math`, sums, maxima, prefixes and shuffles of warps and blocks, atomics, `print` in a kernel; a graph of MAX: a product, ReLU, softmax, sums | the CPU, NumPy | the same sums, 1e-6; 2e-7 for the graph. "No kernel image" before `vcuda run` named its `ptxas` to it (`MODULAR_NVPTX_COMPILER_PATH`) |
| UCX 1.21.0, UCXX 0.52 (CUDA 12) | `ucx_info -d`; `ucx_perftest` of tags, puts and gets between two processes; arrays of CuPy between two processes (device, managed, stream-ordered memory, 4 bytes to 12 MB) by TCP, by `cuda_ipc` written and by `cuda_ipc` read | the data | right |
| Dask-CUDA 26.10 (two devices; TCP, UCXX, UCXX with RMM's pools) | arrays of two workers added by one | the data | right. A worker warned of a context on the wrong device before NVML listed processes by context |
| TileLang 0.1.15 (`execution_backend="nvrtc"`) | additions, a softmax, products by tensor cores (f16, bf16, f32 as tf32, int8) | PyTorch's CPU | 4e-6; int8 the same; tf32 as exact as it is. By nvcc, its default, it asks for machine code only |
| nvidia-cutlass-dsl 4.8.1 | a kernel | | machine code only (its compiler has ptxas inside): "no kernel image", by name |
| gpu4pyscf 1.9.2 (CUDA 12, PTX for 8.0 in it; `libcusolver.so`, which it looks for, is not in NVIDIA's wheel: linked by hand) | RHF, density fitting, LDA, B3LYP, gradient, UHF of water | PySCF | energies to 3e-12, the gradient to 4e-7 |
| ASTRA Toolbox 2.5.0 (CUDA 12, PTX for 12.0 in it) | projection, FBP, SIRT, CGLS, EM, back projection in two dimensions; a projection and a back projection in three | its CPU projector, the image; NumPy for the back projections | projections to 2e-4 of the value, as a texture's filter has 8 bits; back projections to 4e-4 of sums that filter linearly, of 40 angles; the image comes back |
| CUTLASS (github.com/NVIDIA/cutlass, 7107b0553), 27 of its examples for sm_70 to sm_80, by nvcc 13.0 as in all rows of C++ programs here, sizes of 64 to 384 | products by threads and tensor cores (f16, tf32, three times tf32, f64, sparse s4, complex, quaternions), grouped, permuted, gathered, with softmax; convolutions; attention | themselves | 24 pass. `gemm_permute` is right at k = 384; at 192 and 96 four of its 42 variants are not (one permutation of A; open). `dual_gemm`, `gemm_bias_relu` not done in 120 s (by size). Sparse s4 was wrong before the metadata of narrow numbers was mended |
| cuCollections (github.com/NVIDIA/cuCollections, dc0f9fc2; `thrust::identity` added, which CCCL 3 has no more), its own tests | 19 files: extents, storage, multimaps, multisets, Bloom filter, HyperLogLog, dynamic bitset | themselves | pass; `large_input` wants more than 4 GiB. Sets and maps do not build with CCCL 3 |
| CGBN (github.com/NVlabs/CGBN, 6e6fdc1), its own tests of 32 to 2048 bits, 32 and 64 instances of each | 400: carries in inline PTX, shuffles, inverses, powers, Montgomery's products | GMP | pass |
| PolyBench/GPU 1.0 (github.com/sgrauerg/polybenchGpu, 5584aaa), sizes of 128 and 256 | 20 of 21; `DOITGEN` lacks a header | its CPU code | 19 right; `MVT` has eight threads add to one number with no order between them |
| Rodinia 3.1 (github.com/yuhc/gpu-rodinia, 9c10d3e; names that CUDA 13 has no more replaced), data of our own | `bfs`, `streamcluster`, `hotspot`, `hotspot3D`, `lud` | its OpenMP code, its own checks, NumPy | the same, the same, 5e-4 K, 4e-6, right. `particlefilter`, `srad`, `nw`, `pathfinder`, `gaussian`, `myocyte` end with 0, not compared; those with references to textures are no CUDA 13 |
| cuda-api-wrappers (github.com/eyalroz/cuda-api-wrappers, c2f2a2b), 34 of its examples, two devices | nearly all of the driver: contexts, events, graphs, pools, IPC, mapped and managed memory, virtual memory, streams, modules | themselves | 27 end as they should, five only since what they found was mended: contexts of kernels' nodes, PTX without spaces, events asked for in a host function (`event_management`), an event of another GPU opened by its handle (`simpleIPC`), shuffles lane by lane (`jacobiCudaGraphs`: 9,000 launches, 60 s at a load of four). `vectorAddMMAP` unmaps what it has mapped, `simpleTextureDrv` reads before its kernel has run, `memMapIPCDrv` asks each device for access to itself, `memory_pools` expects another error than an H200's, `p2pBandwidthLatencyTest` launches the current device's function on another device's stream, `streamOrderedAllocationIPC` never passes its pointers on |
| VkFFT (github.com/DTolm/VkFFT; NVRTC 13.0, linked) | its check of single precision, 36 sizes in one dimension | FFTW in double precision | mean errors of 5e-7 at most. It ended with `CUDA_ERROR_NO_BINARY_FOR_GPU` before programs that are linked with NVRTC were given PTX |
| GeNN 5.4.0 (github.com/genn-team/genn, a3f45d241; pygenn; nvcc 13.0) | 400 neurons with sparse and dense synapses, STDP, 200 steps | its single-threaded CPU | the same 1572 spikes, weights to 2e-8. SIGFPE in its search for block sizes before what it found was mended |
| Brian2CUDA (github.com/brian-team/brian2cuda, 8577663; Brian 2.10.1) | 60 neurons, delays, inhibition, STDP, three monitors, 600 steps | Brian on NumPy | the same spikes, 1e-13 |
| DaCe (github.com/spcl/dace, ed6688047), its own tests that want a GPU | the first 73 of some 150, 100 s for each | themselves | 67 pass, 1 skips itself, 5 fail (not looked into; `build_cache_test` is about folders) |
| ViennaCL (github.com/viennacl/viennacl-dev, dc552a8d), its own tests with CUDA | `scalar`, `vector_float_double`, `vector_int` | its CPU | pass; `matrix_row_float` not done in 100 s (by size) |
| FBPIC 0.27.1 (Numba, CuPy 13.6) | 15 steps of a laser in a plasma with a moving window, two modes | its CPU | 1e-12 |
| STUMPY 1.14.1 (Numba) | `gpu_stump` of one and two series, `gpu_aamp`, the best three, `gpu_stimp`, `gpu_ostinato`, `gpu_mpdist` | its CPU | 2e-13, the same indices |
| ThrustRTC 0.3.20 (NVRTC 12.9) | 16 algorithms, kernels of its own | NumPy | the same |
| PyFR 3.1 (NVRTC 12.9) | an Euler wave in 36 elements of order 3, in double precision; Navier-Stokes in single precision, not compared | the exact solution | 4e-3, by the coarse mesh |
| deepmd-kit 3.2.0 with TensorFlow 2.21 (PTX for 12.0 in it; libdevice as above) | 20 steps of a small `se_e2_a` model | its CPU | the same three digits in each step, 8 of 8 runs. Wrong in many runs before: its `ProdEnvMatA` copies into temporary memory in the NULL stream before its first synchronisation, while TensorFlow's non-blocking stream may still read what was there (seen: the box over a scalar). That race is deepmd-kit's, and short on a GPU; the software GPU keeps such order now ([SOFTGPU.md](SOFTGPU.md#streams)) |
| SHOC (github.com/vetter/shoc, 0aea03b), by nvcc 13.0 as in all rows of C++ programs here, size 1 | `BFS`, `FFT`, `Reduction`, `Scan`, `Sort`; `GEMM`, `MD5Hash`, `MaxFlops`, `S3D`, `Triad`, both bus speeds | themselves, the first five | right; the others end with 0. `NeuralNet` was not run; those with references to textures are no CUDA 13, `Stencil2D` does not build |
| Altis (github.com/utcs-scea/altis, 042e292; calls that CUDA 13 changed by a header), smaller sizes | 18 programs, most with managed memory, advice and prefetches, one with launches from kernels, one with a graph, `srad` cooperative | `sort`, `fdtd2d`: themselves; the others were not compared | right, end with 0. `fdtd2d --coop` has more blocks than the software GPU holds at once (720); `devicememory`, `maxflops`, `cfd_double` not done in 40 s (by size) |
| gunrock (github.com/gunrock/gunrock, 01f125c; `__HIP_DEVICE_COMPILE__` for device code by a header, without which its atomics are none with nvcc) | `bfs`, `sssp` with four load balancers, `color`, `kcore` on its own graph of 39 vertices; the first two with three, and the others, on a random one of 3000 | its CPU code | no errors. Its `merge_path_v2` takes each tile's rows from 0, wrong beyond one tile; `tc` begins with an empty frontier, `spmv` says that it lost its operator. `pr`, `bc`, `ppr`, `spgemm` end, not compared |
| tiny-cuda-nn (github.com/NVlabs/tiny-cuda-nn, 6ee3546; NVRTC 13.0), its own tests | encodings, grid, losses by NVRTC, all; of `test_networks` all 6 of 16 inputs, then single ones | themselves | the first three pass. Of networks FullyFusedMLP's backward pass ended with ILLEGAL_ADDRESS where the input is as wide as the network, before unread fragments were mended (32 to 32 and 64 to 64 pass since). Where one side is CUTLASS, errors are 0.011 to 0.034 and 0.010 or 0.012 is allowed: it sums 8 products at a time in halves, the other 16; both instructions are bit for bit an H200's |
| RAJA (github.com/LLNL/RAJA, dd5eb76; two calls that CUDA 13 changed by a header), its own tests with CUDA | `plugin-workgroup-IndirectVirtual`, `plugin-launch`, `forall-IndexSet`: virtual functions of objects that kernels make, hooks, index sets | themselves | all 61 pass; two of reductions did not compile in 300 s |
| Hemi (github.com/harrism/hemi, 2128055) | its own tests but `execution_policy`, which does not build; 6 examples | themselves | all 19 pass; the examples end with 0 |
| darknet (github.com/pjreddie/darknet, f6afaab, without its program of comparisons) | a network of 10 layers (convolution with and without normalization, pooling, shortcut, upsampling, route, local, connected, softmax), four steps of training, a prediction | its CPU | losses and probabilities to 1e-5 |
| hypre (github.com/hypre-space/hypre, 0854739; unified memory, without MPI and Umpire), `test/ij` and `test/struct`, a Laplacian of 512 points | PFMG, SMG and hybrids alone and with CG, 5 solvers; BoomerAMG alone, with PCG (cuSPARSE's products and hypre's own, aggressive coarsening) and GMRES, diagonal scaling, ILU, 8 runs | its CPU | of `struct` and of diagonal scaling the same iterations and residuals to all digits; PCG 11 and 11, the others converge in other numbers of iterations, as the device coarsens otherwise (GMRES 23 and 21), or were not compared |
| a Rust program: memory freed by destructors of statics, of threads' locals, at exit, while unwinding and beside a thread that runs on; `fork` | | CPU | right |

vLLM 0.20.2 on the machines with an H200 (`tests/frameworks/vllm_rows.py`; the machine code of other architectures was taken out of its wheel, to carry less), small Llama models of
random weights in bfloat16, tokens and log probabilities natively and through vcuda, each engine a process of its own: **bit-equal** eager, sampled, compiled and captured (the default), prompts
in chunks with common prefixes, weights in FP8, a cache in FP8, guesses by n-grams, asleep and awake, embeddings: 9 of the 9 that ended both ways. Whole graphs (`FULL`)
ended through vcuda only, in the time there was. Not seen to end either way: experts, adapters, grammars (packages were missing), `vllm serve`, two GPUs.
"""
HOLDS = """
## What must hold of the driver, the runtime and the software GPU

Each row by the command that shows it: those of `make test` fail where it does not hold. What was measured is in [BENCHMARKS.md](BENCHMARKS.md).

| holds | command | of `make test` |
|---|---|---|
| every function of cuda.h and cuda_runtime_api.h of CUDA 12.9, 13.0 and 13.5 is exported and described; at most 8 of 100 of either are refused, each with a reason | `make test-parity` (`refusals` in `tests/parity/parity.py`; the numbers: [COVERAGE.md](COVERAGE.md)) | yes |
| no undeclared difference to what NVIDIA's driver answered on an H200, in 101,044 calls of 700 functions (`tests/differential/native.tar.xz`) | `make test-differential` in front of the software GPU, `tests/differential/run.py --driver nvidia` in front of NVIDIA's | the first |
| the same with each optimisation off (`VCUDA_PERF=no_…`) | `make test-differential-switches` in front of the software GPU, `tests/differential/switches.py --driver nvidia` in front of NVIDIA's (2026-12-01: 0 different with each) | no |
| every test of Numba's CUDA suite passes or skips itself that does not stand in `tests/numba/expected.txt`; on a GPU those that pass natively | `make test-numba`; `tests/gpu/numba.sh` | no |
| of 1,000 pages of managed memory that a kernel has written the host reads one and writes one: under 1 % of the bytes travel, both ways together | `make run-roundtrips-page` | yes |
| a kernel and the host pass a flag through mapped memory 10,000 times, at 3 round trips each at most | `make run-roundtrips-flag` | yes |
| textures, 1-D to cubemap, each address and filter mode, are what an H200 read: bit for bit where no filter blends, else within 1/256 of the texels' difference | `make run-textures_record` | yes |
| single PTX instructions give what an H200 gave | `make run-instructions_record` | yes |
| 1,000,000 mutated PTX texts: no crash, no hang, no read outside (address and undefined sanitizers) | `make fuzz-ptx FUZZ_SECONDS=0 FUZZ_RUNS=1000000` | no |
| the interpreter does 1 G thread instructions a second on a quiet core with AVX2 | `make build/bench/ptx_matmul && build/bench/ptx_matmul` | only that its product is right (`run-ptx_matmul`) |
| `make demo` and `make test` within 15 minutes each, on two cores that do nothing else | `time make demo`, `time make test` | no |
"""
WHERE = {"software": "On the software GPU", "nvidia": "On an H200, natively and through vcuda",
         "every": "Everywhere"}


def main():
    with open(os.path.join(HERE, "expected.txt")) as file:
        parts = re.findall(r"^(\w+): (.+)\n((?:\t.+\n)+)", file.read(), re.M)
    print(HEAD.format(expected=SOME if parts else EVERY), end="")
    for driver, title in WHERE.items():
        rows = [(reason, tests.split()) for where, reason, tests in parts if where == driver]
        if not rows:
            continue
        print(f"\n## {title}\n\n| reason | tests |\n|---|---|")
        for reason, tests in rows:
            print(f"| {reason} | {' '.join(f'`{test}`' for test in tests)} |")


def record(name):
    path = os.path.join(HERE, "..", "frameworks", name)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def on_gpu(one):
    """What tests/gpu/frameworks.py said of a framework."""
    if not one or "skipped" in one:
        return "not recorded"
    different = ", ".join(f"`{row}`" for row in one["different"])
    return f"{one['version']}: {len(one['same'])} rows as natively" + (f", different: {different}" if different else "")


def frameworks():
    soft = record("software.json")
    gpu = {one["name"]: one for one in record("recorded.json").get("results", [])}
    print(FRAMEWORKS, end="")
    for name in sorted({*soft, *gpu}):
        here = soft.get(name, {"version": "not recorded", "answered": [], "errors": {}})
        errors = "<br>".join(f"`{row}`: `{text}`" for row, text in here["errors"].items()).replace("|", "\\|")
        print(f"| {here['version']} | {len(here['answered'])} | {errors or 'none'} | {on_gpu(gpu.get(name))} |")


if __name__ == "__main__":
    main()
    frameworks()
    print(COLLECTION, end="")
    print(SUITES, end="")
    print(HOLDS, end="")
