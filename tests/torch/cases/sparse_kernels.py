# torch.sparse with PyTorch's own kernels: products, sums and gradients of CSR, COO and BSR matrices are the CPU's.
# needs: kernels
import torch
from check import equal

torch.manual_seed(3)


def same(got, want, text, near):
    got, want = got.detach().cpu(), want.detach()
    real = torch.view_as_real if want.is_complex() else torch.Tensor.double
    equal(real(got.resolve_conj()), real(want.resolve_conj()), text, near)


def both(shape, dtype, density=0.3):
    """A sparse matrix as a dense one, on the CPU and on the GPU."""
    x = torch.randn(shape, dtype=dtype) * (torch.rand(shape) < density)
    return x, x.cuda()


for dtype, near in ((torch.float32, 1e-5), (torch.float64, 1e-12), (torch.complex64, 1e-5)):
    a, d = both((96, 64), dtype)
    x, v = torch.randn(64, 24, dtype=dtype), torch.randn(64, dtype=dtype)
    for layout in ("csr", "coo"):
        sparse = d.to_sparse_csr() if layout == "csr" else d.to_sparse_coo()
        same(sparse @ x.cuda(), a @ x, f"{layout} times a matrix, {dtype}", near)
        same(sparse @ v.cuda(), a @ v, f"{layout} times a vector, {dtype}", near)
    c = torch.randn(96, 24, dtype=dtype)
    same(torch.addmm(c.cuda(), d.to_sparse_csr(), x.cuda(), beta=0.5, alpha=2), torch.addmm(c, a, x, beta=0.5, alpha=2),
          f"addmm, {dtype}", near)
    left, right = torch.randn(96, 24, dtype=dtype), torch.randn(24, 64, dtype=dtype)
    got = torch.sparse.sampled_addmm(d.to_sparse_csr(), left.cuda(), right.cuda())
    same(got.to_dense(), a + (left @ right) * (a != 0), f"sampled_addmm, {dtype}", near)
    b, e = both((64, 48), dtype)
    same((d.to_sparse_csr() @ e.to_sparse_csr()).to_dense(), a @ b, f"csr times csr, {dtype}", near)
    square = torch.randn(48, 48, dtype=dtype).tril() * 0.1 + 3 * torch.eye(48, dtype=dtype)
    rhs = torch.randn(48, 5, dtype=dtype)
    same(torch.triangular_solve(rhs.cuda(), square.cuda().to_sparse_csr(), upper=False).solution,
          torch.linalg.solve_triangular(square, rhs, upper=False), f"triangular_solve, {dtype}", near * 10)
    block = d.to_sparse_bsr((8, 8))
    same(block @ v.cuda(), a @ v, f"bsr times a vector, {dtype}", near)
    same(block @ x.cuda(), a @ x, f"bsr times a matrix, {dtype}", near)
    other, f = both((96, 64), dtype)
    same((d.to_sparse_csr() + f.to_sparse_csr()).to_dense(), a + other, f"csr plus csr, {dtype}", near)

# Gradients through a product, of both sides.
a, _ = both((40, 30), torch.float64)
x = torch.randn(30, 7, dtype=torch.float64)
grads = []
for device in ("cpu", "cuda"):
    left = a.to(device).to_sparse_coo().requires_grad_()
    right = x.detach().to(device).requires_grad_()
    torch.sparse.mm(left, right).square().sum().backward()
    grads.append((left.grad.to_dense().cpu() * (a != 0), right.grad.cpu()))
same(grads[1][0], grads[0][0], "the gradient of the sparse side", 1e-12)
same(grads[1][1], grads[0][1], "the gradient of the dense side", 1e-12)

# The same shapes with other numbers of elements.
for density in (0.1, 0.2, 0.5):
    a, d = both((50, 50), torch.float32, density)
    same(d.to_sparse_csr() @ d, a @ a, f"density {density}", 1e-5)
