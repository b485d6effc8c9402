# SPDX-License-Identifier: Apache-2.0
"""local://PATH: program and worker share memory; the sidecar carries no frame.  What holds over a wire
holds here: right results, ends that are noticed, bad input that ends one session with a sentence."""
import contextlib
import os
import re

from stack import LOST, Agent, App, Sidecar, folder, kill, wait_for
from test_stripes import FOR_EVER


@contextlib.contextmanager
def on_one_machine(*flags, sidecar=()):
    with folder() as path:
        where = os.path.join(path, "run", "agent.sock")
        agent = Agent(path, "--address", f"local://{where}", *flags)
        agent.socket, agent.address = where, f"local://{where}"
        yield agent, Sidecar(path, agent.address, *sidecar)


def read_bytes(pid):
    """What a process got by system calls that read."""
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        return int(re.search(r"rchar: (\d+)", file.read())[1])


def test_computes():
    with on_one_machine() as (agent, sidecar):
        App("sum", 100, 64, socket=sidecar.socket).right()
        wait_for(lambda: not agent.sessions(), 30, "no session is left")


def test_no_payload_goes_through_a_socket():
    """4096 KiB a round, many rounds: the sidecar reads a few KiB, and so does the worker."""
    with on_one_machine() as (agent, sidecar):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        worker = agent.worker(app)
        wait_for(lambda: agent.sessions()[0]["bytes_received"] > 64 << 20, 60, "64 MiB were copied")
        assert read_bytes(sidecar.pid) < 1 << 20, read_bytes(sidecar.pid)
        assert [(one["transport"], one["lanes"]) for one in agent.sessions()] == [("local", 0)], agent.sessions()
        assert 'vcuda_agent_sessions_by_transport{transport="local"} 1' in agent.http("/metrics")
        app.close_stdin()
        app.right(60)
        assert worker


def test_killed_program_frees_its_worker():
    with on_one_machine() as (agent, sidecar):
        app = App("sum", FOR_EVER, 64, socket=sidecar.socket)
        agent.worker(app)
        kill(app.pid)
        wait_for(lambda: not agent.sessions(), 30, "the session is over")
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_killed_worker_ends_the_program():
    with on_one_machine() as (agent, sidecar):
        app = App("calls", socket=sidecar.socket)
        app.line("^calling")
        kill(agent.worker(app))
        got = app.line(r"error (\d+) at|gave (\d+) ", 30)
        assert int(got[1] or got[2]) == LOST, got[0]
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_killed_sidecar_ends_a_session_without_grace():
    with on_one_machine(sidecar=("--grace", "0")) as (agent, sidecar):
        app = App("calls", socket=sidecar.socket)
        app.line("^calling")
        kill(sidecar.pid)
        got = app.line(r"error (\d+) at|gave (\d+) ", 30)
        assert int(got[1] or got[2]) == LOST, got[0]
        wait_for(lambda: not agent.sessions(), 30, "the session is over")
