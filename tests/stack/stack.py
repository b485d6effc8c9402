# SPDX-License-Identifier: Apache-2.0
"""The whole stack on the software GPU, in real processes: what tests/stack and tests/processes
start, look at and kill.

Every program is started through start(), which remembers it; the runner (run.py) is a subreaper
and calls clean() after each test, which finds what the test left behind.  Nothing here sleeps for
a fixed time: wait_for() polls.
"""
import contextlib
import functools
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
BIN, LIB = os.path.join(BUILD, "bin"), os.path.join(BUILD, "lib")
PROGRAM = os.path.join(BUILD, "stack", "app")
MIB = 1 << 20
ANYWHERE = "127.0.0.1/32:*"  # of an agent's --peers: whom it dials

# cudaError_t
OUT_OF_MEMORY, NO_DEVICE, ILLEGAL_ADDRESS, TIMEOUT, ASSERT, NOT_READY = 2, 100, 700, 702, 710, 802
NOT_PERMITTED, LOST = 800, 911

# A deadline tells what hangs from what goes on, on a machine with two cores and three suites at once; how
# fast something is, soon() holds.
PATIENCE = 1 if os.environ.get("VCUDA_TEST_BARS") else 3

now = time.monotonic  # CLOCK_MONOTONIC, as app.cu prints it
HTTP_TOKEN = "http-token-of-a-test"


class Skip(Exception):
    pass


def wait_for(what, seconds, message, every=0.002):
    """The first true value of what(); AssertionError with `message` after `seconds`, PATIENCE times."""
    seconds *= PATIENCE
    end = now() + seconds
    while True:
        got = what()
        if got:
            return got
        if now() > end:
            raise AssertionError(f"not within {seconds} s: {message}")
        time.sleep(every)


def freeze(pid):
    """SIGSTOP, and each thread has stopped: until the one that gets the signal runs, others go on."""
    os.kill(pid, signal.SIGSTOP)

    def state(thread):
        with contextlib.suppress(FileNotFoundError):  # it has ended since
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
    wait_for(lambda: {state(thread) for thread in os.listdir(f"/proc/{pid}/task")} == {"T"}, 10, "all of its threads stand still")


def soon(began, seconds, what):
    """What a person would call at once. A busy machine may take longer: held with VCUDA_TEST_BARS=1 only."""
    took = now() - began
    assert took < seconds or not os.environ.get("VCUDA_TEST_BARS"), f"{what}: {took:.2f} s, not {seconds}"


# --- processes ---

def become_subreaper():
    """Whatever a test's processes leave behind becomes our child, so clean() finds it."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def stat_of(pid):
    """(name, state, parent) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            text = file.read()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
    return name, rest[0], int(rest[1])


def alive(pid):
    got = stat_of(pid)
    return bool(got) and got[1] not in "ZX"


def children(pid, name=None):
    found = []
    for entry in os.listdir("/proc"):
        got = stat_of(entry) if entry.isdigit() else None
        if got and got[2] == pid and got[1] not in "ZX" and name in (None, got[0]):
            found.append(int(entry))
    return found


def descendants(pid):
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def kill(pids, number=signal.SIGKILL):
    for pid in pids if isinstance(pids, (list, tuple)) else [pids]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


started = []


def start(command, **more):
    """What COMMAND names of our build is there: an agent would wait for a driver that nobody makes."""
    for word in command:
        value = str(word).partition("=")[2] or str(word)  # libraries.nccl=FOLDER
        for path in value.split(os.pathsep):
            if path.startswith(BUILD + os.sep) and not os.path.exists(path):
                raise AssertionError(f"{os.path.relpath(path, ROOT)} is not built: make all build-tests")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, **more)
    started.append(process)
    return process


def clean():
    """Ends what is left of a test; the names of what should not have been there any more."""
    for process in started:
        if process.poll() is None:
            kill(process.pid, signal.SIGCONT)
            kill(process.pid)
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(Exception):
                stream.close()
    started.clear()

    def reap():
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return not descendants(os.getpid())

    left = []
    try:
        # Workers go with their agent, but it takes them a moment.
        wait_for(reap, 3, "processes are gone")
    except AssertionError:
        for pid in descendants(os.getpid()):
            left.append((stat_of(pid) or ("?",))[0])
            kill(pid, signal.SIGCONT)
            kill(pid)
        wait_for(reap, 5, "processes are killed")
    return left


class Logged:
    """A daemon whose stderr goes to a file."""

    def launch(self, command, env=None):
        self.log_path = os.path.join(self.folder, "log")
        with open(self.log_path, "w") as log:
            self.process = start(command, stdout=log, stderr=log, env=environment(env))
        self.pid = self.process.pid

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def check(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{type(self).__name__} ended: {self.log()[-600:]}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(10)


def reporting(command, file):
    """COMMAND with FILE in its stdin's place: what a driver in a worker reports to, which reaches no
    file that another process reads."""
    return ["sh", "-c", 'exec "$@" 0>>"$0"', file, *command]


def environment(more=None):
    """Ours without what would change a program's ways, and `more`; None takes a name away."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("VCUDA_") and name not in ("REMOTE_GPU_ADDRESS", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES")}
    for name, value in (more or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def operator(folder):
    """Flags of an agent that may have several tenants: HTTP_TOKEN sees them all."""
    file = os.path.join(folder, "http-token")
    with open(file, "w") as out:
        out.write(HTTP_TOKEN + "\n")
    return "--set", f"http.token_file={file}"


class Agent(Logged):
    """gpu-agent on free ports of 127.0.0.1; without a token unless a flag names one."""

    def __init__(self, folder, *flags, env=None, driver="software", command=None,
                 ready=True):
        self.folder = os.path.join(folder, "agent")
        os.makedirs(self.folder, exist_ok=True)
        self.ready_file = os.path.join(self.folder, "ready.json")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.ready_file)  # of one that was killed in the same folder
        if not any("token" in flag for flag in flags):
            flags = ("--insecure", *flags)
        words = command or flags
        self.http_token = ""
        if any(word in flag for flag in words for word in ("http-token", "service_account", "client_ca", "--token-file")):
            self.http_token = HTTP_TOKEN
            flags = (*operator(self.folder), *flags)
        self.launch(command or [os.path.join(BIN, "gpu-agent"), "--driver", driver, "--address",
                                "127.0.0.1", "--ports", "0,0,0", "--drain", "0", "--cache-dir",
                                os.path.join(self.folder, "cache"), "--ready-file",
                                self.ready_file, *flags], env)
        if ready and not command:
            wait_for(lambda: self.read_ports() and self.is_ready, 60, "the agent is ready")

    def read_ports(self):
        self.check()
        with contextlib.suppress(OSError, ValueError):
            with open(self.ready_file) as file:
                ready = json.load(file)
            self.ports, self.is_ready = ready["ports"], ready["ready"]
            self.address = f"127.0.0.1:{self.ports['recv']}"
            return True
        return False

    def http(self, path, token=None):
        """With this token, "" for none; by default one that sees everything."""
        token = self.http_token if token is None else token
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['control']}{path}",
                                         headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=5 * PATIENCE) as answer:
            return answer.read().decode()

    def sessions(self):
        return json.loads(self.http("/v1/sessions"))["sessions"]

    def gpu(self):
        return json.loads(self.http("/v1/gpus"))["gpus"][0]

    def worker(self, app, seconds=10):
        """The worker of that app's session."""
        def find():
            return [s["worker_pid"] for s in self.sessions()
                    if s["pid"] == app.pid and s["worker_pid"]]
        return wait_for(find, seconds, "the app has a session with a worker")[0]

    def front(self):
        return wait_for(lambda: children(self.pid, "agent-front"), 30, "the agent has a front")[0]

    def everyone(self):
        return [self.pid] + descendants(self.pid)


class Sidecar(Logged):
    def __init__(self, folder, agent, *flags, env=None, command=None, socket=None):
        self.folder = os.path.join(folder, "sidecar")
        os.makedirs(self.folder, exist_ok=True)
        self.socket = socket or os.path.join(self.folder, "s")
        self.launch(command or [os.path.join(BIN, "vcuda-client"), "run", "--agent",
                                getattr(agent, "address", agent), "--socket", self.socket, *flags],
                    dict(env or {}, VCUDA_SOCKET=self.socket) if command else env)
        wait_for(lambda: self.check() or os.path.exists(self.socket), 30, "the sidecar listens")


class App:
    """A program with our libraries preloaded.  Its lines come as (monotonic time, text)."""

    def __init__(self, *words, socket=None, env=None, program=PROGRAM, preload=True):
        more = {"VCUDA_SOCKET": socket} if socket else {}
        if preload:
            more["LD_PRELOAD"] = preload if isinstance(preload, str) else preloaded()
        more.update(env or {})
        self.process = start([program, *map(str, words)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace",
                             env=environment(more) if "PATH" not in more else
                             {k: v for k, v in more.items() if v is not None})
        self.pid, self.lines, self.at = self.process.pid, [], 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.lines.append((now(), line.rstrip("\n")))

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def line(self, pattern, seconds=10):
        """The match of the next line that has PATTERN."""
        def find():
            while self.at < len(self.lines):
                self.at += 1
                got = re.search(pattern, self.lines[self.at - 1][1])
                if got:
                    return got
            if self.process.poll() is not None and not self.reader.is_alive() and \
                    self.at == len(self.lines):
                raise AssertionError(f"ended ({self.process.returncode}) without '{pattern}': "
                                     f"{self.text()[-600:]}")
            return None
        try:
            return wait_for(find, seconds, f"the app says '{pattern}'")
        except AssertionError as error:
            raise AssertionError(f"{error}; it said: {self.text()[-600:]}") from None

    def close_stdin(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def shared_memory(self):
        """Of what it shares with its sidecar, in mode `pod`: the bytes that have memory."""
        found = 0
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            path = f"/proc/{self.pid}/fd/{name}"
            with contextlib.suppress(OSError):
                if os.readlink(path).startswith("/memfd:vcuda"):
                    found += os.stat(path).st_blocks * 512
        return found

    def wait(self, seconds=10):
        """Its exit status."""
        seconds *= PATIENCE
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end within {seconds} s; it said: {self.text()[-600:]}") \
                from None
        self.reader.join(5)
        return status

    def right(self, seconds=20):
        """Ends by itself with 0."""
        status = self.wait(seconds)
        assert status == 0, f"exit status {status}: {self.text()[-600:]}"


@functools.cache
def preloaded():
    got = subprocess.run([os.path.join(BIN, "vcuda"), "preload"], capture_output=True, text=True,
                         timeout=10, env=environment())
    assert got.returncode == 0, got.stderr
    return got.stdout.strip()


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="vcuda-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Stack:
    """An agent and a sidecar; app() starts a program on them."""

    def __init__(self, path, agent, sidecar, agent_env, scheme, driver, between):
        self.folder = path
        self.agent = Agent(path, *agent, env=agent_env, driver=driver)
        self.between = between(self.agent) if between else None
        address = (self.between or self.agent).address
        address = scheme.format(address) if scheme else address
        self.address = address
        self.sidecar = Sidecar(path, address, *sidecar)

    def app(self, *words, **more):
        return App(*words, socket=self.sidecar.socket, **more)

    def free(self):
        return self.agent.gpu()["memory_free_bytes"]


@contextlib.contextmanager
def stack(agent=(), sidecar=(), agent_env=None, scheme=None, driver="software", between=None):
    """`scheme`: the sidecar's address for the agent, with {} for HOST:PORT.  `between`: makes, of
    the agent, what the sidecar is to dial in its place."""
    with folder() as path:
        s = Stack(path, agent, sidecar, agent_env, scheme, driver, between)
        try:
            yield s
        except AssertionError as error:
            tails = "\n".join(one.log()[-700:] for one in (s.sidecar, s.agent))
            raise AssertionError(f"{error}\n{tails}").with_traceback(error.__traceback__) from None


def one_line(command, *needles, status=None, env=None, seconds=15):
    """Runs a command that must fail: one line on stderr, each needle in it."""
    got = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=seconds, env=environment(env))
    lines = [line for line in got.stderr.split("\n") if line]
    assert got.returncode not in (0, 77) and got.returncode > 0, \
        f"exit status {got.returncode}: {got.stderr}"
    assert status is None or got.returncode == status, \
        f"exit status {got.returncode}, not {status}: {got.stderr}"
    assert len(lines) == 1 and not got.stdout, f"not one line: {got.stdout}{got.stderr}"
    for needle in needles:
        assert needle in lines[0], f"'{needle}' is not in: {lines[0]}"
    return lines[0]
