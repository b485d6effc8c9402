#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every fault in every state of a program: the result is right to the bit or the one error that is
documented, no step is executed twice, a bystander notices nothing, and nothing is left.

    tests/faults/matrix.py                        all cells with the seed 1
    tests/faults/matrix.py --seeds 3              with the seeds 1 to 3
    tests/faults/matrix.py --short                a cell of each fault and each state
    tests/faults/matrix.py --cell cut-bulk/upload/3     this one: what a failure is replayed with
    tests/faults/matrix.py --faults cut,no-road --states upload,wait
"""
import argparse
import contextlib
import random
import signal
import sys
import time
import traceback

import rig as rigs
from injectors import FAULTS
from rig import Rig, outcome
from stack import become_subreaper, clean, folder

STATES = ["attach", "idle", "launch", "upload", "download", "wait", "capture", "module", "callback", "pin",
          "ending"]
LIMIT = 120  # s of one cell


def out_of_time(*_):
    raise AssertionError(f"not done within {LIMIT} s")


def run_cell(rig, fault, state, seed):
    """What the program got."""
    rng = random.Random(f"{fault}/{state}/{seed}")
    rig.proxy.rng.seed(rng.random())
    app = rig.app(state)
    if state != "attach":
        app.line(f"^in {state}", 30)
    if state == "ending":
        app.close_stdin()
        app.line("^right after", 30)
        time.sleep(rng.uniform(0, 0.02))
    else:
        time.sleep(rng.uniform(0, 0.08))
    FAULTS[fault].inject(rig, app, rng)
    time.sleep(rng.uniform(0, 0.2))
    app.close_stdin()
    got = outcome(app)
    allowed = FAULTS[fault].allowed(state)
    assert got in allowed, f"got {got}, not {' or '.join(map(str, allowed))}: {app.text()[-300:]}"
    if not FAULTS[fault].ends:
        rig.bystander_lives()
        rig.at_rest()
    rig.once(app, state, fault != "cache-full") if fault != "agent-kill" else None
    return got


class Stage:
    """The rig that is there, made anew where the last cell ended or broke it."""

    def __init__(self, seed):
        self.rig, self.seed, self.stack = None, seed, None

    def get(self, small):
        if self.rig and self.rig.small == (small and rigs.may_mount()):
            return self.rig
        self.drop()
        self.stack = contextlib.ExitStack()
        self.rig = Rig(self.stack.enter_context(folder()), self.seed, small)
        return self.rig

    def drop(self, well=True):
        """What is wrong with what is left, or an empty text."""
        wrong = ""
        if self.rig:
            try:
                if well:
                    self.rig.close()
            except AssertionError as error:
                wrong = str(error)
            self.rig.proxy.close()
            left = clean()
            wrong = wrong or (well and left and "left behind: " + ", ".join(left)) or ""
            self.stack.close()
        self.rig = None
        return wrong


def tell(stage):
    """The last lines of all logs, for a cell that failed."""
    for one in (stage.rig.agent, stage.rig.sidecar):
        print("      " + one.log()[-900:].strip().replace("\n", "\n      "))


def run(cells):
    """cell → what it gave, or None where it failed."""
    stage, results = Stage(1), {}
    for fault, state, seed in cells:
        began = time.monotonic()
        signal.alarm(LIMIT)
        try:
            results[fault, state, seed] = run_cell(stage.get(FAULTS[fault].small), fault, state, seed)
            if FAULTS[fault].ends:
                stage.drop(well=False)
        except Exception as error:
            signal.alarm(0)
            results[fault, state, seed] = None
            print(f"fail  {fault}/{state}/{seed} after {time.monotonic() - began:.1f} s: "
                  f"{error if isinstance(error, AssertionError) else traceback.format_exc()}", flush=True)
            if stage.rig:
                tell(stage)
                stage.drop(well=False)
        signal.alarm(0)
    wrong = stage.drop()
    if wrong:
        print("fail  at the end: " + wrong)
    return results, wrong


def table(results):
    faults = [name for name in FAULTS if any(name == cell[0] for cell in results)]
    states = [name for name in STATES if any(name == cell[1] for cell in results)]
    print(f"{'':16}" + "".join(f"{state:>10}" for state in states))
    for fault in faults:
        row = f"{fault:16}"
        for state in states:
            got = [results[cell] for cell in results if cell[:2] == (fault, state)]
            said = sorted({"FAIL" if one is None else str(one) for one in got})
            row += f"{'/'.join(said).replace('right', 'ok'):>10}"
        print(row)


def chosen(args):
    if args.cell:
        fault, state, seed = args.cell.split("/")
        return [(fault, state, int(seed))]
    faults = args.faults.split(",") if args.faults else list(FAULTS)
    states = args.states.split(",") if args.states else STATES
    for name in [*faults, *states]:
        if name not in FAULTS and name not in STATES:
            sys.exit(f"matrix.py: no such fault or state: '{name}'")
    if args.short:  # one that leaves the rig as it was, each with a state; all states in turn
        quick = [name for name in faults if not FAULTS[name].ends and name not in ("black-hole",)]
        quick.sort(key=lambda name: FAULTS[name].small)
        return [(fault, states[(3 * i + 1) % len(states)], 1) for i, fault in enumerate(quick)]
    order = sorted(faults, key=lambda name: (FAULTS[name].ends, FAULTS[name].small))
    return [(fault, state, seed) for seed in range(1, args.seeds + 1) for fault in order for state in states]


def main():
    parser = argparse.ArgumentParser(description="every fault in every state of a program")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cell", help="FAULT/STATE/SEED")
    parser.add_argument("--faults")
    parser.add_argument("--states")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    become_subreaper()
    signal.signal(signal.SIGALRM, out_of_time)
    cells, began = chosen(args), time.monotonic()
    results, wrong = run(cells)
    table(results)
    failed = [cell for cell, got in results.items() if got is None]
    print(f"{len(results) - len(failed)} of {len(results)} cells as documented, "
          f"{time.monotonic() - began:.0f} s")
    for cell in failed:
        print("replay: make fault-matrix FAULTS='--cell {}/{}/{}'".format(*cell))
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
