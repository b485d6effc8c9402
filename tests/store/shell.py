# SPDX-License-Identifier: Apache-2.0
"""shell.py: does what its standard input says, a line of Python each, and answers each with one line:
"= VALUE", or "! STATUS TEXT" of a failure of vcuda's or CUDA's.  What the lines of a test use is here."""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import vcuda  # noqa: E402

cuda = ctypes.CDLL("libcuda.so.1")
KERNEL = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry put(.param .u64 at, .param .u32 value)
{
	.reg .b64 %a; .reg .b32 %v;
	ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;
	ld.param.u32 %v, [value];
	st.global.u32 [%a], %v;
	ret;
}
.visible .entry count(.param .u64 at) {
	.reg .b64 %a; .reg .b32 %v; .reg .pred %p;
	ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;
	mov.u32 %v, 0;
again:
	st.volatile.global.u32 [%a], %v;
	add.u32 %v, %v, 1;
	setp.lt.u32 %p, %v, 4000000000;
	@%p bra again;
	ret;
}
"""


def do(status):
    if status:
        raise vcuda.Error(status, "CUDA")


def context(device=0):
    c = ctypes.c_void_p()
    do(cuda.cuInit(0))
    do(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), device))
    do(cuda.cuCtxSetCurrent(c))


def fill(t, byte):
    do(cuda.cuMemsetD8_v2(ctypes.c_uint64(t.data), ctypes.c_ubyte(byte), ctypes.c_size_t(t.nbytes)))
    do(cuda.cuCtxSynchronize())


def upload(t, data, at=0):
    do(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(t.data + at), data, ctypes.c_size_t(len(data))))


def download(t):
    room = (ctypes.c_ubyte * t.nbytes)()
    do(cuda.cuMemcpyDtoH_v2(room, ctypes.c_uint64(t.data), ctypes.c_size_t(t.nbytes)))
    return bytes(room)


def every(t):
    """The byte that all of it is; -1: they differ."""
    data = download(t)
    return data[0] if data.count(data[0]) == len(data) else -1


def launch(name, *values):
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    do(cuda.cuModuleLoadData(ctypes.byref(module), KERNEL))
    do(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name))
    arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    do(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
    do(cuda.cuCtxSynchronize())


def let(t, flags, device=0):
    """What the device may do with the tensor's mapping."""
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    do(cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(t.data)))
    access = (ctypes.c_int * 3)(1, device, flags)  # CUmemAccessDesc
    do(cuda.cuMemSetAccess(base, size, access, ctypes.c_size_t(1)))
    do(cuda.cuCtxSynchronize())


def put(t, value):
    """A kernel writes the first word."""
    launch(b"put", ctypes.c_uint64(t.data), ctypes.c_uint32(value))


def count(t):
    """A kernel counts in the first word, for minutes."""
    launch(b"count", ctypes.c_uint64(t.data))


def main():
    space = dict(globals())
    for line in sys.stdin:
        try:
            try:
                code = compile(line, "<line>", "eval")
            except SyntaxError:
                exec(compile(line, "<line>", "exec"), space)
                print("= None", flush=True)
            else:
                print("=", repr(eval(code, space)), flush=True)
        except vcuda.Error as error:
            print("!", error.status, error.text, flush=True)
        except Exception as error:
            print("! python", type(error).__name__, error, flush=True)
    os._exit(0)  # as a program that does not close what it has open


if __name__ == "__main__":
    main()
