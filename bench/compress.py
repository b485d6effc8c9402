#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What coding payloads brings: copies of weights, token ids, zeros and random bytes through two sidecars of
one agent, `compress: auto` and `off`, in turn; medians of the ratio of their times, and of bytes on the wire.

    bench/compress.py [--rate BYTES] [--rounds N] [--mib N] [--kinds A,B]

--rate: of the wire, each way (125000000: 1 Gb/s); 0: loopback as it is.  On the software GPU.  Build
build/stack/payloads first (make build/stack/payloads).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "stack"))
import stack  # noqa: E402


def totals(sidecar):
    got = subprocess.run([os.path.join(stack.BIN, "vcuda-client"), "status", "--json", "--socket", sidecar.socket],
                         capture_output=True, text=True, timeout=30, env=stack.environment())
    return json.loads(got.stdout)["totals"]["pieces"]


def copy(sidecar, kind, mib, ups, downs):
    """(seconds up, seconds down, sent, received) after the warm-up of `payloads`."""
    before = totals(sidecar)
    app = stack.App(kind, mib, ups, downs, socket=sidecar.socket,
                    program=os.path.join(stack.BUILD, "stack", "payloads"))
    up, down = float(app.line(r"^up ([\d.]+)", 600)[1]), float(app.line(r"^down ([\d.]+)", 600)[1])
    app.right(600)
    after = totals(sidecar)
    ways = [{key: after[way][key] - before[way][key] for key in after[way]} for way in ("sent", "received")]
    return up, down, *ways


def fewer(way):
    return way["payload_bytes"] / way["wire_bytes"] if way["wire_bytes"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=125000000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--ups", type=int, default=2)
    parser.add_argument("--kinds", default="bf16,f32,tokens,zeros,random")
    words = parser.parse_args()
    with stack.folder() as folder:
        agent = stack.Agent(folder)
        address = f"fault+native://{agent.address}?rate={words.rate}" if words.rate else agent.address
        sidecars = {mode: stack.Sidecar(os.path.join(folder, mode), address, "--compress", mode)
                    for mode in ("auto", "off")}
        print(f"{words.mib} MiB, {words.ups} copies each way, {words.rounds} rounds, "
              f"{words.rate or 'loopback'} bytes/s; times: off / auto")
        for kind in words.kinds.split(","):
            rounds = [{mode: copy(sidecar, kind, words.mib, words.ups, words.ups) for mode, sidecar in sidecars.items()}
                      for _ in range(words.rounds)]
            up, down = (statistics.median(r["off"][way] / r["auto"][way] for r in rounds) for way in (0, 1))
            sent, received = (statistics.median(fewer(r["auto"][way]) for r in rounds) for way in (2, 3))
            print(f"{kind:8} up {up:6.2f} x, down {down:6.2f} x; bytes on stripes {sent:8.2f} x, {received:8.2f} x fewer",
                  flush=True)
        for one in (*sidecars.values(), agent):
            one.stop()


if __name__ == "__main__":
    main()
