# Products in a CUDA graph, replayed with changed inputs. torch.cuda.graph fills a tensor of its own,
# with a kernel of PyTorch's: the capture is made by hand here, so that it runs on any device.
import ctypes

import torch
from check import check, equal

major = torch.version.cuda.split(".")[0]
runtime = ctypes.CDLL(f"libcudart.so.{major}")


def call(name, *arguments):
    status = getattr(runtime, name)(*arguments)
    check(status == 0, f"{name} gave {status}")


torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(0)
a, b = torch.randn(48, 48).cuda(), torch.randn(48, 48).cuda()
c, d = torch.empty(48, 48, device="cuda"), torch.empty(48, 48, device="cuda")
side = torch.cuda.Stream()
stream = ctypes.c_void_p(side.cuda_stream)
graph, executable = ctypes.c_void_p(), ctypes.c_void_p()


def work():
    torch.mm(a, b, out=c)
    torch.mm(c, b, out=d)


with torch.cuda.stream(side):
    work()
torch.cuda.synchronize()
kept = d.cpu()
with torch.cuda.stream(side):
    check(not torch.cuda.is_current_stream_capturing(), "captures before it begins")
    call("cudaStreamBeginCapture", stream, 1)
    check(torch.cuda.is_current_stream_capturing(), "does not capture")
    work()
    call("cudaStreamEndCapture", stream, ctypes.byref(graph))
call("cudaGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(1))
call("cudaGraphDestroy", graph)
equal(d, kept, "nothing has run")
for i in range(5):
    x, y = torch.randn(48, 48), torch.randn(48, 48)
    a.copy_(x)
    b.copy_(y)
    torch.cuda.synchronize()
    call("cudaGraphLaunch", executable, stream)
    side.synchronize()
    equal(d, (x.double() @ y.double()) @ y.double(), f"replay {i}", 1e-4)
call("cudaGraphExecDestroy", executable)
