# Streams and events: order across streams, timing, queries.
import time

import torch
from check import check, equal

a, b = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
check(a != b and a.cuda_stream != b.cuda_stream, "two streams")
x = torch.rand(256, 256, dtype=torch.float64)
want = x
with torch.cuda.stream(a):
    d = x.pin_memory().cuda(non_blocking=True)
    for _ in range(4):
        d = torch.mm(d, d)
        d = torch.mm(d, torch.eye(256, dtype=torch.float64).cuda(non_blocking=True))
    done = torch.cuda.Event()
    done.record(a)
for _ in range(4):
    want = torch.mm(want, want)
b.wait_event(done)
with torch.cuda.stream(b):
    e = torch.empty_like(d)
    e.copy_(d, non_blocking=True)
    d.record_stream(b)
torch.cuda.current_stream().wait_stream(b)
equal(e.cpu(), want, "across streams", 1e-12)
check(done.query(), "an event that was waited for is done")
a.synchronize()
check(a.query() and b.query(), "streams are done")
check(torch.cuda.current_stream() == torch.cuda.default_stream(), "back on the default stream")

start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
begun = time.perf_counter()
start.record()
m = torch.rand(512, 512, dtype=torch.float64).cuda()
for _ in range(5):
    torch.mm(m, m)
end.record()
end.synchronize()
wall = (time.perf_counter() - begun) * 1e3
took = start.elapsed_time(end)
check(0 < took <= wall + 1, f"elapsed {took} ms in {wall} ms")
end.wait()
torch.cuda.synchronize()

# A stream that is not PyTorch's: its number is the stream's own, by whose lowest bit PyTorch knows it.
made = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
runtime = torch.cuda.cudart()
for _ in range(4):
    made.append(torch.cuda.Event())
    made[-1].record()
    number = torch.empty(1, dtype=torch.int64)
    check(int(runtime.cudaStreamCreate(number.data_ptr())) == 0, "a stream of the runtime's")
    other = torch.cuda.ExternalStream(int(number))
    check(other.cuda_stream == int(number), f"{other.cuda_stream:#x} is {int(number):#x}")
    with torch.cuda.stream(other):
        equal(torch.mm(d, d).cpu(), torch.mm(want, want), "a product there", 1e-12)
    check(int(runtime.cudaStreamDestroy(int(number))) == 0, "its end")
