# SPDX-License-Identifier: Apache-2.0
"""An agent and its sidecars, started from a folder as `make dist` (or build/) makes it, and the
environment that a program wants to run through them.  bench/torch and tests/torch start the same.
"""
import glob
import json
import os
import re
import select
import signal
import site
import subprocess
import tempfile
import time
import urllib.request

# What a client machine does not have: the GPU's device files become /dev/null for the program.
MASK = ("for d in /dev/nvidia*; do [ -c \"$d\" ] && mount --bind /dev/null \"$d\"; done; "
        "exec \"$@\"")


class Failed(Exception):
    """The text is for people."""


def halves():
    """The cores for the client side and for the agent; both the same on a small machine."""
    every = sorted(os.sched_getaffinity(0))
    half = len(every) // 2
    return (every[:half], every[half:]) if half > 1 else (every, every)


def tail(path, lines=4):
    try:
        with open(path, errors="replace") as file:
            return " | ".join(file.read().strip().splitlines()[-lines:])
    except OSError:
        return ""


def library_folders():
    """Folders of the NVIDIA libraries that this Python has, for the agent."""
    return [path for folder in site.getsitepackages() for path in sorted(glob.glob(f"{folder}/nvidia/*/lib"))]


class Stack:
    """with Stack(folder, driver) as stack: stack.env(), stack.sidecar(delay_us=200)"""

    def __init__(self, folder, driver="nvidia", log=None, libraries=(), options=(), pin=True, local=False):
        self.folder = os.path.abspath(folder)
        self.driver, self.libraries, self.options = driver, libraries, options
        self.work = log or tempfile.mkdtemp(prefix="vcuda-torch-")
        os.makedirs(self.work, exist_ok=True)
        self.client, self.server = halves()
        self.pin, self.processes, self.sockets = pin, [], {}
        self.ports = {}
        self.local = f"local://{self.work}/agent.sock" if local else None

    def binary(self, name):
        return os.path.join(self.folder, "bin", name)

    def pinned(self, cores, command):
        if not self.pin:
            return list(command)
        return ["taskset", "-c", ",".join(map(str, cores)), *command]

    def start(self, name, cores, command, env=None):
        with open(f"{self.work}/{name}.log", "w") as log:
            process = subprocess.Popen(self.pinned(cores, command), stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, env=env)
        self.processes.append(process)
        return process

    def wait(self, process, path, seconds, name):
        deadline = time.monotonic() + seconds
        while not (os.path.exists(path) and (os.path.getsize(path) or not os.path.isfile(path))):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{name} did not get ready: {tail(f'{self.work}/{name}.log')}")
            time.sleep(0.02)

    def __enter__(self):
        try:
            ready = f"{self.work}/ready.json"
            env = dict(os.environ)
            if self.libraries:
                env["LD_LIBRARY_PATH"] = ":".join(
                    [*self.libraries, *filter(None, [env.get("LD_LIBRARY_PATH")])])
            agent = self.start("agent", self.server, [
                self.binary("gpu-agent"), "--driver", self.driver, "--insecure", "--address",
                f"{self.local}, 127.0.0.1" if self.local else "127.0.0.1", "--ports", "0,0,0", "--ready-file", ready, *self.options], env)
            self.wait(agent, ready, 60, "agent")
            with open(ready) as file:
                self.ports = json.load(file)["ports"]
            self.sidecar()
            self.preload = subprocess.check_output([self.binary("vcuda"), "preload"],
                                                   text=True, timeout=10).strip()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def address(self, delay_us=0):
        """Of the agent, over a wire that takes DELAY_US longer there and back, or by memory that it shares."""
        if self.local and not delay_us:
            return self.local
        address = f"127.0.0.1:{self.ports['recv']}"
        return f"fault+native://{address}?delay={delay_us}us" if delay_us else address

    def sidecar(self, delay_us=0):
        """The socket of a sidecar whose wire takes DELAY_US longer there and back."""
        if delay_us not in self.sockets:
            socket = f"{self.work}/vcuda-{delay_us}.sock"
            name = f"sidecar-{delay_us}"
            process = self.start(name, self.client, [
                self.binary("vcuda-client"), "run", "--agent", self.address(delay_us), "--socket", socket])
            self.wait(process, socket, 30, name)
            self.sockets[delay_us] = socket
        return self.sockets[delay_us]

    def env(self, delay_us=0, **more):
        """A program's environment for running remotely."""
        env = dict(os.environ, VCUDA_SOCKET=self.sidecar(delay_us), LD_PRELOAD=self.preload,
                   TRITON_LIBCUDA_PATH=os.path.join(self.folder, "lib"))
        env.update(more)
        return env

    def env_with(self, others, delay_us=0, **more):
        """The same for a program that has this agent's GPUs and those of OTHERS, as one process's."""
        name = f"sidecar-{len(self.processes)}"
        socket = f"{self.work}/{name}.sock"
        agents = "+".join(one.address(delay_us) for one in (self, *others))
        process = self.start(name, self.client, [
            self.binary("vcuda-client"), "run", "--agent", agents, "--socket", socket])
        self.wait(process, socket, 30, name)
        return self.env(VCUDA_SOCKET=socket, **more)

    def metrics(self):
        """The agent's counters, {name with labels: value}."""
        url = f"http://127.0.0.1:{self.ports['control']}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
        return {name: float(value) for name, value in
                re.findall(r"^([a-z_]+(?:\{[^}]*\})?) ([0-9.e+-]+)$", text, re.M)}

    def cpu_seconds(self):
        """What agent and workers, and the sidecars, have used of their cores."""
        ours = {process.pid: "sidecar" if i else "agent" for i, process in
                enumerate(self.processes)}
        used = {"agent": 0.0, "sidecar": 0.0}
        parents = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) /
                                   os.sysconf("SC_CLK_TCK"))
        for pid, (_, seconds) in parents.items():
            root = pid
            while root in parents and root not in ours:
                root = parents[root][0]
            if root in ours:
                used[ours[root]] += seconds
        return used


def masked(command):
    """COMMAND without the GPU's device files; needs root."""
    return ["unshare", "-m", "sh", "-c", MASK, "sh", *command]


class Arm:
    """A program that lives through the run and measures in turn: for each LINE it prints a JSON object."""

    def __init__(self, name, command, env, mask, log, line="measure"):
        self.name, self.log, self.line = name, f"{log}/{name}.log", line
        with open(self.log, "w") as file:
            self.process = subprocess.Popen(masked(command) if mask else command, env=env, text=True, bufsize=1,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file)

    def ask(self):
        self.process.stdin.write(f"{self.line}\n")

    def answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            if self.process.poll() is None:  # where it is, says its log: faulthandler
                self.process.send_signal(signal.SIGABRT)
                self.process.wait(20)
            raise Failed(f"{self.name} gave no answer within {seconds:.0f} s: {tail(self.log, 14)}")
        return json.loads(line)

    def measure(self, seconds):
        self.ask()
        return self.answer(seconds)

    def end(self):
        self.process.stdin.close()

    def stop(self):
        self.end()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
