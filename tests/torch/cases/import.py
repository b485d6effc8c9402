# Importing, and what PyTorch says of the device without using it.
import torch
from check import check, python

check(torch.cuda.is_available(), "torch.cuda.is_available()")
check(torch.cuda.device_count() >= 1, "a device is there")
check(torch.version.cuda is not None, "a CUDA build")
check(torch.backends.cuda.is_built(), "torch.backends.cuda.is_built()")
check(not torch.cuda.is_initialized(), "asking has not initialised")

quiet = python("import torch; torch.cuda.is_available()")
check(quiet.returncode == 0, quiet.stderr[-300:])
check(quiet.stderr == "" and quiet.stdout == "", f"says nothing, not: {quiet.stderr[-300:]}")

# PYTORCH_NVML_BASED_CUDA_CHECK=1 asks NVML, so that a fork after it may still use CUDA.
code = """
import os, torch
assert torch.cuda.is_available()
pid = os.fork()
if not pid:
    torch.ones(4).cuda().cpu()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
import os
env = dict(os.environ, PYTORCH_NVML_BASED_CUDA_CHECK="1")
forked = python(code, env=env)
check(forked.returncode == 0, f"asked by NVML, then forked: {forked.stderr[-300:]}")
