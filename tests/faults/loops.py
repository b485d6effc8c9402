#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same again and again: nothing grows, and no step is executed twice.

    tests/faults/loops.py leaks 10000     programs come and go, 30 % by kill -9: descriptors, memory, processes
    tests/faults/loops.py storm 256       that many programs attach at once
    tests/faults/loops.py cuts 200        that many cuts under programs in every state
    tests/faults/loops.py fronts 50       the agent's front killed that often under 50 programs (--programs)
    tests/faults/loops.py once 1000000    that many steps under faults of every kind, each executed once
    tests/faults/loops.py soak 30         minutes of random programs and random faults (--programs)
    tests/faults/loops.py short           a little of each
"""
import argparse
import json
import os
import random
import signal
import sys
import time
import urllib.request

from injectors import FAULTS
from matrix import STATES
from rig import GONE, Rig, kill, outcome
from stack import MIB, become_subreaper, clean, folder

RSS_MOST = 1 * MIB  # what a daemon may have more after a loop
PAGE = 4096
WARM = 600  # seconds of the soak until memory may not grow any more
REST_EVERY = 60  # seconds of the soak between two looks at memory
# What a running program does not notice, and what may be repeated for hours.
HARMLESS = ["cut", "cut-frame", "cut-inside", "cut-bulk", "no-road", "stall", "slow-wire", "jitter",
            "cut-on-jitter", "front-kill", "front-kill+cut", "front-stop", "sidecar-stop"]
AT_ONCE = 2 * (os.cpu_count() or 1)


def resident(rig):
    """Bytes of memory of their own of agent, sidecar and front: whole, however many forked workers share it now."""
    found = []
    for pid in (rig.agent.pid, rig.sidecar.pid, rig.agent.front()):
        with open(f"/proc/{pid}/smaps_rollup") as file:
            kb = sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))
        found.append(kb << 10)
    return found


def zombies(rig):
    found = 0
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/stat") as file:
                    rest = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found += rest[0] == "Z" and int(rest[1]) in (*rig.daemons(), rig.agent.front())
    return found


def leaks(count, rng):
    with folder() as path:
        rig, running, early = Rig(path, between=False), [], None
        began, killed = time.monotonic(), 0
        for i in range(count):
            app = rig.app("attach", stdin_ends=True)
            app.ends = time.monotonic() + rng.uniform(0, 0.15) if rng.random() < 0.3 else None
            running.append(app)
            while len(running) >= AT_ONCE:
                for app in list(running):
                    if app.ends and time.monotonic() > app.ends and app.process.poll() is None:
                        kill(app.pid)
                    if app.process.poll() is not None:
                        got = outcome(app)
                        assert got == "right" or (got == GONE and app.ends), f"cycle {i}: {got}"
                        killed += got == GONE
                        rig.executed(app.pid)
                        rig.forget(app)
                        running.remove(app)
                time.sleep(0.001)
            if i == count // 5:
                early = resident(rig)
        for app in running:
            outcome(app)
        running.clear()
        rig.at_rest(30)
        late = resident(rig)
        grown = [b - a for a, b in zip(early or late, late)]
        assert zombies(rig) == 0, f"{zombies(rig)} zombies"
        assert all(one <= RSS_MOST for one in grown), f"agent, sidecar and front grew by {grown} bytes"
        rig.close()
        print(f"leaks: {count} programs, {killed} killed, {time.monotonic() - began:.0f} s: descriptors, "
              f"processes, segments, sessions and device memory as before; agent, sidecar and front "
              f"{', '.join(f'{one / 1024:+.0f}' for one in grown)} KiB")


def storm(count, rng):
    with folder() as path:
        rig, began = Rig(path, between=False, agent=("--set", f"max_sessions_per_pod={count + 8}")), \
            time.monotonic()
        apps = [rig.app("idle") for _ in range(count)]
        for app in apps:
            app.line("^in idle", 120)
        times = sorted(line[0] - began for app in apps for line in app.lines if line[1] == "in idle")
        for app in apps:
            app.close_stdin()
        for app in apps:
            app.right(120)
            rig.executed(app.pid)
        rig.at_rest(60)
        rig.close()
        print(f"storm: {count} programs at once, all attached after {times[-1]:.1f} s, half after "
              f"{times[len(times) // 2]:.1f} s")


def cuts(count, rng):
    states = [name for name in STATES if name not in ("attach", "ending", "wait")]
    with folder() as path:
        rig = Rig(path)
        apps = {state: rig.app(state) for state in states}
        for state, app in apps.items():
            app.line(f"^in {state}", 60)
        before = rig.proxy.cuts
        while rig.proxy.cuts - before < count:
            FAULTS[rng.choice(["cut", "cut-frame", "cut-inside", "cut-bulk"])].inject(rig, None, rng)
            time.sleep(rng.uniform(0, 0.4))
        for app in apps.values():
            app.close_stdin()
        wrong = {state: got for state, got in ((s, outcome(a, 120)) for s, a in apps.items()) if got != "right"}
        assert not wrong, f"programs that noticed: {wrong}"
        for state, app in apps.items():
            rig.once(app, state)
        rig.at_rest(60)
        resumed = rig.sidecar.log().count("event=channel.resumed")
        rig.close()
        rig.proxy.close()
        print(f"cuts: {count} cuts under {len(apps)} programs, {resumed} sessions resumed, 0 errors, every "
              f"result right to the bit")


def fronts(count, rng, programs=50):
    """The front is killed that often under PROGRAMS; how long a page takes that is asked for at that moment."""
    with folder() as path:
        rig, slowest = Rig(path, between=False), []
        apps = [rig.app("pace") for _ in range(programs)]
        for app in apps:
            app.line("^in pace", 120)
        for _ in range(count):
            kill(rig.agent.front())
            time.sleep(rng.uniform(0.02, 0.3))
            began = time.monotonic()
            url = f"http://127.0.0.1:{rig.agent.ports['control']}/v1/sessions"
            with urllib.request.urlopen(url, timeout=60) as answer:
                found = len(json.load(answer)["sessions"])
            slowest.append(time.monotonic() - began)
            assert found == programs + 1, f"{found} sessions, not {programs + 1}"
        for app in apps:
            app.close_stdin()
        steps = 0
        for app in apps:
            got = outcome(app, 120)
            assert got == "right", f"{got}: {app.text()[-300:]}"
            steps += rig.once(app, "pace")
        rig.at_rest(60)
        rig.close()
        print(f"fronts: {count} fronts killed under {programs} programs, {steps} steps, each executed once; a page "
              f"asked for at that moment took {max(slowest):.1f} s at most")


def once(count, rng):
    """Steps in `launch`, and a rest of them where each is waited for, so that faults meet both."""
    with folder() as path:
        rig, faults, began = Rig(path), 0, time.monotonic()
        apps = {"launch": rig.app("launch", count), "callback": rig.app("callback", count // 50)}
        for app in apps.values():
            app.close_stdin()
        while any(app.process.poll() is None for app in apps.values()):
            FAULTS[rng.choice(HARMLESS)].inject(rig, None, rng)
            faults += 1
            time.sleep(rng.uniform(0, 0.3))
            assert time.monotonic() - began < 3600, "not done within an hour"
        steps = 0
        for state, app in apps.items():
            got = outcome(app)
            assert got == "right", f"{state}: {got}: {app.text()[-300:]}"
            steps += rig.once(app, state)
        assert steps >= count, f"only {steps} steps"
        rig.at_rest(60)
        rig.close()
        rig.proxy.close()
        print(f"once: {steps} steps under {faults} faults, {time.monotonic() - began:.0f} s: each executed once, "
              f"in order")


def slope(samples):
    """Percent an hour, by the first and the last third.  A page more is none: memory comes in pages."""
    third = len(samples) // 3
    if third < 2:
        return 0.0
    (t0, a), (t1, b) = ((sum(x[0] for x in part) / third, sum(x[1] for x in part) / third)
                        for part in (samples[:third], samples[-third:]))
    return (b - a) / a * 100 * 3600 / (t1 - t0) if abs(b - a) > PAGE else 0.0


def soak(minutes, rng, programs):
    """Random programs, each for some seconds; random faults each few seconds; some programs killed. Once a minute all
    of them end: what agent and sidecar have then is theirs to keep, and not a program's, nor a cut wire's frames."""
    with folder() as path:
        rig, running, ended, faults = Rig(path), [], 0, 0
        until, samples, fault_at = time.monotonic() + 60 * minutes, [], time.monotonic() + 2
        rest_at = time.monotonic() + REST_EVERY
        states = [name for name in STATES if name != "ending"]

        def end_one(app):
            app.close_stdin()
            got = outcome(app, 120)
            assert got in ("right", GONE) or (app.state == "attach" and got == 802), \
                f"{app.state}: {got}: {app.text()[-300:]}"
            assert got != GONE or app.doomed, "gone by itself"
            rig.once(app, app.state)
            rig.forget(app)

        def rest():
            while running:
                end_one(running.pop())
            rig.at_rest(60)
            time.sleep(1)  # the sidecar gives memory back when it has nothing else to do
            samples.append((time.monotonic(), resident(rig)[:2]))
        while time.monotonic() < until:
            now = time.monotonic()
            while len(running) < programs:
                state = rng.choice(states)
                app = rig.app(state)
                app.state, app.until, app.doomed = state, now + rng.uniform(0.2, 10), rng.random() < 0.2
                running.append(app)
                ended += 1
            for app in [one for one in running if now > one.until or one.process.poll() is not None]:
                running.remove(app)
                if app.doomed:
                    kill(app.pid)
                end_one(app)
            if now > fault_at:
                FAULTS[rng.choice(HARMLESS)].inject(rig, None, rng)
                faults += 1
                fault_at = time.monotonic() + rng.uniform(1, 4)
                assert rig.agent.front(), "no front"
            rig.bystander_lives()
            if now > rest_at:
                rest()
                rest_at = time.monotonic() + REST_EVERY
            time.sleep(0.02)
        rest()
        warm = samples[0][0] + WARM if minutes * 60 >= 2 * WARM else 0
        grown = [slope([(t, r[i]) for t, r in samples if t >= warm]) for i in (0, 1)]
        rig.close()
        rig.proxy.close()
        for i, who in enumerate(("agent", "sidecar")):
            print(f"soak: KiB of {who} at rest: " + " ".join(str(r[i] >> 10) for _, r in samples))
        print(f"soak: {minutes:g} minutes, {programs} programs at once, {ended} ended, {faults} faults: every "
              f"result right, nothing left; memory of agent and sidecar {grown[0]:+.2f} and {grown[1]:+.2f} % "
              f"an hour")
        if minutes * 60 >= 2 * WARM:
            assert all(one <= 0.5 for one in grown), f"memory grows: {grown} % an hour"


def main():
    parser = argparse.ArgumentParser(description="the same again and again")
    parser.add_argument("what", choices=["leaks", "storm", "cuts", "fronts", "once", "soak", "short"])
    parser.add_argument("count", type=float, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=0)
    args = parser.parse_args()
    become_subreaper()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    loops = {"leaks": leaks, "storm": storm, "cuts": cuts, "once": once}
    todo = {"short": [("leaks", 60), ("storm", 24), ("cuts", 12), ("once", 20000)]}.get(
        args.what, [(args.what, int(args.count))])
    failed = 0
    for what, count in todo:
        try:
            if what == "soak":
                soak(args.count, random.Random(args.seed), args.programs or 8)
            elif what == "fronts":
                fronts(count, random.Random(args.seed), args.programs or 50)
            else:
                loops[what](count, random.Random(args.seed))
        except AssertionError as error:
            print(f"fail  {what} {count}, seed {args.seed}: {error}")
            failed += 1
        left = clean()
        if left and not failed:
            print("fail  left behind: " + ", ".join(left))
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
