# A module without PTX on the software GPU: a Python exception that says so, and life goes on.
import torch
from check import check, driver, equal, raises

x = torch.rand(64, 64)
d = x.cuda()
if driver() == "nvidia":
    equal(d * 2 + 1, x * 2 + 1, "elementwise")
else:
    text = raises(RuntimeError, lambda: (d * 2).cpu(), "no kernel image")
    check("CUDA error" in text, text[:200])
equal(torch.mm(d, d), torch.mm(x, x), "a product after that", 1e-5)
for _ in range(3):
    if driver() != "nvidia":
        raises(RuntimeError, lambda: (d + 1).cpu(), "no kernel image")
equal(d.cpu(), x, "the data is untouched")
