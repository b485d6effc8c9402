# A kernel fails (here one of the driver's own, since PyTorch's need a GPU): PyTorch raises, and does
# not abort while it cleans up, which asks the driver for its state in destructors.
from check import check, python

PTX = """
.version 7.0
.target sm_75
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[5] = {116, 101, 120, 116, 0};
.visible .entry fails()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd0, text;
    cvta.global.u64 %rd0, %rd0;
    mov.u64 %rd1, 1;
    mov.u32 %r0, 7;
    {
        .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
        st.param.b64 [a], %rd0;
        st.param.b64 [b], %rd0;
        st.param.b32 [c], %r0;
        st.param.b64 [d], %rd0;
        st.param.b64 [e], %rd1;
        call __assertfail, (a, b, c, d, e);
    }
    ret;
}
"""

got = python("""
import ctypes, sys, torch
cuda = ctypes.CDLL("libcuda.so.1")
x = torch.ones(1 << 20).cuda()
other = torch.cuda.Stream()
module, function = ctypes.c_void_p(), ctypes.c_void_p()
for status in (cuda.cuModuleLoadData(ctypes.byref(module), sys.argv[1].encode()),
               cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fails"),
               cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)):
    assert not status, status

def tried(name, what):
    try:
        what()
        print(name, "fine")
    except RuntimeError as error:
        print(name, "raised", "device-side assert" in str(error))

def within_device():
    with torch.cuda.device(0):
        torch.cuda.synchronize()

def within_stream():
    with torch.cuda.stream(other):
        torch.empty(1 << 26, device="cuda")

tried("synchronize", torch.cuda.synchronize)
tried("device", within_device)
tried("stream", within_stream)
tried("empty", lambda: torch.empty(1 << 26, device="cuda"))
tried("copy", lambda: x.cpu())
tried("product", lambda: x.view(1024, 1024) @ x.view(1024, 1024))
tried("current_device", torch.cuda.current_device)
tried("device_count", torch.cuda.device_count)
print("at the end", flush=True)
""", PTX)
said = got.stdout.split("\n")
for name in ("synchronize", "device", "stream", "empty", "copy"):
    check(f"{name} raised True" in said, f"{name}: {got.stdout} {got.stderr[-500:]}")
check("product raised" in got.stdout, got.stdout)  # cuBLAS has its own words
check("current_device fine" in said and "device_count fine" in said, got.stdout)
check("at the end" in said and got.returncode == 0, f"{got.returncode}: {got.stderr[-500:]}")
