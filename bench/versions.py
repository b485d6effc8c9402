#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of vcuda side by side: does a change make calls and copies slower?

    bench/versions.py --before DIST [--dist .dist] [--pairs 9] [--json FILE] [--driver software]

Both are folders as `make dist` makes them; bench/before.sh makes one of an older commit.  Each has
an agent and a sidecar of its own; the same bench/micro runs in turn through the one and through the
other, every second pair the other way round, after one pair that is not counted.  What is compared
is the ratio of each pair.  Exit status 1 if a figure is below 0.98 of before with 95 % confidence.
bench/torch/versions.py compares PyTorch's workloads so.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

from run import HERE, ROWS, measure, stack
from ratios import interval

HELD = 0.98


def sample(dist, arms, pairs):
    """{arm: [figures of each pair]}"""
    samples = {name: [] for name in arms}
    for pair in range(pairs + 1):
        for name in sorted(arms, reverse=pair % 2):
            time.sleep(1.5)  # a warm worker gets ready again
            served = arms[name]
            figures = measure(served.pinned(served.client, [f"{dist}/bench/micro"]), served.env(),
                              name)
            if pair:  # the first is for warming up
                samples[name].append(figures)
    return samples


def compare(samples, name, better):
    """Medians of both arms, the ratio as speed (after by before) and its interval."""
    before, after = ([figures[name] for figures in samples[arm]] for arm in ("before", "after"))
    ratios = [new / old if better == "higher" else old / new for old, new in zip(before, after)]
    return (statistics.median(before), statistics.median(after), statistics.median(ratios),
            *interval(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--before", required=True, help="the other build")
    parser.add_argument("--dist", default=os.path.join(HERE, "..", ".dist"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--driver", default="nvidia", help="of the agents: nvidia or software")
    parser.add_argument("--json", help="everything that was measured, into this file")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error("--pairs: at least 1")
    dist, arms = os.path.abspath(options.dist), {}
    try:
        with contextlib.ExitStack() as running:
            for name, folder in (("before", options.before), ("after", dist)):
                arms[name] = running.enter_context(
                    stack.Stack(folder, options.driver, options=("--warm", "2")))
            samples = sample(dist, arms, options.pairs)
    except stack.Failed as failure:
        sys.exit(f"bench: {failure}")
    print(f"{options.pairs} pairs, medians; ratio of the speeds, after by before, with its 95 % interval")
    slower = 0
    for name, unit, better, _ in ROWS:
        before, after, ratio, low, high = compare(samples, name, better)
        slower += high < HELD
        print(f"{name:24}{before:12.2f}{after:12.2f} {unit:5}{ratio:8.3f}  ({low:.3f}-{high:.3f})"
              f"{'  slower' if high < HELD else ''}")
    print(f"{len(ROWS) - slower} figures as fast as before, {slower} slower")
    if options.json:
        with open(options.json, "w") as out:
            json.dump(samples, out, indent=1)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
