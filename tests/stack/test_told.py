# SPDX-License-Identifier: Apache-2.0
"""A session that the agent ends: its program hears why, whichever way its worker ends. (Of a worker that hears the
front in time, test_reload.py and test_identity.py tell.)"""
import contextlib
import os
import shutil
import signal

from stack import BIN, BUILD, LOST, NOT_PERMITTED, NOT_READY, Agent, App, Sidecar, alive, folder, kill, stack, wait_for

SLOW = os.path.join(BUILD, "stack", "libslow-driver.so")  # loading a module takes 9 s


@contextlib.contextmanager
def tenant(*flags, driver="software", address="{}", agent_flags=()):
    """(agent, sidecar, revoke) of an agent with one tenant, whose token revoke() takes away."""
    with folder() as path:
        tokens, mine = os.path.join(path, "tokens"), os.path.join(path, "mine")
        for file, text in ((tokens, "first-token a\n"), (mine, "first-token\n")):
            with open(file, "w") as out:
                out.write(text)
            os.chmod(file, 0o600)
        agent = Agent(path, "--token-file", tokens, *agent_flags, driver=driver)

        def revoke():
            with open(tokens, "w") as out:
                out.write("another-token b\n")
            os.kill(agent.pid, signal.SIGHUP)
            wait_for(lambda: "event=session.revoked" in agent.log(), 30, "the session is revoked")

        sidecar = Sidecar(path, address.format(agent.address), "--token-file", mine, *flags)
        yield agent, sidecar, revoke


def hears_why(agent, sidecar, app):
    app.line(f" gave {NOT_PERMITTED} ", 30)
    assert app.wait(10) != 0
    wait_for(lambda: "no token of the session's tenant any more" in sidecar.log(), 5, "the sidecar says why: " + sidecar.log())
    wait_for(lambda: not agent.sessions(), 10, "the session is over")
    assert 'refused_total{reason="secret"} 0' in agent.http("/metrics")


def stopped(*flags):
    with tenant(*flags) as (agent, sidecar, revoke):
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 30)
        worker = agent.worker(app)
        kill(worker, signal.SIGSTOP)
        revoke()
        hears_why(agent, sidecar, app)
        assert not alive(worker)


def test_a_stopped_workers_program_is_told_by_the_front():
    stopped()


def sleeps(pid):
    """The loop's thread does so in the slow driver only; else it waits for descriptors."""
    with open(f"/proc/{pid}/syscall") as file:
        return file.read().split()[0] in ("35", "230")  # nanosleep, clock_nanosleep


def in_a_call(*flags, **more):
    """The worker is in a call of its driver that lasts."""
    with tenant(*flags, driver=SLOW, **more) as (agent, sidecar, revoke):
        app = App("sum", 1, 1024, socket=sidecar.socket)
        worker = agent.worker(app, 30)
        wait_for(lambda: sleeps(worker), 20, "its driver loads a module")
        revoke()
        hears_why(agent, sidecar, app)
        assert not alive(worker)


def test_a_program_whose_worker_is_in_a_call_is_told():
    in_a_call()


def test_it_is_told_without_a_grace_too():
    in_a_call("--grace", "0")


def test_a_stopped_workers_program_is_told_without_a_grace():
    stopped("--grace", "0")


def killed(*flags):
    """Nobody ended the session: its worker died."""
    with stack(sidecar=flags) as s:
        app = s.app("calls")
        app.line("^calling", 30)
        kill(s.agent.worker(app))
        got = app.line(r"error (\d+) at|gave (\d+) ", 30)
        assert int(got[1] or got[2]) == LOST, got[0]
        wait_for(lambda: "the session's worker was ended by signal 9" in s.sidecar.log(), 5,
                 "the sidecar says why: " + s.sidecar.log())
        assert 'refused_total{reason="secret"} 0' in s.agent.http("/metrics")
        s.app("sum", 3, 64).right(30)


def test_a_killed_workers_program_is_told():
    killed()


def test_a_killed_workers_program_is_told_without_a_grace():
    killed("--grace", "0")


def test_a_program_hears_that_no_worker_can_be_executed():
    with folder() as path:
        program = os.path.join(path, "gpu-agent")
        shutil.copy(os.path.join(BIN, "gpu-agent"), program)
        agent = Agent(path, command=[
            program, "--driver", os.path.join(BUILD, "lib", "libvcuda-softgpu.so"), "--insecure", "--address", "127.0.0.1",
            "--ports", "0,0,0", "--warm", "1", "--drain", "0", "--ready-file", os.path.join(path, "agent", "ready.json")])
        wait_for(lambda: agent.read_ports() and agent.is_ready, 60, "the agent is ready")
        os.chmod(program, 0o644)
        sidecar = Sidecar(path, agent.address, "--attach-timeout", "3")
        App("sum", 3, 64, socket=sidecar.socket).right(30)  # by the worker that was there
        wait_for(lambda: "event=agent.not_ready" in agent.log(), 30, "the next one does not come")
        App("sum", 3, 64, socket=sidecar.socket).line(f"gave {NOT_READY} ", 30)
        wait_for(lambda: "no worker can be started: the system does not execute the agent's program" in sidecar.log(), 5,
                 "the sidecar says why: " + sidecar.log())
        os.chmod(program, 0o755)
        wait_for(lambda: agent.read_ports() and agent.is_ready, 30, "it comes by itself")
        App("sum", 3, 64, socket=sidecar.socket).right(30)


def test_a_cut_wire_without_a_grace_is_told_as_that():
    with stack(sidecar=("--grace", "0"), scheme="fault+native://{}?cut-after=60") as s:
        app = s.app("calls")
        got = app.line(r"error (\d+) at|gave (\d+) ", 30)
        assert int(got[1] or got[2]) == LOST, got[0]
        wait_for(lambda: "event=channel.lost" in s.sidecar.log(), 5, "the sidecar says so")
        assert "worker" not in s.sidecar.log().partition("event=channel.lost")[2], s.sidecar.log()
