# Convolutions by way of cuDNN, forward and backward, equal to the CPU's.
import torch
from check import equal
from torch.nn import functional as F

torch.manual_seed(0)
torch.backends.cudnn.allow_tf32 = False
WITHIN = {torch.float32: 1e-5, torch.float16: 3e-3}
SHAPES = [  # image, weight, options
    ((2, 3, 16, 16), (4, 3, 3, 3), {}),
    ((1, 8, 20, 12), (6, 8, 5, 5), {"stride": 2, "padding": 2}),
    ((2, 4, 9, 9), (8, 4, 1, 1), {}),
]
for kind, within in WITHIN.items():
    for image, weight, options in SHAPES:
        x, w = torch.randn(*image).to(kind), torch.randn(*weight).to(kind)
        want = F.conv2d(x.double(), w.double(), **options)
        for _ in range(2):  # asked for the first time, and posted
            equal(F.conv2d(x.cuda(), w.cuda(), **options), want, f"{kind} {image} {options}",
                  within)

x, w = torch.randn(2, 3, 16, 16), torch.randn(4, 3, 3, 3)
p, q = x.double().requires_grad_(), w.double().requires_grad_()
out = F.conv2d(p, q)
g = torch.randn_like(out)
out.backward(g)
a, b = x.cuda().requires_grad_(), w.cuda().requires_grad_()
F.conv2d(a, b).backward(g.float().cuda())
equal(a.grad, p.grad, "gradient of the image", 1e-5)
equal(b.grad, q.grad, "gradient of the weight", 1e-5)
