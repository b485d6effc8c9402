# SPDX-License-Identifier: Apache-2.0
"""module.py FILE [wait|TIMES]: loads the module, with `wait` when a line has come, runs its kernel `twice` on 21 and
prints what came of it. TIMES: before that it loads and unloads it so often."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
memory, value = ctypes.c_uint64(), ctypes.c_uint32(21)


def do(status):
    if status:
        sys.exit(f"module.py: status {status}")


with open(sys.argv[1], "rb") as file:
    image = file.read()
do(cuda.cuInit(0))
do(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
do(cuda.cuCtxSetCurrent(context))
if sys.argv[2:] == ["wait"]:
    print("waits", flush=True)
    sys.stdin.readline()
# Exactly the file, and behind it what is no text.
room = (ctypes.c_char * (len(image) + 64)).from_buffer_copy(image + b"\xff" * 64)
for _ in range(int(sys.argv[2]) if sys.argv[2:] and sys.argv[2] != "wait" else 0):
    do(cuda.cuModuleLoadData(ctypes.byref(module), room))
    do(cuda.cuModuleUnload(module))
do(cuda.cuModuleLoadData(ctypes.byref(module), room))
do(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"twice"))
do(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4)))
do(cuda.cuMemcpyHtoD_v2(memory, ctypes.byref(value), ctypes.c_size_t(4)))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
do(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
do(cuda.cuMemcpyDtoH_v2(ctypes.byref(value), memory, ctypes.c_size_t(4)))
print(value.value)
