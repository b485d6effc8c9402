#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/COMPATIBILITY.md out of expected.txt, on standard output."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = """# Other people's programs

(Made by `tests/numba/document.py`; `make generate`.)

`make test-numba` runs the CUDA tests of Numba 0.61.2 (1509, from its wheel, unmodified) through `vcuda run` in front of
an agent on the software GPU. On a machine with a GPU `tests/gpu/numba.sh` runs them natively and
through vcuda and names each test that ends differently. Compilers are the program's own: Numba's LLVM, CUDA 12.4's
libnvvm and CUDA 12.9's NVRTC.

The tests below need not pass; every other one does, or skips itself.
"""
WHERE = {"software": "On the software GPU", "nvidia": "On an H200, natively and through vcuda",
         "every": "Everywhere"}


def main():
    print(HEAD, end="")
    with open(os.path.join(HERE, "expected.txt")) as file:
        parts = re.findall(r"^(\w+): (.+)\n((?:\t.+\n)+)", file.read(), re.M)
    for driver, title in WHERE.items():
        rows = [(reason, tests.split()) for where, reason, tests in parts if where == driver]
        if not rows:
            continue
        print(f"\n## {title}\n\n| reason | tests |\n|---|---|")
        for reason, tests in rows:
            print(f"| {reason} | {' '.join(f'`{test}`' for test in tests)} |")


if __name__ == "__main__":
    main()
