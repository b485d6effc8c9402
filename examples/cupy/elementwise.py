#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-Scholes option prices in CuPy: some 30 elementwise kernels for each step, and a sum.

Needs cupy only. build(device, small) makes the data and returns run(), as the examples of
examples/pytorch do; bench/torch times it.
"""
import argparse
import time

import cupy
import numpy


def build(device=None, small=False, show=False, xp=cupy):
    count, steps = (1000, 3) if small else (100_000, 200)
    line = xp.arange(count, dtype=xp.float32) / count
    price, strike, years = 5 + 25 * line, 1 + 99 * line[::-1], 0.25 + 9.75 * line

    def normal(d):
        k = 1 / (1 + 0.2316419 * abs(d))
        tail = xp.exp(-0.5 * d * d) * k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (
            -1.821255978 + k * 1.330274429)))) * 0.39894228
        return xp.where(d > 0, 1 - tail, tail)

    def run():
        total = xp.zeros((), dtype=xp.float64)
        for one in range(steps):
            rate, spread = 0.02, 0.3 + 0.001 * one
            d1 = (xp.log(price / strike) + (rate + 0.5 * spread * spread) * years) / (spread * xp.sqrt(years))
            d2 = d1 - spread * xp.sqrt(years)
            call = price * normal(d1) - strike * xp.exp(-rate * years) * normal(d2)
            total += call.sum(dtype=xp.float64)
        return {"total": float(total)}

    return run


def reference(small=False):
    """The same by NumPy, on the CPU."""
    return build(small=small, xp=numpy)()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="few options")
    options = parser.parse_args()
    print("device:", cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    work = build(small=options.small)
    for _ in range(2):
        start = time.perf_counter()
        for name, value in work().items():
            print(f"{name}: {value:.6f}")
        print(f"took {time.perf_counter() - start:.3f} s")
