#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Native and remote side by side, from one run on one machine.

    bench/run.py [--dist FOLDER] [--pairs N] [--json FILE]

Starts a gpu-agent on the real driver (its cores) and a sidecar (the client's cores), then runs
bench/micro natively and through vcuda in turn, and the raw TCP copy between.  The native arm gets
the client's cores only.  Prints a table of medians and ratios.  Needs a GPU.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "torch"))
import stack  # noqa: E402

ROWS = [  # figure, unit, what is better, issue's goal
    ("launch_us", "us", "lower", "<= 0.3 us"),
    ("launches_per_s", "1/s", "higher", ">= 0.9 of native"),
    ("launch_sync_us", "us", "lower", "<= 30 us"),
    ("launch_stream_sync_us", "us", "lower", ""),
    ("item_us", "us", "lower", "<= 30 us"),
    ("pinned_item_us", "us", "lower", ""),
    ("event_record_us", "us", "lower", ""),
    ("host_function_us", "us", "lower", ""),
    ("malloc_free_us", "us", "lower", ""),
    ("small_copy_us", "us", "lower", ""),
    ("h2d_pageable_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("h2d_pinned_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("d2h_pageable_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("d2h_pinned_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("first_call_us", "us", "lower", "attach <= 10 ms"),
    ("first_kernel_us", "us", "lower", ""),
]


def measure(command, env, what):
    """The figures that COMMAND prints as JSON."""
    got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if got.returncode:
        sys.exit(f"bench: {what} failed ({got.returncode}): {got.stderr.strip()[-600:]}")
    return json.loads(re.findall(r"[{\d].*", got.stdout)[-1])


def native_env(dist):
    return dict(os.environ, LD_LIBRARY_PATH=f"{dist}/native:" +
                os.environ.get("LD_LIBRARY_PATH", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(HERE, "..", ".dist"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--mask", action="store_true",
                        help="hide /dev/nvidia* from the client side (needs root)")
    options = parser.parse_args()
    dist = os.path.abspath(options.dist)
    micro, samples = f"{dist}/bench/micro", {"native": [], "remote": [], "raw": []}
    try:
        with stack.Stack(dist, options=("--warm", "2")) as running:
            client, server = running.client, running.server
            remote = stack.masked([micro]) if options.mask else [micro]
            raw_tcp = [f"{dist}/bench/rawtcp", *(",".join(map(str, c)) for c in (client, server))]
            for pair in range(options.pairs + 1):
                time.sleep(1.5)  # a warm worker gets ready again
                arms = {
                    "native": measure(running.pinned(client, [micro]), native_env(dist), "native"),
                    "remote": measure(running.pinned(client, remote), running.env(), "remote"),
                    "raw": measure(raw_tcp, os.environ, "rawtcp"),
                }
                if pair:  # the first is for warming up
                    for arm, figures in arms.items():
                        samples[arm].append(figures)
    except stack.Failed as failure:
        sys.exit(f"bench: {failure}")
    raw = statistics.median(s["raw_tcp_gbps"] for s in samples["raw"])
    print(f"{options.pairs} pairs; client cores {client[0]}-{client[-1]}, agent cores "
          f"{server[0]}-{server[-1]}; raw TCP, one stream, chunks of 512 KiB: {raw:.2f} GB/s")
    print(f"{'':24}{'native':>12}{'remote':>12}{'ratio':>9}{'of raw':>9}   goal")
    for name, unit, _, goal in ROWS:
        native = statistics.median(s[name] for s in samples["native"])
        remote = statistics.median(s[name] for s in samples["remote"])
        of_raw = f"{remote / raw:9.2f}" if unit == "GB/s" else " " * 9
        print(f"{name:24}{native:12.2f}{remote:12.2f}{remote / native:9.2f}{of_raw}   {goal}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump(samples, out, indent=1)


if __name__ == "__main__":
    main()
