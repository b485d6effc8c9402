#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What calls cost in round trips, as the session's statistics count them.

    tests/roundtrips/roundtrips.py [--build FOLDER] [--list | THING ...]

Each thing is done 100 and 300 times in two runs on the software GPU; the difference is what 200
of them cost.  And a second start of the same program sends no module.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

FEW, MANY = 100, 300
WANT = {  # round trips of one
    "launch": 0, "malloc_free": 0, "malloc_async": 0, "stream": 0, "event": 0, "record": 0,
    "record_shared": 1, "await_shared": 1, "query_shared": 1, "record_context": 0, "fill": 0, "copy_pageable": 0, "copy_pinned": 0,
    "copy_batch": 0, "copy_on_device": 0, "copy_beside_function": 0, "copy_back_pinned": 0, "copy_mapped": 0, "copy_array": 0,
    "ask": 0, "ask_configured": 1, "encode": 0, "setting": 0, "synchronize": 1, "wait_event": 1, "copy_back": 1, "item": 1,
    "step": 1, "capture": 2, "capture_looked": 1, "replay": 0, "replay_child": 0, "replay_copies": 0, "replay_large": 0,
    "build": 1, "read_unloaded": 0,
}
# Round trips of a library's call with a new shape; again it costs none (first.py; docs/SHIM.md has the table).
FIRST = {"product": 1, "layer": 2, "transform": 2, "solution": 3, "eigenvalues": 2, "sparse_product": 2}
# Of managed memory of so many pages a kernel writes all, and the host reads one and writes one: both ways less than this.
LIMIT = 180  # seconds for one program: those that pass flags take 5 on a machine that does nothing else
PAGES = 1000
PAGE_BYTES = 4096
PAGE_SHARE = 0.01
# 1 MiB to the device and back, each awaited: in four shares 19 frames, in pieces of 512 KiB 12.6. What is acknowledged differs a little.
SHARES_LEAST, SHARES_MOST = 16, 26
# The host reads 4,096 pages of managed memory, one after the other: 1, 2, 4 … 512 at once, ten times, then six times 512, and the
# wait for the kernel. At 128 at the most it would be 39.
WALK_MOST = 20
FLAG_TURNS = 10000
FLAG_MOST = 3  # more where a look comes between what belongs together
OFF = {  # what switching an optimisation off costs, so that the switches are known to switch
    ("no_post", "launch"): 1, ("no_cache", "ask"): 1, ("no_cache", "encode"): 1, ("no_learn", "setting"): 1,
    ("no_push", "item"): 2, ("no_post", "replay"): 1,
}


class Failed(Exception):
    pass


def statistics(build, folder, command, perf=None):
    path = os.path.join(folder, "stats.json")
    if os.path.exists(path):
        os.unlink(path)
    env = dict(os.environ, VCUDA_STATS=path, XDG_CACHE_HOME=folder)
    env.pop("VCUDA_STRICT", None)
    env.pop("VCUDA_PERF", None)
    if perf:
        env["VCUDA_PERF"] = perf
    try:
        got = subprocess.run([f"{build}/bin/vcuda", "run", "--software", "--"] + command,
                             env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command)}: no end within {LIMIT} s")
    if got.returncode:
        raise Failed(f"{' '.join(command)}: exit status {got.returncode}: {got.stderr[-400:]}")
    try:
        return json.load(open(path))
    except (OSError, ValueError) as error:
        raise Failed(f"no statistics: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--build", default=os.path.join(here, "..", "..", "build"))
    parser.add_argument("things", nargs="*", metavar="THING")
    parser.add_argument("--list", action="store_true", help="the things, and what each costs")
    options = parser.parse_args()
    if options.list:
        for thing, cost in WANT.items():
            print(f"{thing}\tround trips of one {thing.replace('_', ' ')}: {cost}")
        print(f"flag\tround trips of a flag there and back through mapped memory: {FLAG_MOST} at most")
        print(f"page\ta page of {PAGES} of managed memory that the host reads, and one that it writes: under {PAGE_SHARE:.0%} of the bytes")
        print(f"shares\tframes of 1 MiB that is copied to the device and back: {SHARES_LEAST} to {SHARES_MOST}")
        print(f"walk\tround trips of 16 MiB of managed memory that the host reads: {WALK_MOST} at most")
        print("module\ta second start of a program sends no module")
        print("first\tround trips of a library's first call with a shape, and of its second")
        print("part\ta program measures a part of itself")
        return 0
    build = os.path.abspath(options.build)
    for thing in options.things:
        if thing not in WANT and thing not in ("flag", "page", "shares", "walk", "module", "part", "first"):
            parser.error(f"no thing '{thing}' (there are: {', '.join(WANT)}, flag, page, shares, walk, module, part, first)")
    passed = failed = 0

    def result(name, right, text):
        nonlocal passed, failed
        passed, failed = passed + right, failed + (not right)
        print(f"{'pass' if right else 'fail'}  {name:18}{text}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        try:  # the first starts of all send the modules
            for thing in ("ask", "read_unloaded"):
                statistics(build, folder, [f"{build}/roundtrips/steady", thing, "1"])
        except Failed as error:
            sys.exit(f"roundtrips: {error}")
        rows = [(None, thing, want) for thing, want in WANT.items()]
        rows += [(perf, thing, want) for (perf, thing), want in OFF.items()]
        for perf, thing, want in rows:
            if options.things and thing not in options.things:
                continue
            name = f"{thing} {perf}" if perf else thing
            try:
                few, many = (statistics(build, folder,
                                        [f"{build}/roundtrips/steady", thing, str(n)], perf)
                             for n in (FEW, MANY))
                cost = (many["round_trips"] - few["round_trips"]) / (MANY - FEW)
                result(name, cost == want, f"{cost:g} round trips" +
                       ("" if cost == want else f", not {want}"))
            except (Failed, KeyError) as error:
                result(name, False, str(error))
    def compare(name, command, few, many, judge):
        """What many turns counted beside few: JUDGE says whether it is right, and what it was."""
        if options.things and name not in options.things:
            return
        with tempfile.TemporaryDirectory() as folder:
            try:
                result(name, *judge(*(statistics(build, folder, [*command, str(n)]) for n in (few, many))))
            except (Failed, KeyError) as error:
                result(name, False, str(error))

    def flag(few, many):
        cost = sum(many[key] - few[key] for key in ("round_trips", "own_waits")) / (FLAG_TURNS - FEW)
        sent = many["mirror_bytes_sent"] - few["mirror_bytes_sent"]
        right = cost <= FLAG_MOST and sent < (FLAG_TURNS - FEW) * 1000
        return right, f"{cost:g} round trips, {sent / (FLAG_TURNS - FEW):g} bytes sent"

    def page(few, many):
        moved = [(many[key] - few[key]) / (MANY - FEW) for key in ("bytes_sent", "bytes_received")]
        # Each way a page, which no coding makes shorter.
        right = sum(moved) < PAGE_SHARE * PAGES * PAGE_BYTES and min(moved) > PAGE_BYTES
        return right, (f"{moved[0]:.0f} bytes sent, {moved[1]:.0f} received of {PAGES * PAGE_BYTES}: "
                       f"{sum(moved) / (PAGES * PAGE_BYTES):.2%}")

    def shares(few, many):
        frames = (many["frames"] - few["frames"]) / 20
        return SHARES_LEAST <= frames <= SHARES_MOST, f"{frames:g} frames"

    def walk(few, many):
        cost = sum(many[key] - few[key] for key in ("round_trips", "own_waits")) / 10
        return cost <= WALK_MOST, f"{cost:g} round trips"

    steady = f"{build}/roundtrips/steady"
    compare("flag", [f"{build}/programs/13/mapped-flags"], FEW, FLAG_TURNS, flag)
    compare("page", [steady, "page"], FEW, MANY, page)
    compare("shares", [steady, "shares"], 5, 25, shares)
    compare("walk", [steady, "walk"], 5, 15, walk)
    if not options.things or "module" in options.things:
        with tempfile.TemporaryDirectory() as folder:
            try:
                sent = [statistics(build, folder, [f"{build}/programs/13/many-kernels"])["bytes_sent"]
                        for _ in range(3)]
                # Its fat binary's one entry for the device is some kilobytes, compressed.
                # Between two starts that send none, a heartbeat may make a difference.
                right = sent[0] - sent[1] > 2000 and abs(sent[1] - sent[2]) < 500
                result("module", right, f"bytes sent by three starts: {sent}")
            except (Failed, KeyError) as error:
                result("module", False, str(error))
    if not options.things or "part" in options.things:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = os.path.join(folder, "part.json")
                # Ended before the program does: at its end it counts no more.
                with contextlib.suppress(Failed):
                    statistics(build, folder, [sys.executable, os.path.join(here, "part.py"), path])
                got = json.load(open(path))
                calls = {name: call["count"] for name, call in got["calls"].items()}
                right = calls == {"cuMemAlloc_v2": 10, "cuCtxSynchronize": 3} and \
                    got["round_trips"] == 1
                result("part", right, f"counted {calls}, {got['round_trips']} round trips")
            except (OSError, ValueError, KeyError) as error:
                result("part", False, str(error))
    if not options.things or "first" in options.things:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = os.path.join(folder, "first.json")
                with contextlib.suppress(Failed):
                    statistics(build, folder, [sys.executable, os.path.join(here, "first.py"), path])
                got = json.load(open(path))
                want = {thing: [cost, 0] for thing, cost in FIRST.items()}
                result("first", got == want, ", ".join(f"{thing} {a}, then {b}" for thing, (a, b) in got.items()) +
                       ("" if got == want else f"; not {want}"))
            except (Failed, OSError, ValueError, KeyError) as error:
                result("first", False, str(error))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
