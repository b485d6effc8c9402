# SPDX-License-Identifier: Apache-2.0
"""An agent in networks of people (docs/PEERS.md): what each network's token lets see and use, and its entry in the
directory; over real Redis servers."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.error

from networks import GPU_AGENT, VCUDA, clock, end, ok, place, refused
from stack import MIB, OUT_OF_MEMORY, App, Sidecar, alive, children, descendants, environment, one_line, wait_for

STEP = 2 * MIB


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
        app.line(rf"^error {OUT_OF_MEMORY} after {256 * MIB} bytes", 30)
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
