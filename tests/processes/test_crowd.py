# SPDX-License-Identifier: Apache-2.0
"""Many processes at once."""
import os
import time

from stack import BUILD, MIB, stack, wait_for

CROWD = 64
MOST = 8 * MIB  # of the sidecar's memory a process, beside its segment


def resident(pid):
    """(all, of it shared memory) in bytes: segments are shared memory, mapped by the sidecar."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return tuple(int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssShmem"))


def test_64_processes_at_once_and_the_sidecars_memory():
    with stack() as s:
        before = resident(s.sidecar.pid)
        app = s.app("--count", CROWD - 1, program=os.path.join(BUILD, "programs", "13", "processes"))
        worst, most = 0, 0
        while app.process.poll() is None:
            attached = max(1, len(s.agent.sessions()))
            all_, shared = resident(s.sidecar.pid)
            if attached >= most:
                most, worst = attached, max(worst, (all_ - shared - before[0] + before[1]) / attached)
            time.sleep(0.02)
        app.right(1)
        assert f"{CROWD} processes kept apart" in app.text(), app.text()
        assert worst <= MOST, f"{worst / MIB:.1f} MiB a process with {most} attached"
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")


def test_64_processes_hold_memory_at_the_same_time():
    """All attached at once, for certain: each holds 4 MiB until the last one does."""
    with stack() as s:
        before = resident(s.sidecar.pid)
        apps = [s.app("hold", 4 * MIB) for _ in range(CROWD)]
        for app in apps:
            app.line("^holding", 30)
        assert len(s.agent.sessions()) == CROWD
        all_, shared = resident(s.sidecar.pid)
        each = (all_ - shared - before[0] + before[1]) / CROWD
        assert each <= MOST, f"{each / MIB:.1f} MiB a process"
        wait_for(lambda: s.agent.gpu()["memory_used_bytes"] >= CROWD * 4 * MIB, 5,
                 "all that they hold is in the ledger")
        for app in apps:
            app.close_stdin()
        for app in apps:
            app.right()
        wait_for(lambda: not s.agent.sessions() and s.agent.gpu()["memory_used_bytes"] == 0, 5,
                 "all is free")
