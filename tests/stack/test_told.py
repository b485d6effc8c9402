# SPDX-License-Identifier: Apache-2.0
"""A session that the agent ends: its program hears why, whichever way its worker ends. (Of a worker that hears the
front in time, test_reload.py and test_identity.py tell.)"""
import contextlib
import os
import signal

from stack import BUILD, NOT_PERMITTED, Agent, App, Sidecar, alive, folder, kill, wait_for

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


def test_a_stopped_workers_program_is_told_by_the_front():
    with tenant() as (agent, sidecar, revoke):
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 30)
        worker = agent.worker(app)
        kill(worker, signal.SIGSTOP)
        revoke()
        hears_why(agent, sidecar, app)
        assert not alive(worker)


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
