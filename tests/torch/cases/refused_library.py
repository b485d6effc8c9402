# A library that is not served yet: an exception that tells, and the program goes on.
import torch
from check import check, equal, raises

x = torch.rand(64, 64)
d = x.cuda()
text = raises(RuntimeError, lambda: torch.fft.fft(torch.rand(64, dtype=torch.complex64).cuda()))
check("cuFFT" in text or "CUFFT" in text, text[:200])
equal(torch.mm(d, d), torch.mm(x, x), "a product after that", 1e-5)
