#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A softmax of rows as one Triton kernel, launched on PyTorch's tensors."""
import argparse

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * width + columns, mask=columns < width, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * width + columns, powers / tl.sum(powers, axis=0), mask=columns < width)


def numbers(small):
    torch.manual_seed(3)
    return torch.randn(64 if small else 4096, 781)


def summed_up(rows):
    return {"first": float(rows[0, 0]), "largest": float(rows.max()), "squares": float((rows * rows).sum())}


def build(device=None, small=False, show=False):
    x = numbers(small).cuda()
    out = torch.empty_like(x)

    def run():
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return summed_up(out.cpu())

    return run


def reference(small=False):
    """The same by PyTorch, on the CPU."""
    return summed_up(numbers(small).softmax(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="little data")
    options = parser.parse_args()
    for name, value in build(small=options.small)().items():
        print(f"{name}: {value:.6f}, on the CPU {reference(options.small)[name]:.6f}")
