# SPDX-License-Identifier: Apache-2.0
"""Cut connections: a running program does not see them, within the grace; beyond it, it is told."""
import os
import signal

from proxy import Proxy, cutting
from stack import App, Sidecar, now, soon, stack, wait_for
from test_front import another_front
from test_latency import client
from test_tls import secured

FAULT = "fault+native://{}?"
# How often a wire is cut in the long test.
CUTS = int(os.environ.get("VCUDA_TEST_CUTS", "12"))


def resumed(s, result="resumed"):
    """How often the agent has taken a session back."""
    for line in s.agent.http("/metrics").split("\n"):
        if line.startswith(f'vcuda_agent_resumes_total{{result="{result}"}}'):
            return int(line.split()[-1])
    raise AssertionError("no such metric")


def of_sidecar(s, name):
    """A figure of the sidecar's."""
    for line in client(s, "metrics").split("\n"):
        if line.startswith(f"vcuda_sidecar_{name} "):
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
        assert of_sidecar(s, 'resumes_total{result="resumed"}') == resumed(s)
        assert not of_sidecar(s, 'resumes_total{result="failed"}') and not of_sidecar(s, "sessions_reconnecting")
        ended(s)
        assert not resumed(s, "expired"), "a program that ends well"


def test_stripes_cut_in_large_copies():
    with stack(between=Proxy) as s:
        app = s.app("sum", 6, 64 * 1024)
        app.line("^started", 20)
        with cutting(s.between, 0.1):
            app.right(60)
        assert resumed(s) >= 5, f"resumed {resumed(s)} times"
        ended(s)


def test_cut_again_and_again():
    """Commands, answers, copies and host functions under way: the numbers are right at the end."""
    signal.alarm(60 + 5 * CUTS)
    with stack(between=Proxy) as s:
        apps = [s.app("bystander"), s.app("calls"), s.app("pin")]
        apps[0].line("^started", 20)
        running = ["running"] * len(apps)
        wait_for(lambda: [one["state"] for one in s.agent.sessions()] == running, 20, "all run")
        # A session that is cut before the sidecar knows it is begun anew, not resumed.
        wait_for(lambda: s.sidecar.log().count("event=channel.open") == len(apps), 20, "the sidecar knows all")
        for cuts in range(1, CUTS + 1):
            s.between.cut()
            wait_for(lambda: s.sidecar.log().count("event=channel.resumed") >= cuts * len(apps), 20,
                     "all sessions are back", every=0.02)
        assert [one["state"] for one in s.agent.sessions()] == running, s.agent.sessions()
        apps[0].close_stdin()
        apps[0].right(20)


def test_cut_before_the_session_is_known():
    """The agent has begun it, the sidecar never hears so and begins another: the first one is over at once."""
    with stack(between=Proxy) as s:
        s.between.where = "welcome"
        app = s.app("sum", 3, 64)
        app.right(30)
        assert s.between.cuts == 1, s.between.cuts
        ended(s)


def test_the_front_dies_between_cuts():
    with stack(between=Proxy) as s:
        app = s.app("bystander")
        app.line("^started", 20)
        with cutting(s.between, 0.2):
            for _ in range(3):
                another_front(s)
            wait_for(lambda: resumed(s) >= 1, 10, "the last front took it back")
        app.close_stdin()
        app.right(20)
        ended(s)


def test_through_tls():
    with secured() as (path, authority, agent):
        sidecar = Sidecar(os.path.join(path, "sidecar"), f"fault+{agent.address}?cut-after-bytes=1300007",
                          "--tls-ca", authority.file)
        app = App("sum", 20, 4096, socket=sidecar.socket)
        app.right(40)
        assert sidecar.log().count("event=channel.resumed") >= 20, sidecar.log()


def test_beyond_the_grace():
    with stack(between=Proxy, sidecar=("--grace", "1")) as s:
        app = s.app("threads")
        app.line("^running", 20)
        s.between.dark = True
        s.between.cut()
        began = now()
        wait_for(lambda: of_sidecar(s, "sessions_reconnecting") == 1, 1, "it is told that a session is cut", every=0.02)
        app.wait(20)
        soon(began, 9, "after a grace of 1 s")
        assert of_sidecar(s, 'resumes_total{result="failed"}') == 1 and not of_sidecar(s, "sessions_reconnecting")
        wait_for(lambda: not s.agent.sessions(), 12, "the agent has its memory back")
        assert resumed(s, "expired") == 1 and not resumed(s, "refused")
