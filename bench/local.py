#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared memory against TCP on one machine: the same program through local:// and native://, in turn.

    bench/local.py [--build FOLDER] [--driver software|nvidia] [--rounds N] [--most BYTES] [--json FILE]

One agent listens on both; a sidecar each.  Prints medians and their ratio, and with --driver nvidia also the
program without vcuda.  With the software GPU the copies are the CPU's and say little of a GPU's.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "torch"))
from run import measure  # noqa: E402
from stack import Stack  # noqa: E402

WAITS = ("launch_sync_us", "item_us", "pinned_item_us")


def flat(figures):
    """{name: (value, whether more is better)}"""
    rows = {name: (figures[name], False) for name in WAITS if name in figures}
    for curve, points in figures.items():
        if isinstance(points, dict):
            rows.update({f"{curve} {size}": (value, True) for size, value in points.items()})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--driver", default="software")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=64 << 20)
    parser.add_argument("--json")
    options = parser.parse_args()
    line = os.path.join(os.path.abspath(options.build), "bench", "line")
    samples = {"native": [], "local": [], "plain": []}
    with Stack(options.build, options.driver, pin=False) as stack, contextlib.ExitStack() as on_exit:
        path = f"{stack.work}/agent.sock"
        on_exit.callback(lambda: os.path.exists(f"{stack.work}/local.sock") and os.unlink(f"{stack.work}/local.sock"))
        agent = f"{stack.work}/ready-local.json"
        process = stack.start("agent-local", stack.server, [
            stack.binary("gpu-agent"), "--driver", options.driver, "--insecure", "--address", f"local://{path}",
            "--ports", "0,0,0", "--ready-file", agent])
        stack.wait(process, agent, 60, "agent-local")
        client = stack.start("sidecar-local", stack.client, [
            stack.binary("vcuda-client"), "run", "--agent", f"local://{path}", "--socket", f"{stack.work}/local.sock"])
        stack.wait(client, f"{stack.work}/local.sock", 30, "sidecar-local")
        for _ in range(options.rounds):
            for name, env in (("native", stack.env()),
                              ("local", dict(stack.env(), VCUDA_SOCKET=f"{stack.work}/local.sock"))):
                samples[name].append(flat(measure([line, str(options.most)], env, name)))
            if options.driver == "nvidia":
                samples["plain"].append(flat(measure([line, str(options.most)], dict(os.environ), "plain")))
    table = {}
    for what, (_, better) in samples["native"][0].items():
        row = {name: statistics.median(one[what][0] for one in some) for name, some in samples.items() if some}
        row["ratio"] = row["local"] / row["native"] if better else row["native"] / row["local"]
        table[what] = row
        print(f"{what:28}" + "".join(f"{name} {value:9.3f}   " for name, value in row.items()))
    print("ratio: how many times as good local is as native TCP; us for waits, GB/s for copies")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
