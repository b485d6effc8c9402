# SPDX-License-Identifier: Apache-2.0
"""A worker with a tenant's code in it: what it tries is refused, and its session goes on."""
import contextlib
import ctypes
import errno
import os
import re
import sys

from stack import (BIN, BUILD, Agent, App, Sidecar, Skip, alive, children, folder, kill, reporting,
                   wait_for)
from test_images import KERNEL, PROGRAM as MODULE

# tests/gpu/sandbox.sh names another, in front of NVIDIA's.
DRIVER = os.environ.get("PRYING_DRIVER") or os.path.join(BUILD, "stack", "libprying-driver.so")
REFUSED = {errno.EPERM, errno.EACCES}
NOBODY = 65532  # whom the chart runs the agent as
SECRET = "what-a-worker-must-not-know"
ALLOWED = {"may.socketpair", "may.kill-self", "may.own-status", "may.thread-name", "may.null",
           "done"}


class Prying:
    """An agent whose workers pry; two programs, of which the second's worker is looked at."""

    def __init__(self, path, *flags, user=None):
        agent = os.path.join(path, "agent")
        self.cache = os.path.join(agent, "cache")
        token = os.path.join(path, "token")
        self.report = os.path.join(path, "report")
        libraries = os.path.join(path, "libraries")
        victims = os.path.join(libraries, "victims")
        os.makedirs(self.cache)
        os.makedirs(libraries)
        with open(token, "w") as file:
            file.write(SECRET + "\n")
        command = []
        if user or "worker_users" in " ".join(flags):
            os.chmod(path, 0o755)
        if user:
            for name in (agent, self.cache):
                os.chown(name, user, user)
            os.chown(token, 0, user)
            command = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups",
                       "--inh-caps=-all", "--bounding-set=-all"]
        os.chmod(token, 0o440)
        env = {"VCUDA_SOFTGPU_VICTIMS": victims, "VCUDA_SOFTGPU_TOKEN": token,
               "VCUDA_SOFTGPU_CACHE": self.cache}
        command += [os.path.join(BIN, "gpu-agent"), "--driver", DRIVER, "--address", "127.0.0.1",
                    "--ports", "0,0,0", "--drain", "0", "--cache-dir", self.cache,
                    "--ready-file", os.path.join(agent, "ready.json"), "--token-file", token,
                    "--warm", "1", "--set", f"libraries.path={libraries}", *flags]
        self.agent = Agent(path, command=reporting(command, self.report), env=env)
        self.agent.ready_file = os.path.join(agent, "ready.json")
        wait_for(lambda: self.agent.read_ports() and self.agent.is_ready, 20, "the agent is ready")
        self.sidecar = Sidecar(path, self.agent, "--token-file", token)
        self.victim = self.app()
        self.victim.line("^started", 20)
        worker = self.agent.worker(self.victim)
        with open(victims, "w") as file:
            file.write(f"supervisor {self.agent.pid}\nfront {self.agent.front()}\n"
                       f"worker {worker}\n")
        self.prying = self.app()

    def app(self):
        return App("bystander", socket=self.sidecar.socket)

    def reports(self):
        """{(when, name): the errnos of it}, once both programs' workers have tried all."""
        def read():
            with open(self.report) as file:
                lines = [line.split() for line in file if line.endswith("\n")]
            got = {}
            for when, name, number in lines:
                got.setdefault((when, name), []).append(int(number))
            return got if len(got.get(("session", "done"), ())) > 1 else None
        return wait_for(read, 20, "the workers have tried all")

    def end(self):
        """Both programs come to their right end, and the agent serves on."""
        for app in (self.victim, self.prying):
            app.close_stdin()
            app.right()
        again = self.app()
        again.line("^started", 20)
        again.close_stdin()
        again.right()
        self.agent.check()


def kernel_has_all():
    """Landlock as of ABI 6 (signals), by its system call, and seccomp."""
    with open("/proc/self/status") as file:
        seccomp = "\nSeccomp:" in file.read()
    return seccomp and ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


def reachable(path):
    """Whether every folder on the way is open to everybody."""
    return path == "/" or (os.stat(path).st_mode & 1 and reachable(os.path.dirname(path)))


def confined(*flags, user=None, text=""):
    if not kernel_has_all():
        raise Skip("this kernel's Landlock or seccomp lacks something")
    with folder() as path:
        p = Prying(path, *flags, user=user)
        got = p.reports()
        done = sorted(key for key, numbers in got.items()
                      if key[1] not in ALLOWED and set(numbers) - REFUSED)
        lacks = sorted(key for key, numbers in got.items() if key[1] in ALLOWED and any(numbers))
        assert not done, f"not refused: {done}"
        assert not lacks, f"refused: {lacks}"
        for when in ("init", "session", "early-thread"):
            assert (when, "token") in got, f"nothing was tried at {when}"
        for who in ("supervisor", "front", "worker"):
            assert ("early-thread", who + ".pidfd_getfd") in got, f"{who} was not tried"
        assert len(got) > 150, f"only {len(got)} tries"
        page = p.agent.http("/readyz?verbose")
        assert f"[+] sandbox: hidden, capabilities, landlock, seccomp{text}\n" in page, page
        metrics = p.agent.http("/metrics")
        for part in ("hidden", "capabilities", "landlock", "seccomp"):
            assert f'vcuda_agent_worker_sandbox{{part="{part}"}} 1\n' in metrics, metrics
        assert 'vcuda_agent_worker_isolation{mode="landlock+seccomp"} 1\n' in metrics, metrics
        assert "sandbox.off" not in p.agent.log()
        counted(p)
        p.end()


def refused(p):
    """{call: how often workers were refused it}."""
    return {call: int(count) for call, count in
            re.findall(r'^vcuda_agent_refused_calls_total{call="(\w+)"} (\d+)$', p.agent.http("/metrics"), re.M)}


def counted(p):
    """The front has them all: those of the loop's thread, of another one, and of the driver's start."""
    got = refused(p)
    for call in ("ptrace", "process_vm_readv", "pidfd_getfd", "tkill", "kill", "prctl", "unshare", "bpf", "execve",
                 "socket", "connect", "shmget", "clone", "prlimit64"):
        assert got.get(call, 0) >= 2, f"{call}: {got}"
    assert got["other"] >= 2, got  # x32
    assert "vcuda_agent_refused_calls_counted 1\n" in p.agent.http("/metrics")
    sessions = p.agent.sessions()
    assert len(sessions) == 2 and all(one["refused_calls"] > 20 for one in sessions), sessions
    said = [line for line in p.agent.log().splitlines() if "event=worker.refused" in line]
    of_sessions = [re.search(r" session=(\w+)", line) for line in said]
    of_sessions = [got[1] for got in of_sessions if got]
    assert len(of_sessions) == len(set(of_sessions)) == 2, said
    assert all(re.search(r" call=\w+ number=\d+ ", line) for line in said), said


def test_what_is_refused_is_counted_by_the_next_front_too():
    if not kernel_has_all():
        raise Skip("this kernel's Landlock or seccomp lacks something")
    with folder() as path:
        p = Prying(path)
        p.reports()
        image = os.path.join(path, "image.ptx")
        with open(image, "w") as file:
            file.write(KERNEL + "\0")
        late = App(MODULE, image, "wait", socket=p.sidecar.socket, program=sys.executable)
        late.line("^waits", 30)
        before, front = refused(p), p.agent.front()
        kill(front)
        wait_for(lambda: children(p.agent.pid, "agent-front") not in ([], [front]) and answers(p), 30, "another front")
        late.process.stdin.write("\n")
        late.process.stdin.flush()
        late.line("^42", 60)
        after = refused(p)
        assert after["ptrace"] > before["ptrace"] and after["socket"] > before["socket"], (before, after)
        late.right()
        p.end()


def answers(p):
    with contextlib.suppress(OSError):
        return p.agent.http("/healthz")
    return None


def test_a_tenants_code_reaches_nothing_of_others():
    confined()


def test_nor_where_the_agent_is_an_ordinary_user():
    if os.geteuid():
        raise Skip("started as an ordinary user")
    if not reachable(BIN):
        raise Skip(f"other users cannot reach {BIN}")
    confined("--sandbox", "required", user=NOBODY)


def test_nor_the_store():
    """Which opens the same driver: what it tries there, in a process without calls to be told of, is refused too."""
    if not kernel_has_all():
        raise Skip("this kernel's Landlock or seccomp lacks something")
    with folder() as path:
        p = Prying(path, "--set", "store.bytes=64MiB")
        wait_for(lambda: "event=store.ready" in p.agent.log(), 20, "the store is ready")
        before = len(p.reports()["init", "token"])
        kill(children(p.agent.pid, "agent-store")[0])  # the next one tries it too, when no worker starts
        wait_for(lambda: len(p.reports()["init", "token"]) > before, 20, "a store has tried")
        done = sorted(key for key, numbers in p.reports().items() if key[1] not in ALLOWED and set(numbers) - REFUSED)
        assert not done, f"not refused: {done}"
        p.end()


def test_switched_off_it_is_said_aloud_and_all_is_open():
    """Also what shows that the tries above are ones that can succeed."""
    with folder() as path:
        p = Prying(path, "--sandbox", "off")
        got = p.reports()
        # Those are wrong calls, or not in this kernel.
        refused = sorted(key for key, numbers in got.items()
                         if any(numbers) and key[0] == "session" and
                         key[1] not in ("x32", "bpf", "connect"))
        assert not refused, f"refused: {[(key, got[key]) for key in refused]}"
        assert "event=sandbox.off" in p.agent.log()
        text = p.agent.http("/readyz?verbose")
        assert "[ ] sandbox: switched off, " in text, text
        assert alive(p.agent.pid)
        p.end()
