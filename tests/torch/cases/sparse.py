# torch.sparse where cuSPARSE does all: products with vectors, addmm, triangular solutions of CSR matrices.
import torch
from check import equal

torch.manual_seed(3)
for dtype, near in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
    for rows, cols in ((1, 1), (7, 13), (96, 64)):
        a = torch.randn(rows, cols, dtype=dtype) * (torch.rand(rows, cols) < 0.5)
        a[0, 0] = 1
        x, v, c = (torch.randn(shape, dtype=dtype) for shape in ((cols, 24), (cols,), (rows, 24)))
        sparse = a.to_sparse_csr().cuda()
        equal(sparse @ v.cuda(), a @ v, f"{rows} by {cols} times a vector, {dtype}", near)
        equal(torch.addmm(c.cuda(), sparse, x.cuda(), beta=0.5, alpha=2), torch.addmm(c, a, x, beta=0.5, alpha=2),
              f"{rows} by {cols}, addmm, {dtype}", near)
    for n in (1, 17, 48):
        square = torch.randn(n, n, dtype=dtype).tril() * 0.1 + 3 * torch.eye(n, dtype=dtype)
        right = torch.randn(n, 5, dtype=dtype)
        for upper in (False, True):
            matrix = square.t().contiguous() if upper else square
            got = torch.triangular_solve(right.cuda(), matrix.to_sparse_csr().cuda(), upper=upper).solution
            equal(got, torch.linalg.solve_triangular(matrix, right, upper=upper),
                  f"a solution of {n}, upper {upper}, {dtype}", near)
