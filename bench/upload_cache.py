#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What uploads by content cost and bring: processes that each upload the same random bytes, with them and
without in turn; medians of the ratio of their times. `first` has bytes that the agent has not met.

    bench/upload_cache.py [--rate BYTES] [--rounds N] [--mib N] [--host whole|pinned] [--driver software|nvidia] [--alone]

--rate: of the wire, each way (125000000: 1 Gb/s); 0: loopback as it is.  --alone, as root: other processes of the
machine wait while these have something to do (SCHED_RR), so that a busy one measures like an idle one.  Build build/stack/uploads first
(make build/stack/uploads); $BUILD names another folder than build.
"""
import argparse
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "stack"))
import stack  # noqa: E402


def upload(sidecar, seed, words):
    """Seconds of the copies."""
    app = stack.App(seed, words.mib, words.host, socket=sidecar.socket,
                    program=os.path.join(stack.BUILD, "stack", "uploads"))
    seconds = float(app.line(r"^seconds ([\d.]+)", 600)[1])
    app.right(600)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--host", default="whole", choices=("whole", "pinned"))
    parser.add_argument("--driver", default="software", choices=("software", "nvidia"))
    parser.add_argument("--alone", action="store_true")
    words = parser.parse_args()
    if words.alone:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    with stack.folder() as folder:
        agent = stack.Agent(folder, "--set", f"upload_cache_bytes={2 * words.mib}MiB",
                            driver=words.driver)
        address = f"fault+native://{agent.address}?rate={words.rate}" if words.rate else agent.address
        sidecars = {mode: stack.Sidecar(os.path.join(folder, mode), address, "--compress", "off",
                                        "--upload-cache", mode) for mode in ("true", "false")}
        print(f"{words.mib} MiB ({words.host}), {words.rounds} rounds, {words.rate or 'loopback'} bytes/s")
        first, again = [], []
        for seed in range(words.rounds):
            order = ("true", "false") if seed % 2 else ("false", "true")
            took = {mode: upload(sidecars[mode], seed, words) for mode in order}
            first.append(took["true"] / took["false"])
            again.append(upload(sidecars["true"], seed, words) / took["false"])
            print(f"without {took['false']:.3f} s, first {took['true']:.3f} s, again {again[-1] * took['false']:.3f} s",
                  flush=True)
        print(f"times, with / without: first {statistics.median(first):.2f} "
              f"({min(first):.2f} to {max(first):.2f}), again {statistics.median(again):.2f} "
              f"({min(again):.2f} to {max(again):.2f})")
        for one in (*sidecars.values(), agent):
            one.stop()


if __name__ == "__main__":
    main()
