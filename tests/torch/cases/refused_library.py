# A library that is not served yet: an exception that tells, and the program goes on.
import torch
from check import check, equal, raises

x = torch.rand(64, 64)
d = x.cuda()
text = raises(RuntimeError, lambda: torch.cuda.nccl.all_reduce([d]))
check("NCCL" in text.upper(), text[:200])
equal(torch.mm(d, d), torch.mm(x, x), "a product after that", 1e-5)
