#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits a polynomial of the third degree to a sine, by hand-written gradient descent.

2000 steps of 30 tiny kernels, each of which ends with `.item()`: nothing but call overhead.
"""
import math

import torch

import common


def build(device, small=False, show=False):
    steps = 200 if small else 2000
    rate = 1e-6
    x = torch.linspace(-math.pi, math.pi, 2000, device=device)
    y = torch.sin(x)

    def run():
        common.seeded()
        a, b, c, d = (torch.randn((), device=device) for _ in range(4))
        loss = 0.0
        for _ in common.progress(range(steps), "fit", show):
            guess = a + b * x + c * x ** 2 + d * x ** 3
            loss = (guess - y).pow(2).sum().item()
            slope = 2.0 * (guess - y)
            slope_a = slope.sum()
            slope_b = (slope * x).sum()
            slope_c = (slope * x ** 2).sum()
            slope_d = (slope * x ** 3).sum()
            a -= rate * slope_a
            b -= rate * slope_b
            c -= rate * slope_c
            d -= rate * slope_d
        return {"loss": loss, "coefficients": torch.stack([a, b, c, d]).cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build, random_weights=False)
