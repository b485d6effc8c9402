# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels: a session finds what its tenant's sessions left, and nobody else's."""
import ctypes
import os
import signal

from stack import BIN, BUILD, Agent, App, Sidecar, Skip, folder, operator, reporting, wait_for

DRIVER = os.path.join(BUILD, "stack", "libcaching-driver.so")


class Caching:
    """An agent of two tenants whose driver says what it finds."""

    def __init__(self, path, *flags):
        self.path, self.agent_path = path, os.path.join(path, "agent")
        self.cache = os.path.join(self.agent_path, "cache")
        self.compiled = self.cache + ".compiled"
        self.report = os.path.join(path, "report")
        self.flags, self.sidecars = flags, {}
        os.makedirs(self.cache, exist_ok=True)
        ready = os.path.join(self.agent_path, "ready.json")
        if os.path.exists(ready):  # of one that was killed
            os.unlink(ready)
        tokens = os.path.join(path, "tokens")
        with open(tokens, "w") as file:
            file.write("token-of-blue blue\ntoken-of-red red\n")
        os.chmod(tokens, 0o400)
        self.agent = Agent(path, command=reporting([
            os.path.join(BIN, "gpu-agent"), "--driver", DRIVER, "--address", "127.0.0.1",
            "--ports", "0,0,0", "--drain", "0", "--cache-dir", self.cache, "--ready-file", ready,
            "--token-file", tokens, "--warm", "1", *operator(self.agent_path),
            *flags], self.report))
        self.agent.ready_file = ready
        wait_for(lambda: self.agent.read_ports() and self.agent.is_ready, 20, "the agent is ready")

    def sidecar(self, tenant):
        if tenant not in self.sidecars:
            place = os.path.join(self.path, f"{tenant}-{self.agent.pid}")
            os.makedirs(place, exist_ok=True)
            token = os.path.join(place, "token")
            with open(token, "w") as file:
                file.write(f"token-of-{tenant}\n")
            os.chmod(token, 0o400)
            self.sidecars[tenant] = Sidecar(place, self.agent, "--token-file", token)
        return self.sidecars[tenant]

    def found(self):
        try:
            with open(self.report) as file:
                return file.read().split()
        except OSError:
            return []

    def session(self, tenant):
        """What the driver of one session of TENANT found."""
        before = len(self.found())
        app = App("bystander", socket=self.sidecar(tenant).socket)
        app.line("^started", 20)
        worker = self.agent.worker(app)
        app.close_stdin()
        app.right()
        # Its folder goes when it was taken over; without a cache there never was one.
        places = [f"/proc/{worker}", *(os.path.join(self.compiled, own, str(worker))
                                       for own in self.own())]
        wait_for(lambda: not any(map(os.path.exists, places)), 10, "the worker is gone")
        return self.found()[before:]

    def own(self):
        return [name for name in os.listdir(self.compiled) if name.startswith("agent-")]


def landlock():
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        raise Skip("this kernel has no Landlock")


def test_a_session_finds_what_its_tenant_left_and_nobody_elses():
    landlock()
    with folder() as path:
        c = Caching(path)
        assert c.session("blue") == ["miss"]
        assert c.session("blue") == ["hit"]
        assert c.session("red") == ["miss"]
        assert c.session("red") == ["hit"]
        assert c.session("blue") == ["hit"]
        assert len(os.listdir(os.path.join(c.compiled, "kept"))) == 2
        # A worker's own folder goes with it: what is left are the warm one's and the lock.
        wait_for(lambda: len(os.listdir(os.path.join(c.compiled, c.own()[0]))) <= 2, 10,
                 "the folders of workers that are gone")
        c.agent.check()


def test_what_a_killed_agent_left_is_removed_and_what_is_kept_stays():
    landlock()
    with folder() as path:
        c = Caching(path)
        assert c.session("blue") == ["miss"]
        before = c.own()
        assert len(before) == 1
        os.kill(c.agent.pid, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(f"/proc/{c.agent.pid}") or
                 open(f"/proc/{c.agent.pid}/stat").read().split()[2] == "Z", 10, "it is gone")
        again = Caching(path)
        assert again.own() != before and len(again.own()) == 1
        assert again.session("blue") == ["hit"]


def test_without_a_sandbox_there_is_no_cache():
    with folder() as path:
        c = Caching(path, "--sandbox", "off")
        assert c.session("blue") == ["off"]
        assert c.session("blue") == ["off"]
