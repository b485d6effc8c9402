# needs: kernels
# needs: 2.11
# torch.compile: kernels made by Triton at run time, forward and backward.
import torch
from check import equal

torch.manual_seed(0)


def shape(x, y):
    return torch.nn.functional.gelu(x * y + 1).sum(1).softmax(0)


fast = torch.compile(shape)
for size in (64, 64, 200):
    x, y = torch.randn(size, 300), torch.randn(size, 300)
    equal(fast(x.cuda(), y.cuda()), shape(x.double(), y.double()), f"compiled {size}", 1e-4)

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128),
                            torch.nn.Linear(128, 10))
x, target = torch.randn(32, 64), torch.randint(0, 10, (32,))
loss = torch.nn.functional.cross_entropy(model(x), target)
loss.backward()
want = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
gpu = model.cuda()
compiled = torch.compile(gpu)
got = torch.nn.functional.cross_entropy(compiled(x.cuda()), target.cuda())
got.backward()
equal(got, loss, "loss", 1e-4)
for p, w in zip(gpu.parameters(), want):
    equal(p.grad, w, "gradient", 1e-3)
