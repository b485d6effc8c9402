# SPDX-License-Identifier: Apache-2.0
"""A worker with a tenant's code in it: what it tries is refused, and its session goes on."""
import ctypes
import errno
import os

from stack import BIN, BUILD, Agent, App, Sidecar, Skip, alive, folder, reporting, wait_for

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
        if user:
            os.chmod(path, 0o755)
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


def confined(*flags, user=None):
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
        text = p.agent.http("/readyz?verbose")
        assert "[+] sandbox: hidden, capabilities, landlock, seccomp\n" in text, text
        metrics = p.agent.http("/metrics")
        for part in ("hidden", "capabilities", "landlock", "seccomp"):
            assert f'vcuda_agent_worker_sandbox{{part="{part}"}} 1\n' in metrics, metrics
        assert 'vcuda_agent_worker_isolation{mode="landlock+seccomp"} 1\n' in metrics, metrics
        assert "sandbox.off" not in p.agent.log()
        p.end()


def test_a_tenants_code_reaches_nothing_of_others():
    confined()


def test_nor_where_the_agent_is_an_ordinary_user():
    if os.geteuid():
        raise Skip("started as an ordinary user")
    if not reachable(BIN):
        raise Skip(f"other users cannot reach {BIN}")
    confined("--sandbox", "required", user=NOBODY)


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
