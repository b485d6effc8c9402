# SPDX-License-Identifier: Apache-2.0
"""What faults are injected into: an agent, a sidecar behind a network that breaks, and a bystander with a
sidecar of its own; and the look at what is left of a program when it is gone.

The agent's driver writes down each step that it executes (counting_driver.c).  Where the test may mount, the
agent's cache and the sidecar's shared memory lie in small file systems of their own, which can be filled."""
import contextlib
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "stack"), os.path.join(HERE, "..", "peer"), os.path.join(HERE, "..", "store")]
sys.dont_write_bytecode = True

from proxy import Proxy  # noqa: E402
from stack import (ANYWHERE, App, Agent, BIN, BUILD, Sidecar, alive, children, descendants, kill, reporting,  # noqa: E402
                   stat_of, started, wait_for)

PROGRAM = os.path.join(BUILD, "faults", "app")
DRIVER = os.path.join(BUILD, "faults", "libcounting-driver.so")
GONE = "gone"
UNCOUNTED = ("capture", "module")  # states whose steps the driver does not see as launches


def may_mount():
    return not os.geteuid() and not subprocess.run(["unshare", "-m", "true"]).returncode


def mounted(where, size, command):
    """COMMAND with a file system of SIZE at WHERE that only it and its children see."""
    return ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size={size} none {where} && exec \"$@\"", "sh",
            *command]


class Rig:
    """VICTIM: more flags of the sidecar of the programs that faults are injected into.  SCHEME: how it comes to the
    agent, where nothing is between.  BESIDE: these programs have a GPU of a second agent, too, started with these flags."""

    def __init__(self, path, seed=0, small=False, victim=(), agent=(), between=True, agent_env=None,
                 victim_env=None, scheme="", beside=None, app_env=None):
        self.folder, self.small, self.scheme = path, small and may_mount(), scheme
        self.app_env = app_env or {}
        self.beside = Agent(os.path.join(path, "beside"), "--peers", ANYWHERE, *beside) if beside is not None else None
        cache = os.path.join(path, "agent", "cache")
        os.makedirs(cache, exist_ok=True)
        self.steps, self.steps_at, self.numbers = os.path.join(path, "steps"), 0, {}
        ready = os.path.join(path, "agent", "ready.json")
        command = [os.path.join(BIN, "gpu-agent"), "--driver", DRIVER, "--address", scheme + "127.0.0.1", "--ports",
                   "0,0,0", "--drain", "0", "--cache-dir", cache, "--ready-file", ready, "--insecure", *agent]
        command = reporting(command, self.steps)
        self.agent = Agent(path, env=agent_env, ready=False, command=mounted(cache, "64m", command)
                           if self.small else command)
        wait_for(lambda: self.agent.read_ports() and self.agent.is_ready, 30, "the agent is ready")
        self.cache = f"/proc/{self.agent.pid}/root{cache}"
        self.proxy = Proxy(self.agent, seed) if between else None
        self.victim_env = victim_env
        self.victim_flags = ("--ping-timeout", "2", *victim)
        self.start_sidecar()
        self.quiet = Sidecar(os.path.join(path, "quiet"), self.agent)
        self.bystander = App("pace", socket=self.quiet.socket, program=PROGRAM)
        self.bystander.line("^in pace", 30)
        self.app("attach", stdin_ends=True).right(30)
        self.before = wait_for(self.steady, 20, "the rig is at rest")
        self.worker = self.agent.worker(self.bystander)

    def start_sidecar(self):
        """Also: another one at the same place, when the one before was killed."""
        path = os.path.join(self.folder, "victim")
        where = os.path.join(path, "sidecar", "s")
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(where)
        address = self.scheme + (self.proxy or self.agent).address
        if self.beside:
            address += "+" + self.beside.address
        command = [os.path.join(BIN, "vcuda-client"), "run", "--agent", address, "--socket", where,
                   *self.victim_flags]
        if self.small:
            command = mounted("/dev/shm", "200m", command + ["--ipc", "host"])
        self.sidecar = Sidecar(path, address, socket=where, command=command, env=self.victim_env)

    def app(self, *words, stdin_ends=False):
        # Silence is not what is tested, and the machine may be busy.
        app = App(*words, socket=self.sidecar.socket, program=PROGRAM, env={"VCUDA_SIDECAR_TIMEOUT": "20", **self.app_env})
        if stdin_ends:
            app.close_stdin()
        return app

    @staticmethod
    def forget(app):
        """APP has ended, and thousands follow."""
        app.reader.join(5)
        app.close_stdin()
        app.process.stdout.close()
        started.remove(app.process)

    # --- what is there ---

    def daemons(self):
        return [self.agent.pid, self.sidecar.pid, self.quiet.pid]

    def state(self):
        """What a program must leave as it was: descriptors, processes, sessions, memory, names."""
        front = self.agent.front()
        kinds = sorted((stat_of(pid) or ("?",))[0] for pid in descendants(self.agent.pid))
        return {
            "descriptors": [len(os.listdir(f"/proc/{pid}/fd")) for pid in [*self.daemons(), front]],
            "processes": kinds,
            "sessions": len(self.agent.sessions()),
            "free": self.agent.gpu()["memory_free_bytes"],
            "names": len([name for name in os.listdir("/dev/shm") if "vcuda" in name]),
            "segments": self.segments(),
            "beside": [len(self.beside.sessions()), self.beside.gpu()["memory_free_bytes"]] if self.beside else [],
        }

    def segments(self):
        count = 0
        for name in os.listdir(f"/proc/{self.sidecar.pid}/fd"):
            with contextlib.suppress(OSError):
                link = os.readlink(f"/proc/{self.sidecar.pid}/fd/{name}")
                count += "/memfd:vcuda" in link or "/dev/shm/" in link
        return count

    def steady(self):
        """state(), once it has not changed for a while."""
        with contextlib.suppress(OSError, AssertionError, IndexError):
            first = self.state()
            for _ in range(3):
                wait_for(lambda: True, 1, "")
                subprocess.run(["sleep", "0.03"])
                if self.state() != first:
                    return None
            return first
        return None

    def at_rest(self, seconds=25):
        """Everything is as before the first program, or AssertionError that says what is not."""
        last = {}

        def same():
            with contextlib.suppress(OSError):
                last.update(self.state())
                return last == self.before
            return False
        try:
            wait_for(same, seconds, "nothing is left", every=0.02)
        except AssertionError as error:
            differs = {k: (self.before[k], last.get(k)) for k in self.before if last.get(k) != self.before[k]}
            raise AssertionError(f"{error}: before and now: {differs}") from None

    def bystander_lives(self):
        assert self.bystander.process.poll() is None, "the bystander: " + self.bystander.text()[-300:]
        assert alive(self.worker), "the bystander's worker is gone"

    # --- what was executed ---

    def executed(self, pid):
        """The numbers of PID's steps in the order in which the driver launched them; forgets them."""
        with open(self.steps, "rb") as file:
            file.seek(self.steps_at)
            data = file.read()
        data = data[:len(data) // 8 * 8]
        self.steps_at += len(data)
        for owner, number in struct.iter_unpack("<II", data):
            if owner != self.bystander.pid:
                self.numbers.setdefault(owner, []).append(number)
        return self.numbers.pop(pid, [])

    def once(self, app, state, counted=True):
        """No step twice or out of order, and none missing of those that the program knew to be done."""
        text, numbers = app.text(), self.executed(app.pid)
        for i in range(1, len(numbers)):
            assert numbers[i] > numbers[i - 1], f"step {numbers[i]} was executed after {numbers[i - 1]}"
        done = re.search(r"right after (\d+)|confirmed (\d+)", text)
        if done and counted and state not in UNCOUNTED:
            known = int(done[1] or done[2])
            assert numbers[:known] == list(range(1, known + 1)), \
                f"{known} steps were done, {len(numbers)} executed"
        return len(numbers)

    def close(self):
        self.bystander.close_stdin()
        self.bystander.right(30)


def outcome(app, seconds=60):
    """"right", "gone", or the error that APP got; AssertionError where it got a wrong result or hung."""
    status = app.wait(seconds)
    text = app.text()
    assert "wrong: " not in text, text[-400:]
    if status == -9:
        return GONE
    if status == 0:
        assert "right after" in text, text[-400:]
        return "right"
    error = re.search(r"error (\d+) confirmed", text)
    assert error, f"exit status {status}: {text[-400:]}"
    if "afterwards" in text:
        assert "afterwards 0 wrong" in text, text[-400:]
    return int(error[1])


__all__ = ["Rig", "App", "GONE", "PROGRAM", "outcome", "children", "kill", "alive", "wait_for"]
