#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of vcuda side by side: does a change make PyTorch slower?

    bench/torch/versions.py --before DIST [--dist .dist] [--only poly,t5] [--pairs 9] [--json FILE]
                            [--budget SECONDS]

Both are folders as `make dist` makes them.  Each has an agent, a sidecar and a process of its own
(arm.py) on one machine with a GPU; each workload runs in turn with the one and with the other,
PAIRS times after one pair that is not counted, and every second pair the other way round.  What is
compared is the ratio of the times of each pair.  Exit status 1 if a workload fails or if after is
slower than 1 / 0.98 of before with 95 % confidence.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import run
import stack
from ratios import interval
from workloads import BY_NAME, WORKLOADS

SLOWER = 1 / 0.98


def arm(name, served, options):
    command = served.pinned(served.client, [sys.executable, run.ARM])
    env = served.env(0, ARM_DEVICE="cuda", VCUDA_STATS="/dev/null")
    if options.mask:
        command = stack.masked(command)
    return run.Arm(name, command, env, f"{served.work}/{name}.log")


def measure(workload, arms, options, end):
    row = {"name": workload.name, "title": workload.title, "pairs": []}
    try:
        for each in arms:
            each.end()
            each.order(120, do="setup", name=workload.name, small=options.small)
        for pair in range(options.pairs + 1):
            turn = arms if pair % 2 else arms[::-1]
            seconds = {each.name: each.order(60, do="run")["seconds"] for each in turn}
            if pair:
                row["pairs"].append([seconds[each.name] for each in arms])
            if time.monotonic() > end and len(row["pairs"]) >= 3:
                break
        for each in arms:
            each.order(30, do="drop")
    except stack.Failed as error:
        row["error"] = str(error)
        for each in arms:
            each.end()
        return row
    ratios = [after / before for before, after in row["pairs"]]
    row["before"], row["after"] = (statistics.median(column) for column in zip(*row["pairs"]))
    row["ratio"], row["interval"] = statistics.median(ratios), interval(ratios)
    row["slower"] = row["interval"][0] > SLOWER
    return row


def line_of(row):
    if "error" in row:
        return f"{row['name']:12} fail: {row['error'][:150]}"
    low, high = row["interval"]
    return (f"{row['name']:12}{row['before'] * 1e3:>10.1f}{row['after'] * 1e3:>10.1f} ms"
            f"{row['ratio']:>9.3f}  ({low:.3f}-{high:.3f}) {len(row['pairs'])} pairs"
            f"{'  slower' if row['slower'] else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    names = [workload.name for workload in WORKLOADS]
    root = os.path.join(run.HERE, "..", "..")
    parser.add_argument("--before", required=True, help="the other build")
    parser.add_argument("--dist", default=os.path.join(root, ".dist"))
    parser.add_argument("--only", help="workloads: " + ", ".join(names))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--json", help="everything that was measured, into this file")
    parser.add_argument("--budget", type=float, default=500, help="seconds; default 500")
    parser.add_argument("--no-mask", dest="mask", action="store_false",
                        help="leave /dev/nvidia* visible (without root)")
    parser.add_argument("--driver", default="nvidia", help="of the agent: nvidia or software")
    parser.add_argument("--agent-libraries", default="", help="LD_LIBRARY_PATH of the agent")
    parser.add_argument("--small", action="store_true", help="small models")
    options = parser.parse_args()
    only = options.only.split(",") if options.only else [w.name for w in WORKLOADS if not w.extra]
    if unknown := [name for name in only if name not in names]:
        parser.error(f"no workload '{unknown[0]}' (there are: {', '.join(names)})")
    start, rows = time.monotonic(), []
    with contextlib.ExitStack() as open_now:
        arms = []
        for name, folder in (("before", options.before), ("after", options.dist)):
            served = open_now.enter_context(stack.Stack(folder, options.driver, None,
                                                        run.libraries(options), ("--warm", "2")))
            arms.append(arm(name, served, options))
            open_now.callback(arms[-1].end)
        for number, name in enumerate(only):
            share = (options.budget - (time.monotonic() - start)) / (len(only) - number)
            rows.append(measure(BY_NAME[name], arms, options, time.monotonic() + share))
            print(line_of(rows[-1]), flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(rows, file, indent=1)
    bad = sum("error" in row or row["slower"] for row in rows)
    print(f"{len(rows) - bad} workloads as fast as before, {bad} slower or failed")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except stack.Failed as failure:
        sys.exit(f"versions.py: {failure}")
