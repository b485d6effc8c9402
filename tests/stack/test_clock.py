# SPDX-License-Identifier: Apache-2.0
"""The clock of the day is set, forth and back, while all runs: nothing that waits, expires or is counted goes by it.

What moves it is tests/faults/failpoint.c, in the agent's processes, the sidecar and the programs."""
import datetime
import mmap
import os
import struct

from proxy import Proxy
from stack import App, Agent, BUILD, Sidecar, folder, now, preloaded, wait_for

LIBRARY = os.path.join(BUILD, "faults", "libfailpoint.so")
DAY = 86400
CLOCK, ROLE = 20, 24  # where failpoint.c's struct point has them


class Clock:
    """Of all that is started with ENV."""

    def __init__(self, path):
        with open(path, "w+b") as file:
            file.write(bytes(4096))
            file.flush()
            self.page = mmap.mmap(file.fileno(), 4096)
        self.page[ROLE:ROLE + 1] = b"*"
        self.env = {"LD_PRELOAD": LIBRARY, "VCUDA_FAILPOINT": path}

    def move(self, days):
        struct.pack_into("<i", self.page, CLOCK, days * DAY)


def day(days):
    return f"t={(datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).date()}"


def test_the_day_is_set_while_all_runs():
    with folder() as path:
        clock = Clock(os.path.join(path, "clock"))
        agent = Agent(path, "--set", "store.bytes=64MiB", "--warm", "2", env=clock.env)
        between = Proxy(agent)
        sidecar = Sidecar(path, between.address, env=clock.env)
        env = {**clock.env, "LD_PRELOAD": f"{LIBRARY}:{preloaded()}"}
        runs = [App(what, socket=sidecar.socket, env=env) for what in ("bystander", "calls", "pin")]
        runs[0].line("^started", 20)
        wait_for(lambda: [one["state"] for one in agent.sessions()] == ["running"] * 3, 20, "all run")
        wait_for(lambda: sidecar.log().count("event=channel.open") == 3, 20, "the sidecar knows all")
        opened = 3
        for cuts, days in enumerate((1, -1, 400, -400, 0), 1):
            clock.move(days)
            # Connections come back, others attach, and both say what day they think it is.
            between.cut()
            wait_for(lambda: sidecar.log().count("event=channel.resumed") >= 3 * cuts, 20, "all are back", every=0.02)
            App("sum", 3, 256, socket=sidecar.socket, env=env).right(30)
            opened += 1
            wait_for(lambda: agent.log().count("event=session.close") == opened - 3, 20, "its session is over")
            for log in (agent.log(), sidecar.log()):
                assert day(days) in log, f"nothing was logged on day {days:+}"
        assert "event=session.expired" not in agent.log() and "lost" not in sidecar.log()
        for app in runs:
            assert app.process.poll() is None, app.text()
        runs[0].close_stdin()
        runs[0].right(30)
        # What ends ends soon, with the clock set back in the middle of it.
        begun = now()
        clock.move(-1)
        agent.process.terminate()
        agent.process.wait(20)
        sidecar.process.terminate()
        sidecar.process.wait(20)
        assert now() - begun < 20
