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
import tempfile
import time

ROWS = [  # figure, unit, what is better, issue's goal
    ("launch_us", "us", "lower", "<= 0.3 us"),
    ("launches_per_s", "1/s", "higher", ">= 0.9 of native"),
    ("launch_sync_us", "us", "lower", "<= 30 us"),
    ("launch_stream_sync_us", "us", "lower", ""),
    ("item_us", "us", "lower", "<= 30 us"),
    ("pinned_item_us", "us", "lower", ""),
    ("event_record_us", "us", "lower", ""),
    ("malloc_free_us", "us", "lower", ""),
    ("small_copy_us", "us", "lower", ""),
    ("h2d_pageable_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("h2d_pinned_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("d2h_pageable_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("d2h_pinned_gbps", "GB/s", "higher", ">= 0.8 of raw TCP"),
    ("first_call_us", "us", "lower", "attach <= 10 ms"),
    ("first_kernel_us", "us", "lower", ""),
]


def cores():
    every = sorted(os.sched_getaffinity(0))
    half = len(every) // 2
    return every[:half], every[half:]


def pinned(who, command):
    return ["taskset", "-c", ",".join(map(str, who))] + command


def run(command, env, what):
    got = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    if got.returncode:
        sys.exit(f"bench: {what} failed ({got.returncode}): {got.stderr.strip()[-600:]}")
    return json.loads(re.findall(r"\{.*\}", got.stdout)[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--dist", default=os.path.join(here, "..", ".dist"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--mask", action="store_true",
                        help="hide /dev/nvidia* from the client side (needs root)")
    options = parser.parse_args()
    dist = os.path.abspath(options.dist)
    client, server = cores()
    work = tempfile.mkdtemp(prefix="vcuda-bench-")
    ready, socket = f"{work}/ready.json", f"{work}/vcuda.sock"
    micro = f"{dist}/bench/micro"
    native_env = dict(os.environ, LD_LIBRARY_PATH=f"{dist}/native:" +
                      os.environ.get("LD_LIBRARY_PATH", ""))
    remote_env = dict(os.environ, VCUDA_SOCKET=socket,
                      LD_PRELOAD=subprocess.check_output(
                          [f"{dist}/bin/vcuda", "preload"], text=True).strip())
    mask = []
    if options.mask:
        mask = ["unshare", "-m", "sh", "-c",
                "for d in /dev/nvidia*; do [ -c $d ] && mount --bind /dev/null $d; done; exec \"$@\"",
                "sh"]
    agent = subprocess.Popen(pinned(server, [
        f"{dist}/bin/gpu-agent", "--driver", "nvidia", "--insecure", "--address", "127.0.0.1",
        "--ports", "0,0,0", "--ready-file", ready, "--warm", "2"]),
        stderr=open(f"{work}/agent.log", "w"))
    sidecar = None
    try:
        deadline = time.time() + 60
        while not os.path.exists(ready):
            if agent.poll() is not None or time.time() > deadline:
                sys.exit("bench: the agent did not start: " + open(f"{work}/agent.log").read()[-800:])
            time.sleep(0.05)
        port = json.load(open(ready))["ports"]["recv"]
        sidecar = subprocess.Popen(pinned(client, [
            f"{dist}/bin/vcuda-client", "run", "--agent", f"127.0.0.1:{port}",
            "--socket", socket]), stderr=open(f"{work}/sidecar.log", "w"))
        while not os.path.exists(socket):
            time.sleep(0.02)
        samples = {"native": [], "remote": [], "raw": []}
        for pair in range(options.pairs + 1):
            time.sleep(1.5)  # a warm worker gets ready again
            arms = {
                "native": run(pinned(client, [micro]), native_env, "native"),
                "remote": run(pinned(client, mask + [micro]), remote_env, "remote"),
                "raw": run([f"{dist}/bench/rawtcp", ",".join(map(str, client)),
                            ",".join(map(str, server))], os.environ, "rawtcp"),
            }
            if pair:  # the first is for warming up
                for arm, figures in arms.items():
                    samples[arm].append(figures)
    finally:
        for process in (sidecar, agent):
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
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
