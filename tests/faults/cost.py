#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the ability to resume costs a sidecar that never needs it: instructions of 100,000 launches with a grace of
30 s and without, counted by valgrind, so that load and clock do not matter.  At most 1 % more.

    tests/faults/cost.py [LAUNCHES [TIMES]]

How many frames are gathered into one send differs from run to run, and with it the count, the more the busier the
machine is: each is run TIMES times, in turn, and the least is compared; up to five times as often while that is
too much.
"""
import os
import re
import shutil
import sys

from rig import PROGRAM
from stack import Agent, App, BIN, Sidecar, become_subreaper, clean, folder

MOST = 1.0  # percent


def instructions(grace, launches):
    """Of the whole life of a sidecar with one program."""
    with folder() as path:
        agent = Agent(path)
        where, log = os.path.join(path, "s"), os.path.join(path, "valgrind")
        sidecar = Sidecar(path, agent, socket=where, command=[
            "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={log}", "--fair-sched=yes",
            os.path.join(BIN, "vcuda-client"), "run", "--agent", agent.address, "--socket", where, "--grace",
            str(grace)])
        app = App("launch", launches, socket=where, program=PROGRAM, env={"VCUDA_SIDECAR_TIMEOUT": "60"})
        app.close_stdin()
        app.right(300)
        steps = int(re.search(r"right after (\d+)", app.text())[1])
        sidecar.stop()
        agent.stop()
        with open(log) as file:
            return int(re.search(r"Collected : (\d+)", file.read())[1]), steps


def main(words):
    launches, times = [int(word) for word in (words + ["100000", "3"][len(words):])]
    if not shutil.which("valgrind"):
        print("skipped: no valgrind on this machine")
        return 77
    become_subreaper()
    counts = {0: [], 30: []}
    rest = {grace: min(instructions(grace, 1)[0] for _ in range(times)) for grace in counts}
    more = MOST + 1
    while len(counts[30]) < times or (more > MOST and len(counts[30]) < 5 * times):
        for grace, each in counts.items():
            count, steps = instructions(grace, launches)
            each.append((count - rest[grace]) / steps)
            clean()
        more = (min(counts[30]) / min(counts[0]) - 1) * 100
    for grace, each in counts.items():
        print(f"grace {grace:2} s: {min(each):.1f} instructions a launch ({', '.join(f'{one:.1f}' for one in each)})", flush=True)
    print(f"resume costs {more:+.2f} % instructions in the sidecar")
    return more > MOST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
