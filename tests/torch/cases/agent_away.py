# arm: no agent
# An agent is named and does not answer: the CPU works, a use of CUDA says what is wrong.
import os

from check import check, python

env = dict(os.environ, REMOTE_GPU_ADDRESS="127.0.0.1:1")
got = python("""
import torch
assert not torch.cuda.is_available()
assert torch.cuda.device_count() == 0
torch.rand(8, 8) @ torch.rand(8, 8)
try:
    torch.ones(2).cuda()
except (RuntimeError, AssertionError) as error:
    print(error)
""", env=env, timeout=60)
check(got.returncode == 0, f"status {got.returncode}: {got.stderr[-400:]}")
check(got.stdout.strip(), "using CUDA raises an exception")
