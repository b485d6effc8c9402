# arm: no agent
# Preloaded, with nobody to talk to: PyTorch works on the CPU, without noise and at once.
import torch
from check import check, python, raises

check(not torch.cuda.is_available(), "no CUDA")
check(torch.cuda.device_count() == 0, "no device")
x = torch.rand(64, 64)
check(torch.mm(x, x).shape == (64, 64), "the CPU computes")
raises((RuntimeError, AssertionError), lambda: x.cuda())
check(torch.mm(x, x).shape == (64, 64), "and goes on")

quiet = python("import torch\nassert not torch.cuda.is_available()\nassert not torch.cuda.device_count()\n"
               "torch.rand(8, 8) @ torch.rand(8, 8)")
check(quiet.returncode == 0, quiet.stderr[-300:])
check(quiet.stdout == "" and quiet.stderr == "", f"says nothing, not: {quiet.stderr[-400:]}")
