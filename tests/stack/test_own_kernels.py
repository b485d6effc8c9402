# SPDX-License-Identifier: Apache-2.0
"""Kernel nodes of libraries, whose modules a program never had: they are read, changed and copied like its own."""
import os
import subprocess
import sys

from stack import BUILD, environment, preloaded, stack

HERE = os.path.dirname(os.path.abspath(__file__))


def test_a_kernel_of_a_library_has_a_function():
    with stack(driver=os.path.join(BUILD, "stack", "libown_kernels-driver.so")) as s:
        got = subprocess.run([sys.executable, os.path.join(HERE, "own_kernels.py")],
                             env=environment({"VCUDA_SOCKET": s.sidecar.socket, "LD_PRELOAD": preloaded()}),
                             capture_output=True, text=True, timeout=60)
        assert (got.returncode, got.stdout) == (0, "right\n"), (got.stdout, got.stderr[-1000:])
