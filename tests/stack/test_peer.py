# SPDX-License-Identifier: Apache-2.0
"""`vcuda peer` (docs/PEERS.md): a machine joins networks and leaves them, with an agent that runs and with one that it
starts; over real Redis servers."""
import contextlib
import json
import os
import subprocess

from networks import GPU_AGENT, VCUDA, end, ok, place, refused
from stack import Skip, Agent, App, Sidecar, children, descendants, one_line, wait_for


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
        os.chmod(p.networks, 0o770)
        anybodys = f"{p.networks}: others than its owner may write there: chmod 700 it"
        p.peer_fails("join", good, needle=anybodys)
        one_line([GPU_AGENT, "--driver", "software", "--address", "127.0.0.1", "--ports", "0,0,0", "--set",
                  f"networks_folder={p.networks}"], f"networks_folder: {anybodys}")
        os.chmod(p.networks, 0o700)
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
