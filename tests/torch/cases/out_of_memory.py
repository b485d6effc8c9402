# arm: alone
# Too much memory: torch.cuda.OutOfMemoryError at the call, and the program goes on.
import torch
from check import check, equal, raises

x = torch.rand(128, 128)
_, total = torch.cuda.mem_get_info()
d = x.cuda()
for _ in range(3):
    text = raises(torch.cuda.OutOfMemoryError,
                  lambda: torch.empty(total * 2, dtype=torch.uint8, device="cuda"), "out of memory")
    check("GiB" in text or "MiB" in text, text[:200])
    equal(torch.mm(d, d), torch.mm(x, x), "a product after that", 1e-5)
check(torch.cuda.memory_stats()["num_ooms"] == 3, "counted")

# Piece by piece, until it is full; then room again.
pieces = []
size = max(total // 16, 1 << 20)


def fill():
    for _ in range(40):
        pieces.append(torch.empty(size, dtype=torch.uint8, device="cuda"))


raises(torch.cuda.OutOfMemoryError, fill, "out of memory")
check(len(pieces) >= 4, f"{len(pieces)} pieces of a sixteenth went in")
pieces.clear()
again = torch.empty(4 * size, dtype=torch.uint8, device="cuda")
equal(torch.mm(d, d), torch.mm(x, x), "a product after all that", 1e-5)
