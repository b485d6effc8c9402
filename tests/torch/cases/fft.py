# torch.fft against the CPU: complex and real, dimensions, sizes, precisions.
import torch
from check import check, equal

torch.manual_seed(13)
for real, number, within in ((torch.float32, torch.complex64, 1e-5), (torch.float64, torch.complex128, 1e-12)):
    for shape in ((1,), (7,), (64,), (3, 97), (2, 5, 8)):
        x = torch.rand(shape, dtype=number)
        r = torch.rand(shape, dtype=real)
        d, e = x.cuda(), r.cuda()
        equal(torch.view_as_real(torch.fft.fft(d)), torch.view_as_real(torch.fft.fft(x)), f"fft {shape}", within)
        for norm in ("backward", "forward"):  # the other direction has a factor, by a kernel of PyTorch's
            inverse = {"backward": torch.fft.fftn, "forward": torch.fft.ifftn}[norm]
            equal(torch.view_as_real(inverse(d, norm=norm)), torch.view_as_real(inverse(x, norm=norm)),
                  f"{norm} {shape}", within)
        half = torch.fft.rfftn(e)
        equal(torch.view_as_real(half), torch.view_as_real(torch.fft.rfftn(r)), f"rfftn {shape}", within)
        equal(torch.fft.irfftn(half, shape, norm="forward"), r * r.numel(), f"and back {shape}", within)

# One plan for each shape, in whatever stream it runs.
d = torch.rand(8, 128, dtype=torch.complex64).cuda()
want = torch.fft.fft(d)
torch.cuda.synchronize()
streams = [torch.cuda.Stream() for _ in range(3)]
got = []
for stream in streams:
    with torch.cuda.stream(stream):
        got.append(torch.fft.fft(d))
torch.cuda.synchronize()
for one in got:
    equal(torch.view_as_real(one), torch.view_as_real(want), "stream")
check(torch.backends.cuda.cufft_plan_cache[0].size > 0, "plans are kept by PyTorch too")
