# os._exit, sys.exit with work in flight, an exception at the end, kill -9: no hang, the right status.
from check import check, python

START = ("import os, sys, torch\nx = torch.rand(512, 512, dtype=torch.float64).cuda()\n"
         "for _ in range(20): y = torch.mm(x, x)\n")
for end, want in (("os._exit(3)", 3), ("sys.exit(4)", 4), ("1 / 0", 1),
                  ("os.kill(os.getpid(), 9)", -9), ("pass", 0)):
    got = python(START + end, timeout=60)
    check(got.returncode == want, f"{end}: status {got.returncode}, not {want}: {got.stderr[-300:]}")
    if end == "pass":
        check(got.stderr == "", f"says nothing at its end, not: {got.stderr[-300:]}")
