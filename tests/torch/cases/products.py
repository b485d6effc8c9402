# mm, addmm, bmm and what they make up, in every type, equal to the CPU's.
import torch
from check import OLD, check, equal

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
WITHIN = {torch.float64: 1e-13, torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
for kind, within in WITHIN.items():
    a, b, c = (torch.randn(*shape).to(kind) for shape in ((70, 50), (50, 90), (70, 90)))
    wide = torch.mm(a.double(), b.double())
    equal(torch.mm(a.cuda(), b.cuda()), wide, f"mm {kind}", within)
    equal(torch.mm(b.cuda().t(), a.cuda().t()), wide.t(), f"mm of transposed {kind}", within)
    equal(torch.addmm(c.cuda(), a.cuda(), b.cuda(), beta=0.5, alpha=2),
          0.5 * c.double() + 2 * wide, f"addmm {kind}", within)
    x, y = torch.randn(6, 20, 30).to(kind), torch.randn(6, 30, 10).to(kind)
    batched = torch.bmm(x.double(), y.double())
    equal(torch.bmm(x.cuda(), y.cuda()), batched, f"bmm {kind}", within)
    z = torch.randn(6, 20, 10).to(kind)
    equal(torch.baddbmm(z.cuda(), x.cuda(), y.cuda()), z.double() + batched, f"baddbmm {kind}",
          within)
    equal(torch.matmul(x.cuda(), y.cuda()), batched, f"matmul {kind}", within)
    out = torch.empty(70, 90, dtype=kind, device="cuda")
    torch.mm(a.cuda(), b.cuda(), out=out)
    equal(out, wide, f"mm into a tensor {kind}", within)

for kind in (torch.float64, torch.float32):
    v, w, m = torch.randn(50).to(kind), torch.randn(50).to(kind), torch.randn(70, 50).to(kind)
    equal(torch.mv(m.cuda(), v.cuda()), torch.mv(m.double(), v.double()), f"mv {kind}", 1e-5)
    equal(torch.dot(v.cuda(), w.cuda()), torch.dot(v.double(), w.double()), f"dot {kind}", 1e-5)

# The order of frames: a product's input is overwritten after it, many times.
a = torch.randn(64, 64, dtype=torch.float64)
d = a.cuda()
sums, want = [], []
for i in range(50):
    fresh = a + i
    d.copy_(fresh)
    sums.append(torch.mm(d, d))
    want.append(torch.mm(fresh, fresh))
for i in range(50):
    equal(sums[i], want[i], f"product {i}", 1e-12)
