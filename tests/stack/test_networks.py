# SPDX-License-Identifier: Apache-2.0
"""An agent in networks of people (docs/PEERS.md): what each network's token lets see and use, its entry in the
directory, and `vcuda peer`; over real Redis servers."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error

from stack import BIN, MIB, OUT_OF_MEMORY, Skip, Agent, App, Sidecar, alive, children, descendants, environment, folder, \
    one_line, operator, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "store"))
from redis_server import Redis  # noqa: E402

VCUDA, GPU_AGENT = os.path.join(BIN, "vcuda"), os.path.join(BIN, "gpu-agent")
STEP = 2 * MIB


class Place:
    """A folder with networks' files, and their directories."""

    def __init__(self, path):
        self.path, self.networks, self.redis, self.agent = path, os.path.join(path, "networks"), {}, None
        os.mkdir(self.networks, 0o700)

    def secret(self, name, text, mode=0o600):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def directory(self, name):
        if name not in self.redis:
            self.redis[name] = Redis()
        return self.redis[name].address

    def redis_of_all(self, name):
        """That every user of this machine reaches."""
        path = self.directory(name)[len("unix://"):]
        os.chmod(os.path.dirname(path), 0o711)
        os.chmod(path, 0o777)

    def network(self, name, directory=None, **more):
        """NETWORK.yaml of its own directory and token."""
        self.secret(f"{name}.token", f"token-of-{name}\n")
        lines = {"name": name, "directory": directory or self.directory(name), "token_file": f"{name}.token", **more}
        return self.secret(f"{name}.yaml", "".join(f"{key}: {value}\n" for key, value in lines.items()))

    def drop(self, name, **more):
        """The same, where the agent looks for it."""
        with open(self.network(name, **more)) as file:
            text = file.read().replace("token_file: ", f"token_file: {self.path}/")
        path = os.path.join(self.networks, f".{name}")
        with open(path, "w") as file:
            os.chmod(path, 0o600)
            file.write(text)
        os.rename(path, os.path.join(self.networks, f"{name}.yaml"))

    def start(self, *flags, gpus=2, env=None):
        self.agent = Agent(self.path, *operator(self.path), "--set", f"networks_folder={self.networks}", *flags,
                           env={"VCUDA_SOFTGPU_DEVICES": str(gpus), "XDG_STATE_HOME": self.path, **(env or {})})
        self.agent.http_token = "http-token-of-a-test"
        return self.agent

    def state(self, name):
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self.networks, "agent.json")) as file:
                return {one["name"]: one for one in json.load(file)["networks"]}.get(name, {})
        return {}

    def entries(self, name):
        """The agents in that network's directory."""
        client = self.redis[name].client()
        try:
            return {key.decode(): client.hash(key.decode()) for key in client("KEYS", "node:*")}
        finally:
            client.close()

    def entered(self, name, seconds=5):
        return wait_for(lambda: list(self.entries(name).values()), seconds, f"an entry in {name}'s directory")[0]

    def sidecar(self, name, *flags):
        return Sidecar(os.path.join(self.path, f"of-{name}"), self.agent, "--token-file",
                       os.path.join(self.path, f"{name}.token"), *flags)

    def peer(self, verb, *words, env=None):
        return subprocess.run([VCUDA, "peer", verb, "--folder", self.networks, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, env=environment(env))

    def peer_fails(self, verb, *words, needle):
        line = one_line([VCUDA, "peer", verb, "--folder", self.networks, *words], needle, status=1, seconds=60)
        assert line.startswith("vcuda: "), line

    def close(self):
        for redis in self.redis.values():
            redis.close()


@contextlib.contextmanager
def place():
    with folder() as path:
        p = Place(path)
        try:
            yield p
        except AssertionError as error:
            log = p.agent.log()[-1500:] if p.agent else ""
            raise AssertionError(f"{error}\n{log}").with_traceback(error.__traceback__) from None
        finally:
            p.close()


def ok(got):
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


def end(*apps):
    for app in apps:
        app.close_stdin()
        app.right()


def refused(socket, *needles):
    """What a program is told that may not begin."""
    app = App("count", socket=socket)
    app.wait(30)
    for needle in ("devices 0", *needles):
        assert needle in app.text(), f"'{needle}' is not in: {app.text()}"


def clock(shift):
    """A time of this machine's day, SHIFT minutes from now."""
    return time.strftime("%H:%M", time.localtime(time.time() + 60 * shift))


def test_each_token_sees_its_own():
    """Sessions, GPUs and figures; by program, NVML and HTTP."""
    with place() as p:
        p.drop("ada", gpus="[0]", memory="1GiB", address="10.1.2.3")
        p.drop("bob", gpus="[1]")
        agent = p.start()
        ada, bob = p.sidecar("ada"), p.sidecar("bob")
        apps = [App("hold", 64 * MIB, socket=one.socket) for one in (ada, bob)]
        for app in apps:
            app.line("^holding", 30)
        uuids = [gpu["uuid"] for gpu in json.loads(agent.http("/v1/gpus"))["gpus"]]
        for index, (name, app, sidecar) in enumerate((("ada", apps[0], ada), ("bob", apps[1], bob))):
            token = f"token-of-{name}"
            assert [gpu["uuid"] for gpu in json.loads(agent.http("/v1/gpus", token))["gpus"]] == [uuids[index]]
            session, = json.loads(agent.http("/v1/sessions", token))["sessions"]
            assert (session["pid"], session["tenant"], [m["gpu"] for m in session["memory"]]) == (app.pid, name, [index])
            metrics = agent.http("/metrics", token)
            assert f'tenant="{name}"' in metrics and uuids[1 - index] not in metrics, metrics
            assert ("bob", "ada")[index] not in metrics and "device_memory" not in metrics
            assert "vcuda_agent_sessions{" not in metrics
            smi = subprocess.run([VCUDA, "smi", "-L"], capture_output=True, text=True, timeout=20,
                                 env=environment({"VCUDA_SOCKET": sidecar.socket}))
            assert re.findall(r"GPU-[0-9a-f-]{36}", smi.stdout) == [uuids[index]], smi.stdout
            entry = p.entered(name)
            assert (entry["gpus"], entry["devices"], entry["network"]) == (uuids[index], "1", name), entry
            assert entry["version"] and entry["driver"] and int(entry["epoch"]), entry
            if name == "ada":
                assert entry["address"] == f"10.1.2.3:{agent.ports['recv']}", entry
                wait_for(lambda: p.entered("ada")["free_bytes"] == str(1024 * MIB - 64 * MIB), 5, "what is left is said")
        for pid in descendants(agent.pid):  # nothing of a user's runs there
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/cmdline") as file:
                assert os.path.basename(file.read().split("\0")[0]) in ("gpu-agent", ""), pid
        everything = agent.http("/metrics")
        assert "vcuda_agent_sessions{" in everything and uuids[0] in everything
        for path, token in (("/metrics", ""), ("/v1/sessions", ""), ("/v1/gpus", "token-of-eve")):
            with contextlib.suppress(urllib.error.HTTPError):
                raise AssertionError(f"{path} by '{token}': {agent.http(path, token)[:200]}")
        assert not children(agent.pid, "agent-store")
        p.secret("eve.token", "token-of-eve\n")
        refused(p.sidecar("eve").socket, "the token is not the agent's")
        end(*apps)


def test_memory_and_sessions_hold_at_the_call():
    with place() as p:
        p.drop("ada", memory="256MiB", sessions="2")
        p.drop("bob")
        p.start(gpus=1)
        ada, bob = p.sidecar("ada"), p.sidecar("bob")
        app = App("limit", STEP, socket=ada.socket)
        app.line(rf"^sees 1 GPUs of {256 * MIB} bytes", 30)
        app.line(rf"^error {OUT_OF_MEMORY} after {256 * MIB - STEP} bytes", 30)
        wait_for(lambda: p.entered("ada")["free_bytes"] == "0", 5, "nothing is left of it")
        other = App("hold", 512 * MIB, socket=bob.socket)
        other.line("^holding", 30)  # another network's memory is not touched
        end(app, other)
        apps = [App("bystander", socket=ada.socket) for _ in range(2)]
        for app in apps:
            app.line("^started", 30)
        refused(ada.socket, "2 sessions of 'ada' are running, no more are allowed")
        App("sum", 1, socket=bob.socket).right()
        end(*apps)


def test_hours():
    """Outside of them no session begins and there is no entry; what runs goes on."""
    with place() as p:
        p.drop("ada", hours=f"{clock(-60)}-{clock(60)}")
        agent = p.start(gpus=1)
        p.entered("ada")
        sidecar = p.sidecar("ada")
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 30)
        closed = f"{clock(120)}-{clock(180)}"
        p.drop("ada", hours=f"[{closed}]")
        wait_for(lambda: not p.entries("ada"), 5, "it is out of the directory")
        wait_for(lambda: p.state("ada")["state"] == "closed", 5, "people are told")
        refused(sidecar.socket, f"this agent serves the network 'ada' at {closed} only, by its own clock")
        end(app)
        p.drop("ada", hours=f"{closed}, {clock(-1)}-{clock(60)}")
        p.entered("ada")
        App("sum", 1, socket=sidecar.socket).right()
        # The hour is the agent's own.
        agent.stop()
        far = time.strftime("%H", time.gmtime())
        p.drop("ada", hours=f"{far}:00-{(int(far) + 1) % 24:02}:00")
        p.start(gpus=1, env={"TZ": "XXX-9"})
        wait_for(lambda: p.state("ada").get("state") == "closed", 10, "it is nine hours later there")


def test_the_entry_lives_as_the_agent_does():
    with place() as p:
        p.drop("ada")
        agent = p.start(gpus=1)
        before = p.entered("ada")
        client = p.redis["ada"].client()
        node, = client("KEYS", "node:*")
        assert 0 < client("PTTL", node) <= 10000
        client("DEL", node)
        wait_for(lambda: client("EXISTS", node), 5, "an entry that somebody took away is there again")
        process, = children(agent.pid, "agent-directory")
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: p.entered("ada")["epoch"] > before["epoch"], 5, "another process keeps it")
        agent.process.send_signal(signal.SIGTERM)
        wait_for(lambda: not client("KEYS", "*"), 2, "it goes with the agent, and nothing stays")
        agent.process.wait(20)
        agent = p.start(gpus=1)
        wait_for(lambda: client("KEYS", "node:*"), 5, "it is there again")
        everyone = agent.everyone()
        os.kill(children(agent.pid, "agent-directory")[0], signal.SIGSTOP)  # as a machine that loses its line
        os.kill(agent.pid, signal.SIGKILL)
        agent.process.wait(20)
        wait_for(lambda: not any(alive(pid) for pid in everyone), 10, "all of the agent is gone")
        node, = client("KEYS", "node:*")
        assert 0 < client("PTTL", node) <= 10000, "without the agent nobody renews it"
        client.close()


def test_a_directory_that_is_away():
    """The agent serves and asks on; another network does not notice."""
    with place() as p:
        p.directory("ada")
        p.redis["ada"].kill()
        p.drop("ada")
        p.drop("bob")
        agent = p.start(gpus=1)
        p.entered("bob")
        wait_for(lambda: "No such file" in p.state("ada").get("directory_text", "") or
                 "refused" in p.state("ada").get("directory_text", ""), 10, "people are told why")
        assert "event=registry.away" in agent.log()
        App("sum", 1, socket=p.sidecar("ada").socket).right()
        listed = ok(p.peer("list"))
        assert re.search(r"^ada +open +\d +1 +unix://\S+: .*(No such file|refused)", listed, re.M), listed
        p.redis["ada"].start()
        p.entered("ada")


def test_a_directory_with_a_password():
    """By the ACL of docs/TENSORS.md; a new password needs no restart, and no other process has it."""
    with place() as p:
        p.directory("ada")
        client = p.redis["ada"].client()
        client("ACL", "SETUSER", "vcuda", "on", ">s3cret", "~tensor*", "~node:*", "+@all", "-@admin", "-@dangerous")
        client.close()
        password = p.secret("ada.password", "wrong\n")
        p.drop("ada", user="vcuda", password_file=password)
        agent = p.start(gpus=1)
        wait_for(lambda: "does not let vcuda in" in p.state("ada").get("directory_text", ""), 10, "people are told")
        p.secret("ada.password", "s3cret\n")
        p.entered("ada")
        ok(p.peer("leave", "ada"))
        assert not p.entries("ada")
        assert "s3cret" not in agent.log()


def test_join_and_leave_a_running_agent():
    with place() as p:
        agent = p.start("--drain", "30", gpus=1)
        assert "ada: open, 1 GPU, in the directory unix://" in ok(p.peer("join", p.network("ada")))
        ok(p.peer("join", p.network("bob", ray_token_file="bob.ray")))  # a key that users alone have
        assert p.entries("ada") and p.entries("bob")
        ada, bob = p.sidecar("ada"), p.sidecar("bob")
        short, long, others = (App("bystander", socket=one.socket) for one in (ada, ada, bob))
        for app in (short, long, others):
            app.line("^started", 30)
        left = subprocess.Popen([VCUDA, "peer", "leave", "--folder", p.networks, "ada"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: not p.entries("ada"), 3, "its entry is gone at once")
        assert p.entries("bob")
        refused(ada.socket, "this agent leaves the network 'ada'")
        end(short)
        assert left.poll() is None and p.state("ada")["state"] == "leaving"
        end(long)  # right, to its end
        out, errors = left.communicate(timeout=20)
        assert left.returncode == 0 and out == "ada: left\n" and "2 sessions of ada may go on for 30 s" in errors, errors
        refused(ada.socket, "the token is not the agent's")
        assert not p.state("ada") and p.state("bob")["sessions"] == 1
        assert "event=network.left network=ada" in agent.log()
        ok(p.peer("join", p.network("ada")))  # and again
        App("sum", 1, socket=ada.socket).right()
        end(others)
        assert ok(p.peer("list")).splitlines()[0].split() == ["NETWORK", "STATE", "SESSIONS", "GPUS", "DIRECTORY"]


def test_who_stays_too_long_is_stopped():
    with place() as p:
        p.drop("ada")
        p.drop("bob")
        p.start("--drain", "1", gpus=1)
        lasting, others = (App("bystander", socket=p.sidecar(name).socket) for name in ("ada", "bob"))
        for app in (lasting, others):
            app.line("^started", 30)
        assert ok(p.peer("leave", "ada")) == "ada: left\n"
        assert lasting.wait(20), lasting.text()
        end(others)


def test_a_crash_or_a_reload_changes_nothing():
    with place() as p:
        p.drop("ada", gpus="[1]")
        agent = p.start()
        p.entered("ada")
        sidecar = p.sidecar("ada")
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 30)
        os.kill(agent.front(), signal.SIGKILL)
        wait_for(lambda: "event=front.adopted sessions=1" in agent.log(), 20, "the next front has the session")
        App("sum", 1, socket=sidecar.socket).right(60)
        os.utime(os.path.join(p.networks, "ada.yaml"))
        os.kill(agent.pid, signal.SIGHUP)
        wait_for(lambda: "event=reload.same" in agent.log(), 20, "a reload finds everything as it was")
        wait_for(lambda: p.state("ada").get("sessions") == 1, 10, "and the session there")
        assert len(children(agent.pid, "agent-directory")) == 1
        end(app)


def test_join_starts_an_agent_that_ends_with_its_last_network():
    flags = ("--", "--driver", "software", "--address", "127.0.0.1", "--ports", "0,0,0")
    with place() as p:
        got = p.peer("join", p.network("ada", address="127.0.0.1"), *flags, env={"XDG_CACHE_HOME": p.path})
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: p.peer("leave", "ada"))
            assert "ada: open, 1 GPU" in ok(got)
            with open(os.path.join(p.networks, "agent.json")) as file:
                port = json.load(file)["ports"]["recv"]
            sidecar = Sidecar(p.path, f"127.0.0.1:{port}", "--token-file", os.path.join(p.path, "ada.token"))
            App("sum", 1, socket=sidecar.socket).right(60)
            assert list(p.entries("ada")) == [f"node:127.0.0.1-{port}"]
            another = [GPU_AGENT, "--driver", "software", "--address", "127.0.0.1", "--ports", "0,0,0", "--set",
                       f"networks_folder={p.networks}"]
            one_line(another, "is that of another agent (pid")
        wait_for(lambda: not os.path.exists(os.path.join(p.networks, "agent.json")), 10, "the agent ends")
        assert not p.entries("ada")
        p.peer_fails("list", needle="no agent has the folder")
        p.peer_fails("join", p.network("ada"), "--", "--driver", "/nowhere", "--ports", "x",
                     needle='the agent ended: --ports: ports: "x" is not SEND,RECV,CONTROL')
        assert not [name for name in os.listdir(p.networks) if name.endswith(".yaml")]


def test_root_joins_for_an_agent_of_another_user():
    """Which can read nothing of root's: it gets copies, and keeps none."""
    if os.geteuid():
        raise Skip("for root")
    nobody = 65534
    with place() as p:
        os.chmod(p.path, 0o711)
        os.chown(p.networks, nobody, nobody)
        home = os.path.join(p.path, "home")
        os.mkdir(home)
        os.chown(home, nobody, nobody)
        command = ["setpriv", "--reuid", str(nobody), "--regid", str(nobody), "--clear-groups", GPU_AGENT, "--driver", "software",
                   "--address", "127.0.0.1", "--ports", "0,0,0", "--set", f"networks_folder={p.networks}"]
        p.agent = Agent(p.path, command=command, env={"HOME": home})
        p.redis_of_all("ada")
        wait_for(lambda: os.path.exists(os.path.join(p.networks, "agent.json")), 30, "the agent has the folder")
        ok(p.peer("join", p.network("ada")))
        p.entered("ada")
        assert sorted(os.listdir(p.networks)) == [".ada", "ada.yaml", "agent.json", "agent.lock"]
        with open(os.path.join(p.networks, "agent.json")) as file:
            p.agent.address = f"127.0.0.1:{json.load(file)['ports']['recv']}"
        App("sum", 1, socket=p.sidecar("ada").socket).right()
        ok(p.peer("leave", "ada"))
        assert sorted(os.listdir(p.networks)) == ["agent.json", "agent.lock"]
        p.agent.stop()
        p.peer_fails("join", p.network("ada"), needle="user 65534's, and no agent of that user runs: start it first")
        assert os.listdir(p.networks) == ["agent.lock"]


def test_bad_input_has_a_sentence():
    with place() as p:
        p.drop("bob")
        p.start(gpus=1)
        good = p.network("ada")
        with open(good) as file:
            text = file.read()
        cases = (("colour: red\n", "bad.yaml:4: unknown key 'colour'; known are name, directory"),
                 ("gpus: [0, x]\n", "bad.yaml:4: gpus: 'x' is not all or a list like [0, 1]"),
                 ("gpus: 0-1\n", "the network 'ada' wants GPU 1, and this agent has 1"),
                 ("hours: 25:00-06:00\n", "bad.yaml:4: hours: '25:00-06:00' is not HH:MM-HH:MM"),
                 ("hours: [22:00-06:00, late]\n", "bad.yaml:4: hours: 'late' is not HH:MM-HH:MM"),
                 ("memory: much\n", "bad.yaml:4: memory: 'much' is not bytes like 8GiB"),
                 ("sessions: -1\n", "bad.yaml:4: sessions: '-1' is not a number from 0 to 4096"),
                 ("address: a b\n", "bad.yaml:4: address is not HOST or HOST:PORT"),
                 ("user: eve\n", "user wants a password_file"),
                 ("user: eve\npassword_file: nowhere\n", "nowhere: No such file or directory"),
                 ("name: eve\n", "bad.yaml:4: 'name' is given twice"), ("[\n", "bad.yaml:"))
        for more, needle in cases:
            p.peer_fails("join", p.secret("bad.yaml", text + more), needle=needle)
        for was, now, needle in (("name: ada", "name: A", "bad.yaml:1: name is not 1 to 63"),
                                 ("name: ada", "name: default", "that is the name of the tenant of a token without one"),
                                 ("name: ada", "name: bob\nsessions: 1", "token is that of 'bob' too")):
            if "bob" in now:
                p.secret("bad.token", "token-of-bob\n")
                now, needle = "name: eve", "its directory is that of 'bob' too"
                bad = text.replace(was, now).replace(p.directory("ada"), p.directory("bob"))
            else:
                bad = text.replace(was, now)
            p.peer_fails("join", p.secret("bad.yaml", bad), needle=needle)
        p.secret("ada.token", "token-of-bob\n")
        p.peer_fails("join", good, needle="its token is that of 'bob' too")
        p.secret("ada.token", "token ada\n")
        p.peer_fails("join", good, needle="a line of a network's is a token and nothing else")
        p.secret("ada.token", "token-of-ada\n")
        p.peer_fails("join", p.secret("bad.yaml", text, 0o644), needle="others than its owner may read it (mode 644)")
        p.peer_fails("join", p.secret("bad.yaml", text.replace("token_file: ada.token\n", "")), needle="token_file is missing")
        p.peer_fails("join", p.secret("bad.yaml", text.replace("unix://", "http://")), needle="directory is not unix:///PATH or")
        p.peer_fails("join", "/nowhere.yaml", needle="/nowhere.yaml: No such file or directory")
        p.peer_fails("leave", "eve", needle="this machine is not in a network 'eve'")
        with open(os.path.join(p.networks, "bob.yaml"), "a") as file:
            file.write("colour: red\n")  # who edits it by hand leaves nothing by a slip
        refused_now = wait_for(lambda: [line for line in ok(p.peer("list")).splitlines() if line.startswith("bob.yaml")], 5,
                               "it is shown as refused")
        assert "unknown key 'colour'" in refused_now[0] and p.state("bob")["state"] == "open"
        p.drop("bob")
        p.peer_fails("join", p.secret("bad.yaml", text.replace("name: ada", "name: bob").replace("ada.token", "bob.token") +
                                      "gpus: 7\n"), needle="wants GPU 7")
        p.entered("bob")
        assert p.state("bob")["state"] == "open" and not p.state("ada")
        assert sorted(name for name in os.listdir(p.networks) if not name.startswith("agent.")) == ["bob.yaml"]


def test_the_configuration_has_networks_too():
    with place() as p:
        p.network("ada")
        config = f"driver: software\nnetworks:\n  - name: ada\n    directory: {p.directory('ada')}\n" \
                 f"    token_file: ada.token\n    gpus: [0]\n    hours: [{clock(-60)}-{clock(60)}]\n" \
                 "tenants: {ada: {priority: low}}\n"
        path = p.secret("agent.yaml", config)
        agent = p.start("--drain", "30", "--config", path)
        p.entered("ada")
        App("sum", 1, socket=p.sidecar("ada").socket).right()
        p.peer_fails("leave", "ada", needle="ada is in the agent's configuration")
        p.peer_fails("join", p.secret("other.yaml", f"name: ada\ndirectory: unix:///x\ntoken_file: {p.secret('t', 't')}\n"),
                     needle="there is one of that name already")
        p.secret("ada.token", "another\n")
        os.kill(agent.pid, signal.SIGHUP)
        wait_for(lambda: "event=reload.same" in agent.log(), 20, "a token is no reload")
        App("sum", 1, socket=Sidecar(os.path.join(p.path, "new"), agent, "--token-file",
                                     os.path.join(p.path, "ada.token")).socket).right()
        sidecar = Sidecar(os.path.join(p.path, "lasts"), agent, "--token-file", os.path.join(p.path, "ada.token"))
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 30)
        p.network("bob")
        p.secret("agent.yaml", config.replace("networks:\n", f"networks:\n  - {{name: bob, directory: '{p.directory('bob')}', "
                                                             "token_file: bob.token}\n"))
        os.kill(agent.pid, signal.SIGHUP)
        p.entered("bob", 20)
        p.entered("ada")
        App("sum", 1, socket=p.sidecar("bob").socket).right(60)
        # One that is gone from the configuration is left, and its sessions have their time.
        p.secret("agent.yaml", config.replace("name: ada", "name: bob").replace(p.directory("ada"), p.directory("bob"))
                 .replace("ada.token", "bob.token"))
        os.kill(agent.pid, signal.SIGHUP)
        wait_for(lambda: p.state("ada").get("state") == "leaving", 20, "ada is left")
        refused(sidecar.socket, "this agent leaves the network 'ada'")
        end(app)
        wait_for(lambda: not p.state("ada") and p.state("bob")["state"] == "open", 10, "ada is left")
        for bad, needle in ((config.replace("    directory", "    colour: red\n    directory"), ":4: unknown key 'colour'"),
                            (config.replace("    token_file: ada.token\n", ""), "networks: 'ada': token_file is missing"),
                            (config.replace("networks:\n", f"networks:\n  - {{name: ada, directory: 'unix:///x', token_file: t}}\n"),
                             "there is one of that name already"),
                            (config + "insecure: true\n", "the agent is insecure"),
                            (config + "networks_end: maybe\n", "networks_end"),
                            (config.replace("networks:\n  - name: ada\n", "networks:\n    name: ada\n"), "unknown key"),
                            (config + f"store: {{registry: '{p.directory('ada')}'}}\n", "is the agent's store.registry")):
            one_line([GPU_AGENT, "--config", p.secret("bad.yaml", bad), "--check-config"], needle)


def test_joins_and_leaves_leave_nothing():
    """No process, descriptor or key. `make test-peers` has 1000 of them."""
    rounds = int(os.environ.get("VCUDA_TEST_JOINS", "8")) // 2
    with place() as p:
        agent = p.start(gpus=1)
        files = {name: p.network(name) for name in ("ada", "bob")}

        def counts():
            return sorted(len(os.listdir(f"/proc/{pid}/fd")) for pid in (agent.pid, agent.front())), len(descendants(agent.pid))

        for name, file in files.items():  # what is made once is made
            ok(p.peer("join", file))
            ok(p.peer("leave", name))
        wait_for(lambda: not children(agent.pid, "agent-probe"), 20, "the probe is done")
        before = counts()
        for _ in range(rounds):
            for file in files.values():
                ok(p.peer("join", file))
            for name in files:
                ok(p.peer("leave", name))
        wait_for(lambda: counts() == before, 20, f"{before} as before, not {counts()}")
        for name in files:
            client = p.redis[name].client()
            assert client("KEYS", "*") == [], client("KEYS", "*")
            client.close()
        assert sorted(os.listdir(p.networks)) == ["agent.json", "agent.lock"]
