# needs: kernels
# needs: 2.11
# A kernel written in Triton, tuned and launched with changing sizes.
import torch
import triton
import triton.language as tl
from check import equal


@triton.autotune([triton.Config({"BLOCK": n}) for n in (128, 512)], key=["n"])
@triton.jit
def saxpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, a * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def row_sum(x, out, width, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    tl.store(out + row, tl.sum(tl.load(x + row * width + at, mask=at < width, other=0.0)))


for n in (1, 1000, 100_003):
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(x)
    saxpy[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, 2.5, n)
    equal(out, 2.5 * x + y, f"saxpy of {n}", 1e-6)
x = torch.randn(50, 700, device="cuda")
sums = torch.empty(50, device="cuda")
row_sum[(50,)](x, sums, 700, WIDTH=1024)
equal(sums, x.double().sum(1), "sums of rows", 1e-5)
