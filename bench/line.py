#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The line's rate: copies of 4 KiB to 1 GiB beside raw TCP, from one run on one machine.

    bench/line.py [--dist FOLDER] [--rounds N] [--seconds S] [--compress auto|off|always] [--json FILE]

Starts a gpu-agent (its cores) and a sidecar (the client's cores), then runs bench/line natively
and through vcuda, and raw TCP with one and with --streams streams, in turn; as many rounds as
fit into the seconds.  At last, where the time of the threads goes in four large copies. The short
table comes last: medians.  Needs a GPU, or --driver software (which only shows that it runs).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

from run import HERE, measure, native_env, stack

CURVES = ("h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable")
WAITS = ("launch_sync_us", "item_us", "pinned_item_us")


def size_text(n):
    return f"{n >> 30} GiB" if n >> 30 else f"{n >> 20} MiB" if n >> 20 else f"{n >> 10} KiB"


def descendants(root):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    todo, found = [root], []
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def ticks(roots):
    """{(process, thread): (ticks of the user, of the kernel)} of all below these."""
    times = {}
    for name, root in roots.items():
        for pid in descendants(root):
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    fields = open(f"/proc/{pid}/task/{task}/stat").read().rsplit(")", 1)[1].split()
                    times[name, int(task)] = int(fields[11]), int(fields[12])
            except OSError:
                continue
    return times


def profile(line, most, roots, command, env):
    for curve in CURVES:
        direction, memory = curve.split("_")
        before, start = ticks(roots), time.time()
        process = subprocess.Popen(command + [line, str(most), direction, memory, "2"], env=env,
                                   stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        busy = {}
        while process.poll() is None:
            busy.update(ticks({**roots, "program": process.pid}))
            time.sleep(0.02)
        seconds = time.time() - start
        print(f"{curve}, {size_text(most)}: {process.stdout.read().strip()} GB/s; busiest threads, "
              "% of a core in user + kernel:")
        rows = []
        for key, (user, kernel) in busy.items():
            was = before.get(key, (0, 0))
            rows.append(((user - was[0]) / seconds, (kernel - was[1]) / seconds, key))
        rows.sort(key=lambda row: -(row[0] + row[1]))
        print("   " + "; ".join(f"{key[0]} {user:.0f}+{kernel:.0f}" for user, kernel, key in rows[:14]
                                if user + kernel > 2))


def table(samples, streams, raw_trip):
    def middle(arm, curve, size):
        values = [s[curve][size] for s in samples[arm]]
        return statistics.median(values)

    print(f"\n{len(samples['remote'])} rounds, GB/s, medians; raw: TCP with 1 and {streams} streams; "
          f"of raw: remote by raw {streams}")
    print(f"{'':22}{'native':>9}{'remote':>9}{'raw 1':>9}{'raw ' + str(streams):>9}{'of raw':>9}")
    for curve in CURVES:
        raw = curve.split("_")[0]
        for size in samples["remote"][0][curve]:
            native = middle("native", curve, size) if samples["native"] else float("nan")
            remote = middle("remote", curve, size)
            one, many = (middle(f"raw{n}", raw, size) for n in (1, streams))
            print(f"{curve:13}{size_text(int(size)):>9}{native:9.2f}{remote:9.2f}{one:9.2f}{many:9.2f}"
                  f"{remote / many:9.2f}")
    trip = {k: statistics.median(t[k] for t in raw_trip) for k in raw_trip[0]}
    print(f"raw TCP round trip {trip['roundtrip_us']:.2f} us asleep, "
          f"{trip['spinning_roundtrip_us']:.2f} us spinning")
    for name in WAITS:
        native = statistics.median(s[name] for s in samples["native"] or samples["remote"])
        remote = statistics.median(s[name] for s in samples["remote"])
        print(f"{name:22}{native:9.2f}{remote:9.2f}   {remote - trip['roundtrip_us']:+.2f} and "
              f"{remote - trip['spinning_roundtrip_us']:+.2f} us to the round trips")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(HERE, "..", ".dist"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--most", type=int, default=1 << 30, help="bytes of the largest copy")
    parser.add_argument("--driver", default="nvidia")
    parser.add_argument("--compress", default="auto", help="the agent's: auto, off or always")
    parser.add_argument("--json")
    options = parser.parse_args()
    began = time.time()
    dist = os.path.abspath(options.dist)
    line, raw = f"{dist}/bench/line", f"{dist}/bench/rawtcp"
    most = str(options.most)
    samples = {"native": [], "remote": [], "raw1": [], f"raw{options.streams}": []}
    trips, longest = [], 0
    try:
        with stack.Stack(dist, options.driver,
                         options=("--warm", "2", "--set", f"compress={options.compress}")) as running:
            client, server = running.client, running.server
            both = [",".join(map(str, c)) for c in (client, server)]
            remote_env = running.env()
            for _ in range(options.rounds):
                start = time.time()
                if start + longest > began + options.seconds:
                    break
                time.sleep(1)  # a warm worker gets ready again
                if options.driver == "nvidia":
                    samples["native"].append(measure(running.pinned(client, [line, most]),
                                                     native_env(dist), "native"))
                samples["remote"].append(measure(running.pinned(client, [line, most]), remote_env,
                                                 "remote"))
                for count in (1, options.streams):
                    samples[f"raw{count}"].append({
                        direction: measure([raw, "--curve", *ends, str(count), most], os.environ,
                                           "rawtcp")
                        for direction, ends in (("h2d", both), ("d2h", both[::-1]))})
                trips.append(measure([raw, "--roundtrip", *both], os.environ, "rawtcp"))
                longest = max(longest, time.time() - start)
            agent, sidecar = running.processes
            profile(line, min(options.most, 512 << 20), {"agent": agent.pid, "sidecar": sidecar.pid},
                    running.pinned(client, []), remote_env)
    except stack.Failed as failure:
        sys.exit(f"bench: {failure}")
    for name in ("agent", "sidecar-0"):
        told = [text for text in open(f"{running.work}/{name}.log")
                if re.search(r" (warn|error) |lane", text)]
        print("".join(told[:5]), end="")
    table(samples, options.streams, trips)
    print(f"client cores {both[0]}, agent cores {both[1]}, {time.time() - began:.0f} s")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"samples": samples, "trips": trips}, out, indent=1)


if __name__ == "__main__":
    main()
