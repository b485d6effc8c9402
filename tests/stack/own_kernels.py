# SPDX-License-Identifier: Apache-2.0
"""What a program does with kernel nodes that no module of its own has, for test_own_kernels.py: it captures fills, of
which that test's driver makes kernels, and reads, changes and copies the nodes."""
import ctypes

N = 64
cuda = ctypes.CDLL("libcuda.so.1")
KERNEL = 0


class Params(ctypes.Structure):  # CUDA_KERNEL_NODE_PARAMS
    _fields_ = [("func", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("params", ctypes.POINTER(ctypes.c_void_p)),
                ("extra", ctypes.POINTER(ctypes.c_void_p)), ("kern", ctypes.c_void_p), ("ctx", ctypes.c_void_p)]


def do(status):
    assert not status, f"status {status}"


def handle(kind=ctypes.c_void_p):
    return kind()


def fill(memory, value, stream):
    do(cuda.cuMemsetD32Async(memory, ctypes.c_uint(value), ctypes.c_size_t(N), stream))


def values(memory):
    do(cuda.cuCtxSynchronize())
    got = (ctypes.c_uint * N)()
    do(cuda.cuMemcpyDtoH_v2(got, memory, ctypes.c_size_t(4 * N)))
    assert len(set(got)) == 1, list(got)
    return got[0]


def captured(stream, *fills):
    graph, count = handle(), ctypes.c_size_t(8)
    do(cuda.cuStreamBeginCapture_v2(stream, 0))
    for memory, value in fills:
        fill(memory, value, stream)
    do(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    nodes = (ctypes.c_void_p * 8)()
    do(cuda.cuGraphGetNodes(graph, nodes, ctypes.byref(count)))
    assert count.value == len(fills)
    return graph, [ctypes.c_void_p(node) for node in nodes[:count.value]]


def read(node):
    kind, params = ctypes.c_int(), Params()
    do(cuda.cuGraphNodeGetType(node, ctypes.byref(kind)))
    assert kind.value == KERNEL
    do(cuda.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(params)))
    assert params.func
    return params


def argument(params, i, kind):
    return ctypes.cast(params.params[i], ctypes.POINTER(kind))[0]


def run(graph, stream):
    exec_ = handle()
    do(cuda.cuGraphInstantiateWithFlags(ctypes.byref(exec_), graph, ctypes.c_ulonglong(0)))
    do(cuda.cuGraphLaunch(exec_, stream))
    return exec_


def arguments(memory, value):
    """As kernelParams, and what must live as long."""
    kept = (ctypes.c_uint64(memory.value), ctypes.c_uint(value))
    return (ctypes.c_void_p * 2)(*(ctypes.addressof(k) for k in kept)), kept


def function_is_whole(function):
    function, name = ctypes.c_void_p(function), ctypes.c_char_p()
    value, offset, size, module = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
    do(cuda.cuFuncGetName(ctypes.byref(name), function))
    assert name.value == b"own_fill", name.value
    do(cuda.cuFuncGetAttribute(ctypes.byref(value), 0, function))
    assert value.value >= 64
    do(cuda.cuFuncGetParamInfo(function, ctypes.c_size_t(1), ctypes.byref(offset), ctypes.byref(size)))
    assert (offset.value, size.value) == (8, 4)
    assert cuda.cuFuncGetParamInfo(function, ctypes.c_size_t(2), ctypes.byref(offset), ctypes.byref(size)) == 1
    do(cuda.cuFuncGetModule(ctypes.byref(module), function))
    assert module.value and cuda.cuModuleUnload(module)


def main():
    context, stream = handle(), handle()
    memory = [ctypes.c_uint64(), ctypes.c_uint64()]
    do(cuda.cuInit(0))
    do(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    do(cuda.cuCtxSetCurrent(context))
    do(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    for m in memory:
        do(cuda.cuMemAlloc_v2(ctypes.byref(m), ctypes.c_size_t(4 * N)))
        fill(m, 1, stream)

    graph, nodes = captured(stream, (memory[0], 5), (memory[1], 6))
    first, second = (read(node) for node in nodes)
    assert first.func == second.func == read(nodes[0]).func
    first = read(nodes[0])
    assert list(first.grid) == [N, 1, 1] and list(first.block) == [1, 1, 1]
    assert argument(first, 0, ctypes.c_uint64) == memory[0].value
    assert argument(first, 1, ctypes.c_uint) == 5
    function_is_whole(first.func)

    # Set, in the graph and in one that was made of it.
    first.params, kept = arguments(memory[0], 7)
    do(cuda.cuGraphKernelNodeSetParams_v2(nodes[0], ctypes.byref(first)))
    exec_ = run(graph, stream)
    assert (values(memory[0]), values(memory[1])) == (7, 6)
    second.params, kept = arguments(memory[1], 8)
    do(cuda.cuGraphExecKernelNodeSetParams_v2(exec_, nodes[1], ctypes.byref(second)))
    do(cuda.cuGraphLaunch(exec_, stream))
    assert values(memory[1]) == 8

    # A node of another graph, and a launch.
    other, node = handle(), handle()
    do(cuda.cuGraphCreate(ctypes.byref(other), 0))
    first.params, kept = arguments(memory[0], 9)
    do(cuda.cuGraphAddKernelNode_v2(ctypes.byref(node), other, None, ctypes.c_size_t(0), ctypes.byref(first)))
    run(other, stream)
    assert values(memory[0]) == 9
    assert read(node).func == first.func
    params, kept = arguments(memory[0], 10)
    do(cuda.cuLaunchKernel(ctypes.c_void_p(first.func), N, 1, 1, 1, 1, 1, 0, stream, params, None))
    assert values(memory[0]) == 10

    # Another capture has the same function.
    again, nodes = captured(stream, (memory[0], 11))
    assert read(nodes[0]).func == first.func
    print("right")


main()
