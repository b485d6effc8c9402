# needs: kernels
# A failed assertion on the device: a Python exception, sticky, and another process is untouched.
import torch
from check import check, python

got = python("""
import torch
x = torch.arange(10, device="cuda")
try:
    y = x[torch.tensor([3, 99], device="cuda")]
    torch.cuda.synchronize()
    print("nothing was raised")
except RuntimeError as error:
    print("raised", str(error).splitlines()[0])
try:
    torch.ones(4, device="cuda").sum().item()
    print("usable again")
except RuntimeError as error:
    print("sticky", str(error).splitlines()[0])
""")
check("raised" in got.stdout and "device-side assert" in got.stdout, got.stdout + got.stderr[-300:])
check("sticky" in got.stdout, got.stdout)
check("index out of bounds" in got.stdout + got.stderr, "the assertion's text is printed")
check(torch.ones(4, device="cuda").sum().item() == 4, "this process computes")
