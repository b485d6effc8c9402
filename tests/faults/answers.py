#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sidecar cannot answer what a program waits for, or takes it for gone: the program is right, or it has a clear
error within seconds; it never waits on for what does not come.

What fails is a call of the sidecar's: the answer to RESERVE (the rest of its shared memory) or to PIN, for which the kernel
has no memory once, or again and again; or the look for the next request, after which the sidecar lets the session go and
empties its memory, while the program waits for room in it, since its worker is stopped."""
import contextlib
import signal
import sys
import time

from failpoints import FailRig, LOST, healthy, outcome
from stack import become_subreaper, clean, folder, kill, wait_for

ANSWER, LOOK = "sendmsg-unix", "recv-unix"
ONCE, LASTS = False, True
RESERVE = 3  # behind the heartbeat's and ATTACH's
UNTOLD = "no memory for an answer"
# (state, what fails, whether it goes on, the n-th from the beginning on or 0: as soon as it is in its state, what it gets)
CASES = (
    ("upload", ANSWER, ONCE, RESERVE, "right"),
    ("upload", ANSWER, LASTS, RESERVE, LOST),
    ("pin", ANSWER, ONCE, 0, "right"),
    ("pin", ANSWER, LASTS, 0, LOST),
    ("upload", LOOK, ONCE, 0, LOST),
    ("download", LOOK, ONCE, 0, LOST),
    ("launch", LOOK, ONCE, 0, LOST),
    ("pin", LOOK, ONCE, 0, LOST),
)


def ticks(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[11:13]


def waits(app):
    """APP takes no processor for a moment."""
    before = ticks(app.pid)
    time.sleep(0.3)
    return ticks(app.pid) == before


def one(rig, state, what, lasts, n, wanted):
    told = rig.sidecar.log().count(UNTOLD)
    if n:
        rig.point.arm(n, only=what, lasts=lasts)
    app, worker = rig.app(state), []
    try:
        app.line(f"^in {state}|error", 60)
        if what == LOOK and state != "pin":  # that does without a worker
            worker.append(rig.agent.worker(app))
            kill(worker, signal.SIGSTOP)
            wait_for(lambda: waits(app), 20, "the program waits")
        if not n:
            rig.point.arm(1, only=what, lasts=lasts)
        if wanted == "right":
            wait_for(rig.point.struck, 20, "a call fails")
            app.close_stdin()
        got = outcome(app, 20)
    finally:
        rig.point.disarm()
        kill(worker, signal.SIGCONT)
    assert got == wanted, f"got {got}, not {wanted}: {app.text()[-300:]}"
    assert rig.sidecar.log().count(UNTOLD) - told == (what == ANSWER and lasts), rig.sidecar.log()[-300:]
    assert rig.sidecar.process.poll() is None, rig.sidecar.log()[-300:]
    rig.bystander_lives()
    healthy(rig)
    rig.at_rest()
    rig.once(app, state, got == "right")
    rig.forget(app)


def main():
    become_subreaper()
    wrong = 0
    for case in CASES:
        with folder() as path, contextlib.ExitStack() as stack:
            stack.callback(clean)
            rig = FailRig(path, "sidecar")
            try:
                one(rig, *case)
                print("pass ", *case, flush=True)
            except AssertionError as error:
                wrong += 1
                print("fail ", *case, error, flush=True)
    print(f"{len(CASES) - wrong} of {len(CASES)}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
