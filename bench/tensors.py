#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors with names against a plain round trip of the same session (cuMemGetInfo), in one run, in turn.

    bench/tensors.py [--build FOLDER] [--driver software|nvidia] [--rounds N] [--json FILE]

Prints medians in microseconds, and each as so many round trips. With Redis (--registry) each create and get is an answer of
Redis too. On the software GPU the memory is the CPU's and says little of a GPU's driver, which makes and maps it.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MANY = 300


def child(rounds):
    """Under vcuda: {what: [microseconds]} as JSON."""
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import vcuda
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    for status in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
        assert not status, status
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    samples = {}

    def timed(what, do):
        begin = time.perf_counter()
        got = do()
        samples.setdefault(what, []).append((time.perf_counter() - begin) * 1e6)
        return got

    held = [vcuda.create(f"bench{i}", "u8", (4096,), new=True) for i in range(MANY)]
    for one in held:
        one.seal()
    for i in range(rounds):
        for _ in range(5):
            timed("round trip", lambda: cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
            timed("get", lambda: vcuda.get("bench0")).close()
            timed("create", lambda: vcuda.create("bench", "u8", (4096,), new=True)).close()
            timed("stat", lambda: vcuda.stat("bench1"))
        for one in timed(f"get of {MANY}", lambda: vcuda.get([t.name for t in held])):
            one.close()
    print(json.dumps(samples))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--driver", default="software")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--registry", help="a Redis: unix:///PATH or tcp://HOST:PORT")
    parser.add_argument("--json")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.rounds)
        return
    sys.path.append(os.path.join(HERE, "torch"))
    from stack import Stack
    settings = ["--set", "store.bytes=2GiB"]
    if options.registry:
        settings += ["--set", f"store.registry={options.registry}"]
    with Stack(options.build, options.driver, options=settings, pin=False) as stack:
        got = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", "--rounds", str(options.rounds)],
                             env=stack.env(), capture_output=True, text=True, timeout=300)
    if got.returncode:
        sys.exit(got.stderr)
    medians = {what: statistics.median(times) for what, times in json.loads(got.stdout.splitlines()[-1]).items()}
    for what, median in medians.items():
        print(f"{what:14} {median:10.1f} us  {median / medians['round trip']:8.2f} round trips")
    if options.json:
        with open(options.json, "w") as out:
            json.dump(medians, out)


if __name__ == "__main__":
    main()
