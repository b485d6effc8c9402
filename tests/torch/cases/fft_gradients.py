# torch.fft where PyTorch has a part in it: factors, copies, half precision, gradients.
# needs: kernels
import torch
from check import equal

torch.manual_seed(13)
# Over a dimension that is not the last, of what does not lie in a row.
x = torch.rand(6, 5, 4, dtype=torch.complex64)
for dim in range(3):
    got = torch.fft.fft(x.cuda().transpose(0, 2), dim=dim)
    equal(torch.view_as_real(got), torch.view_as_real(torch.fft.fft(x.transpose(0, 2), dim=dim)), f"dim {dim}", 1e-5)

# The gradient of a convolution by way of the spectrum.
a, b = torch.rand(2, 3, 33, requires_grad=True), torch.rand(3, 33, requires_grad=True)
grads = []
for place in ("cpu", "cuda"):
    p, q = (t.detach().to(place).requires_grad_() for t in (a, b))
    y = torch.fft.irfft(torch.fft.rfft(p) * torch.fft.rfft(q), 33)
    (y * y).sum().backward()
    grads.append((p.grad, q.grad))
for mine, want in zip(grads[1], grads[0]):
    equal(mine, want, "gradient", 1e-4)

h = torch.rand(4, 64).half()
equal(torch.view_as_real(torch.fft.rfft(h.cuda())).float(), torch.view_as_real(torch.fft.rfft(h.float())), "half", 1e-2)
