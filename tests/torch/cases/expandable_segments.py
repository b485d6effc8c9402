# arm: alone
# PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: the allocator maps memory itself.
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
from check import check, equal, raises

MIB = 1 << 20
x = torch.rand(256, 256)
d = x.cuda()
kept = []
for i in range(12):
    kept.append(torch.empty((i + 1) * MIB, dtype=torch.uint8, device="cuda"))
h = torch.randint(0, 256, (6 * MIB,), dtype=torch.uint8)
kept[5].copy_(h)
equal(kept[5].cpu(), h, "bytes in an expandable segment")
before = torch.cuda.memory_reserved()
del kept[6:]
torch.cuda.empty_cache()
check(torch.cuda.memory_reserved() < before, "memory is given back")
big = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")
equal(kept[5].cpu(), h, "bytes after segments moved")
equal(torch.mm(d, d), torch.mm(x, x), "a product", 1e-5)
check(any(s.get("is_expandable") for s in torch.cuda.memory_snapshot()), "segments are expandable")

# Too much is told as natively, and what is there stays.
_, total = torch.cuda.mem_get_info()
pieces = []


def fill():
    for _ in range(40):
        pieces.append(torch.empty(total // 16, dtype=torch.uint8, device="cuda"))


raises(torch.cuda.OutOfMemoryError, fill, "out of memory")
check(len(pieces) >= 4, f"{len(pieces)} pieces of a sixteenth went in")
pieces.clear()
equal(kept[5].cpu(), h, "bytes after running out of memory")
again = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
equal(torch.mm(d, d), torch.mm(x, x), "a product after that", 1e-5)
