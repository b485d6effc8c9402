# SPDX-License-Identifier: Apache-2.0
"""A program of CUDA's driver interface in plain Python, as somebody has it who has no compiler: a line is fitted
to points by gradient descent, a step for each launch. Fails unless slope and intercept are found."""
import ctypes

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry step(.param .u64 points, .param .u64 line, .param .u32 n, .param .f32 rate)
{
	.reg .pred %p; .reg .u32 %i, %n; .reg .u64 %x, %y, %l; .reg .f32 %a, %b, %u, %v, %e, %da, %db, %r;
	ld.param.u64 %x, [points];
	ld.param.u64 %l, [line];
	ld.param.u32 %n, [n];
	ld.param.f32 %r, [rate];
	ld.global.f32 %a, [%l];
	ld.global.f32 %b, [%l+4];
	mov.f32 %da, 0f00000000;
	mov.f32 %db, 0f00000000;
	mov.u32 %i, 0;
next:
	ld.global.v2.f32 {%u, %v}, [%x];
	fma.rn.f32 %e, %a, %u, %b;
	sub.rn.f32 %e, %e, %v;
	fma.rn.f32 %da, %e, %u, %da;
	add.rn.f32 %db, %db, %e;
	add.u64 %x, %x, 8;
	add.u32 %i, %i, 1;
	setp.lt.u32 %p, %i, %n;
	@%p bra next;
	mul.rn.f32 %da, %da, %r;
	mul.rn.f32 %db, %db, %r;
	sub.rn.f32 %a, %a, %da;
	sub.rn.f32 %b, %b, %db;
	st.global.f32 [%l], %a;
	st.global.f32 [%l+4], %b;
	ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def do(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        raise SystemExit(f"{name}: error {code}")


context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
points, line = ctypes.c_uint64(), ctypes.c_uint64()
n, rate = ctypes.c_uint32(64), ctypes.c_float(0.01)
given = (ctypes.c_float * 128)(*(value for i in range(64) for value in (i / 32 - 1, 3 * (i / 32 - 1) + 0.5)))
found = (ctypes.c_float * 2)()
do("cuInit", 0)
do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
do("cuCtxSetCurrent", context)
do("cuModuleLoadData", ctypes.byref(module), PTX)
do("cuModuleGetFunction", ctypes.byref(function), module, b"step")
do("cuMemAlloc_v2", ctypes.byref(points), ctypes.c_size_t(ctypes.sizeof(given)))
do("cuMemAlloc_v2", ctypes.byref(line), ctypes.c_size_t(ctypes.sizeof(found)))
do("cuMemcpyHtoD_v2", points, given, ctypes.c_size_t(ctypes.sizeof(given)))
do("cuMemcpyHtoD_v2", line, found, ctypes.c_size_t(ctypes.sizeof(found)))
arguments = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in (points, line, n, rate)))
for _ in range(200):
    do("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
do("cuMemcpyDtoH_v2", found, line, ctypes.c_size_t(ctypes.sizeof(found)))
if abs(found[0] - 3) > 1e-3 or abs(found[1] - 0.5) > 1e-3:
    raise SystemExit(f"wrong: {found[0]} {found[1]}")
print(f"the line is {found[0]:.3f} x + {found[1]:.3f}")
