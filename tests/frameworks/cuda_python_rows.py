# SPDX-License-Identifier: Apache-2.0
"""cuda.bindings (driver, runtime, NVRTC) and cuda.core, a row each."""
import ctypes

import answers
import cuda.bindings
import numpy
from answers import answer
from cuda.bindings import driver, nvrtc, runtime

TEXT = r'extern "C" __global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }'
X = numpy.arange(96, dtype=numpy.float32)


def right(got):
    assert int(got[0]) == 0, str(got[0])
    return got[1] if len(got) == 2 else got[1:]


@answer
def versions():
    return right(driver.cuDriverGetVersion()) > 0, right(runtime.cudaRuntimeGetVersion()) > 0


@answer
def attributes():
    right(runtime.cudaSetDevice(0))
    return [right(runtime.cudaDeviceGetAttribute(one, 0)) for one in
            (runtime.cudaDeviceAttr.cudaDevAttrWarpSize, runtime.cudaDeviceAttr.cudaDevAttrMaxThreadsPerBlock,
             runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor, runtime.cudaDeviceAttr.cudaDevAttrMultiProcessorCount)]


@answer
def properties():
    found = right(runtime.cudaGetDeviceProperties(0))
    return found.name, found.totalGlobalMem, found.major, found.minor


def ptx():
    program = right(nvrtc.nvrtcCreateProgram(TEXT.encode(), b"twice.cu", 0, [], []))
    assert int(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_80"])[0]) == 0
    text = b" " * right(nvrtc.nvrtcGetPTXSize(program))
    assert int(nvrtc.nvrtcGetPTX(program, text)[0]) == 0
    return text


@answer
def driver_launch():
    right(driver.cuInit(0))
    context = right(driver.cuDevicePrimaryCtxRetain(right(driver.cuDeviceGet(0))))
    right(driver.cuCtxSetCurrent(context))
    function = right(driver.cuModuleGetFunction(right(driver.cuModuleLoadData(ptx())), b"twice"))
    memory = right(driver.cuMemAlloc(X.nbytes))
    right(driver.cuMemcpyHtoD(memory, X.ctypes.data, X.nbytes))
    right(driver.cuLaunchKernel(function, 1, 1, 1, 96, 1, 1, 0, 0, ((int(memory), 96), (ctypes.c_void_p, ctypes.c_int)), 0))
    out = numpy.zeros_like(X)
    right(driver.cuMemcpyDtoH(out.ctypes.data, memory, X.nbytes))
    right(driver.cuMemFree(memory))
    return out


@answer
def runtime_copies():
    memory = right(runtime.cudaMalloc(X.nbytes))
    right(runtime.cudaMemcpy(memory, X.ctypes.data, X.nbytes, runtime.cudaMemcpyKind.cudaMemcpyHostToDevice))
    stream = right(runtime.cudaStreamCreate())
    right(runtime.cudaMemsetAsync(memory, 0, 40, stream))
    right(runtime.cudaStreamSynchronize(stream))
    out = numpy.zeros_like(X)
    right(runtime.cudaMemcpy(out.ctypes.data, memory, X.nbytes, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    right(runtime.cudaFree(memory))
    return out


@answer
def runtime_graph():
    stream = right(runtime.cudaStreamCreate())
    memory = right(runtime.cudaMalloc(400))
    right(runtime.cudaStreamBeginCapture(stream, runtime.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal))
    right(runtime.cudaMemsetAsync(memory, 7, 400, stream))
    graph = right(runtime.cudaStreamEndCapture(stream))
    ready = right(runtime.cudaGraphInstantiate(graph, 0))
    right(runtime.cudaGraphLaunch(ready, stream))
    right(runtime.cudaStreamSynchronize(stream))
    out = numpy.zeros(100, numpy.int32)
    right(runtime.cudaMemcpy(out.ctypes.data, memory, 400, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    return out


@answer
def errors():
    return str(runtime.cudaMemcpy(0, 0, 4, runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice)[0]), \
        right(runtime.cudaGetErrorName(runtime.cudaError_t.cudaErrorInvalidValue))


def core():
    try:
        import cuda.core as module
        module.Device
    except (ImportError, AttributeError):
        import cuda.core.experimental as module
    return module


@answer
def core_device():
    device = core().Device()
    device.set_current()
    return device.name, tuple(device.compute_capability), device.properties.multiprocessor_count


@answer
def core_launch():
    c = core()
    device = c.Device()
    device.set_current()
    stream = device.create_stream()
    major, minor = device.compute_capability
    program = c.Program(TEXT, code_type="c++", options=c.ProgramOptions(arch=f"sm_{major}{minor}"))
    kernel = program.compile("cubin").get_kernel("twice")
    memory = device.allocate(X.nbytes, stream=stream)
    right(driver.cuMemcpyHtoD(int(memory.handle), X.ctypes.data, X.nbytes))
    c.launch(stream, c.LaunchConfig(grid=1, block=96), kernel, memory, numpy.int32(96))
    stream.sync()
    out = numpy.zeros_like(X)
    right(driver.cuMemcpyDtoH(out.ctypes.data, int(memory.handle), X.nbytes))
    memory.close(stream)
    return out


@answer
def core_events():
    c = core()
    device = c.Device()
    device.set_current()
    stream = device.create_stream()
    timed = "timing_enabled" if hasattr(c.EventOptions(), "timing_enabled") else "enable_timing"  # since cuda.core 1
    start, end = (stream.record(options=c.EventOptions(**{timed: True})) for _ in range(2))
    end.sync()
    return end - start >= 0


@answer
def core_link():
    c = core()
    device = c.Device()
    device.set_current()
    major, minor = device.compute_capability
    options = c.ProgramOptions(arch=f"sm_{major}{minor}", relocatable_device_code=True)
    parts = [c.Program(text, code_type="c++", options=options).compile("ptx") for text in
             ("extern __device__ int f(int); extern \"C\" __global__ void k(int *x) { *x = f(*x); }",
              "__device__ int f(int x) { return x * 3; }")]
    linked = c.Linker(*parts, options=c.LinkerOptions(arch=f"sm_{major}{minor}")).link("cubin")
    return linked.get_kernel("k") is not None


answers.main("cuda-python", cuda.bindings.__version__)
