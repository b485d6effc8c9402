# Copies in every direction, of every kind of memory.
import torch
from check import check, equal

torch.manual_seed(0)
kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
         torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64]
for kind in kinds:
    x = (torch.rand(1000) * 100).to(kind)
    check(torch.equal(x.cuda().cpu(), x), f"{kind} there and back")
for n in (0, 1, 3, 4096, (8 << 20) + 5):
    x = torch.randint(0, 256, (n,), dtype=torch.uint8)
    check(torch.equal(x.cuda().cpu(), x), f"{n} bytes there and back")

x = torch.rand(1 << 20)
pinned = x.pin_memory()
check(pinned.is_pinned() and not x.is_pinned(), "pinned")
d = pinned.cuda(non_blocking=True)
back = torch.empty_like(x).pin_memory()
back.copy_(d, non_blocking=True)
torch.cuda.synchronize()
equal(back, x, "pinned, not blocking")

e = torch.empty_like(d)
e.copy_(d)
equal(e.cpu(), x, "on the device")
equal(d[1000:2000].cpu(), x[1000:2000], "a part")
d[:1000].copy_(x[5000:6000])
equal(d[:1000].cpu(), x[5000:6000], "into a part")
check(d[7].item() == x[5007].item(), ".item()")
check(d[:3].tolist() == x[5000:5003].tolist(), ".tolist()")

# A buffer that is written again right after the copy: the bytes of the call count.
h = torch.zeros(1 << 16)
copies = []
for i in range(20):
    h.fill_(i)
    copies.append(h.cuda(non_blocking=True))
for i, c in enumerate(copies):
    check(c.cpu().eq(i).all().item(), f"copy {i} of a buffer that changes")
