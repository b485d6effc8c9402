# SPDX-License-Identifier: Apache-2.0
"""Cut connections: a running program does not see them, within the grace; beyond it, it is told."""
from proxy import Proxy, cutting
from stack import LOST, now, stack, wait_for

FAULT = "fault+native://{}?"


def resumed(s, result="resumed"):
    """How often the agent has taken a session back."""
    for line in s.agent.http("/metrics").split("\n"):
        if line.startswith(f'vcuda_agent_resumes_total{{result="{result}"}}'):
            return int(line.split()[-1])
    raise AssertionError("no such metric")


def ended(s):
    wait_for(lambda: not s.agent.sessions(), 5, "the session ended with its program")


def test_each_connection_carries_some_frames():
    with stack(scheme=FAULT + "cut-after=37&truncate=7") as s:
        app = s.app("sum", 100, 1024)
        app.right(30)
        assert "100 rounds right" in app.text(), app.text()
        assert resumed(s) >= 10, f"resumed {resumed(s)} times"
        ended(s)


def test_each_connection_carries_some_bytes():
    with stack(scheme=FAULT + "cut-after-bytes=1300007") as s:
        app = s.app("sum", 20, 4096)
        app.right(30)
        assert resumed(s) >= 20, f"resumed {resumed(s)} times"
        ended(s)


def test_stripes_cut_in_large_copies():
    with stack(between=Proxy) as s:
        app = s.app("sum", 6, 64 * 1024)
        app.line("^started", 20)
        with cutting(s.between, 0.1):
            app.right(60)
        assert resumed(s) >= 5, f"resumed {resumed(s)} times"
        ended(s)


def test_beyond_the_grace():
    with stack(between=Proxy, sidecar=("--grace", "1")) as s:
        app = s.app("threads")
        app.line("^running", 20)
        s.between.dark = True
        s.between.cut()
        began = now()
        app.wait(20)
        assert now() - began < 9, f"{now() - began:.1f} s"
        wait_for(lambda: not s.agent.sessions(), 12, "the agent has its memory back")
