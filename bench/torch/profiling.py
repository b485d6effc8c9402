#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler costs, natively and through vcuda: training steps of a small network without it and under it.

    bench/torch/profiling.py [--dist .dist] [--driver nvidia] [--steps 100] [--pairs 5]

An agent, a sidecar and this machine's PyTorch; each pair runs natively and then remotely.  Times are of all steps, to
the end of the last; "whole" also has the profile's begin and end and what PyTorch makes of the records.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import stack

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arm(steps):
    import torch
    from torch.profiler import ProfilerActivity, profile
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(64, 512, device="cuda")

    def run():
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start)

    def profiled():
        start = time.perf_counter()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            inner = run()
        return inner, 1e3 * (time.perf_counter() - start), seen

    run(), profiled()
    plain = statistics.median(run() for _ in range(3))
    inner, whole, seen = profiled()
    events = sum(e.device_type == torch.autograd.DeviceType.CUDA for e in seen.events())
    print(json.dumps({"plain": plain, "profiled": inner, "whole": whole, "events": events}))


def measured(command, env):
    got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if got.returncode:
        sys.exit(f"{' '.join(command)}: status {got.returncode}\n{got.stderr[-800:]}")
    return json.loads(got.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--driver", default="nvidia")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--arm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        return arm(options.steps)
    command = [sys.executable, os.path.abspath(__file__), "--arm", "--steps", str(options.steps)]
    pairs = []
    with stack.Stack(options.dist, options.driver, None, stack.library_folders(), pin=False) as served:
        for _ in range(options.pairs):
            pairs.append((measured(command, dict(os.environ)), measured(stack.masked(command), served.env())))
    print(f"{options.pairs} pairs, medians, {options.steps} steps; ms        native    remote    ratio")
    for what in ("plain", "profiled", "whole"):
        native, remote = (statistics.median(pair[i][what] for pair in pairs) for i in (0, 1))
        ratio = statistics.median(pair[1][what] / pair[0][what] for pair in pairs)
        print(f"{what:40} {native:9.1f} {remote:9.1f} {ratio:8.3f}")
    print(f"records of the GPU: {pairs[-1][0]['events']} natively, {pairs[-1][1]['events']} remotely")
    return 0


if __name__ == "__main__":
    sys.exit(main())
