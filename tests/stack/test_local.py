# SPDX-License-Identifier: Apache-2.0
"""local://PATH: program and worker share memory; the sidecar carries no frame.  What holds over a wire
holds here: right results, ends that are noticed, bad input that ends one session with a sentence."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

from stack import LOST, MIB, Agent, App, Sidecar, Skip, folder, kill, wait_for
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


def test_all_memory_is_there_before_the_workers_driver_locks_it():
    """Else what locks it would give it memory, which counts as the agent's."""
    with on_one_machine() as (_, sidecar):
        app = App("bystander", socket=sidecar.socket)
        app.line("^started")
        assert app.shared_memory() > 12 * MIB, app.shared_memory()
        app.close_stdin()
        app.right()


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


def test_pinned_payloads_cost_no_question_to_the_sidecar():
    """What a number of pinned memory is the page says: the worker looks at its socket when that has changed."""
    if not shutil.which("strace"):
        raise Skip("needs strace")
    with on_one_machine() as (agent, sidecar), folder() as path:
        app = App("pinned", 4096, 1 << 30, socket=sidecar.socket)
        worker = agent.worker(app)
        app.line("error 0")
        before = agent.sessions()[0]["bytes_received"]
        table = os.path.join(path, "calls")
        tracer = subprocess.Popen(["strace", "-f", "-c", "-o", table, "-p", str(worker)], stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            wait_for(lambda: agent.sessions()[0]["bytes_received"] > before + 1000 * 4096, 60, "a thousand copies more")
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(30)
        with open(table, encoding="ascii") as file:
            calls = {line.split()[-1]: int(line.split()[3]) for line in file if re.search(r" [a-z]\w+$", line)
                     and line.split()[3].isdigit()}
        kill(app.pid)
        if not calls:
            raise Skip("strace may not trace here")
        assert calls.get("futex", 0) > 500, calls  # one a round wakes the program
        assert calls.get("recvmsg", 0) < calls["futex"] / 4, calls


def test_pinned_memory_goes_in_large_pieces():
    """64 MiB each way in pieces of about 2 MiB: 34 frames each, where those of a wire are 128."""
    with on_one_machine() as (agent, sidecar):
        app = App("pinned", 64 << 20, 1, socket=sidecar.socket)
        app.line("copied")
        app.right()
        said = wait_for(lambda: re.search(r'event=session.end .* frames=(\d+)', agent.log()), 10,
                        "the agent says what the session was")
        frames = int(said[1])
        assert 2 * 34 <= frames < 2 * 34 + 40, frames


def test_a_copy_that_waits_is_done_with_its_source():
    """From 1 MiB of pinned memory on nothing is copied first: below that, at it and far beyond it."""
    with on_one_machine() as (_, sidecar):
        for size in (1 << 20) - 1, 1 << 20, (48 << 20) + 5:
            App("rewritten", size, 5, socket=sidecar.socket).right()


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
