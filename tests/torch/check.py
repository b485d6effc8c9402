# SPDX-License-Identifier: Apache-2.0
"""What the cases share.  A case is a program: it ends with 0 if everything held, and says in its
first lines what it needs:

    # needs: kernels      machine code of PyTorch's runs (a real GPU)
    # needs: 2.11         that PyTorch or newer
    # needs: 2 GPUs       so many (the software GPU always is two)
    # arm: no agent       runs preloaded, with nobody to talk to
    # arm: alone          fills the device or looks at what is free: no other case runs beside it
"""
import os
import subprocess
import sys
import time

import torch

OLD = torch.__version__ < "2.4"


def check(held, text):
    if not held:
        print(f"does not hold: {text}", file=sys.stderr)
        sys.exit(1)


def equal(got, want, text, within=0.0):
    """Both as f64 on the CPU; WITHIN is relative to the largest value."""
    got, want = got.detach().cpu().double(), want.detach().cpu().double()
    check(got.shape == want.shape, f"{text}: shape {tuple(got.shape)}, not {tuple(want.shape)}")
    if not want.numel():
        return
    worst = (got - want).abs().max().item()
    limit = within * max(want.abs().max().item(), 1e-30)
    check(worst <= limit, f"{text}: differs by {worst:.3g}, at most {limit:.3g}")


def raises(kinds, what, *words):
    """The text of the exception that WHAT() raises; it holds all WORDS."""
    try:
        what()
    except kinds as error:
        text = str(error)
        for word in words:
            check(word in text, f"'{word}' is not in: {text[:300]}")
        return text
    check(False, f"no {kinds} was raised")


def python(code, *arguments, timeout=60, env=None):
    """A Python of the same environment that runs CODE."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True,
                          timeout=timeout, env=env)


def gone(seconds, what, text):
    """Waits until WHAT() holds."""
    end = time.monotonic() + seconds
    while not what():
        check(time.monotonic() < end, f"not within {seconds} s: {text}")
        time.sleep(0.05)


def driver():
    return os.environ["VCUDA_TEST_DRIVER"]
