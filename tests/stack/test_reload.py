# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: the agent becomes the binary that is now there and reads its configuration again, and its sessions run on."""
import os
import shutil
import signal

from proxy import Proxy
from stack import BIN, LIB, MIB, Agent, App, Sidecar, alive, children, folder, operator, stack, wait_for
from test_stripes import FOR_EVER


def reload(agent, seconds=30, said="event=agent.reloaded"):
    """SIGHUP, and what the log then has."""
    before = agent.log().count(said)
    os.kill(agent.pid, signal.SIGHUP)
    wait_for(lambda: agent.check() or agent.log().count(said) > before, seconds, said)
    if said == "event=agent.reloaded":
        wait_for(lambda: children(agent.pid, "agent-front"), 10, "a front")


def configured(path, *lines):
    """An agent with a configuration file, and the file."""
    file = os.path.join(path, "agent.yaml")
    write(file, *lines)
    return Agent(path, "--config", file), file


def write(file, *lines):
    with open(file, "w") as out:
        out.write("".join(line + "\n" for line in lines))


def test_sessions_run_on_with_another_configuration():
    with folder() as path:
        agent, file = configured(path, "memory_limit: 0")
        sidecar = Sidecar(path, agent)
        apps = [App("bystander", socket=sidecar.socket), App("hold", 24 * MIB, socket=sidecar.socket)]
        for app in apps:
            app.line("^(started|holds|hold)", 20)
        wait_for(lambda: len(agent.sessions()) == 2, 5, "two sessions")
        workers, pid, ports = {one["worker_pid"] for one in agent.sessions()}, agent.pid, agent.ports
        before = sorted(one["session"] for one in agent.sessions())
        write(file, "memory_limit: 64MiB", "grace: 20s")
        reload(agent)
        wait_for(lambda: len(agent.sessions()) == 2, 10, "two sessions again")
        assert sorted(one["session"] for one in agent.sessions()) == before
        assert {one["worker_pid"] for one in agent.sessions()} == workers and alive(pid)
        assert agent.read_ports() and agent.ports == ports, (agent.ports, ports)
        assert "vcuda_agent_reloads_total 1" in agent.http("/metrics") and "vcuda_agent_front_restarts_total 0" in agent.http("/metrics")
        assert "VcudaFrontRestarts" not in agent.http("/v1/agent")
        apps.append(App("limit", 1 * MIB, socket=sidecar.socket))
        assert 32 * MIB < int(apps[-1].line(r"^error 2 after (\d+) bytes", 20)[1]) <= 64 * MIB, "the new limit"
        for app in apps:
            app.close_stdin()
            app.right(20)
        wait_for(lambda: not agent.sessions(), 10, "no session is left")
        wait_for(lambda: len(children(agent.pid, "agent-worker")) == 1, 10, "a warm worker, and no other")
        assert "ledger.bug" not in agent.log() and "worker.unknown" not in agent.log(), agent.log()


def test_another_binary():
    with folder() as path:
        there = os.path.join(path, "gpu-agent")
        shutil.copy(os.path.join(BIN, "gpu-agent"), there)
        ready = os.path.join(path, "agent", "ready.json")
        # Its software GPU is looked for beside it.
        driver = os.path.join(LIB, "libvcuda-softgpu.so")
        agent = Agent(path, ready=False, command=[there, "--driver", driver, "--insecure", "--address", "127.0.0.1", "--ports", "0,0,0",
                                                  "--cache-dir", os.path.join(path, "cache"), "--ready-file", ready])
        wait_for(lambda: agent.read_ports() and agent.is_ready, 20, "the agent is ready")
        sidecar = Sidecar(path, agent)
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 20)
        # As a package does: another file under the same name.
        shutil.copy(os.path.join(BIN, "gpu-agent"), there + ".new")
        os.rename(there + ".new", there)
        before = os.stat(f"/proc/{agent.pid}/exe").st_ino
        reload(agent)
        assert os.stat(f"/proc/{agent.pid}/exe").st_ino == os.stat(there).st_ino != before
        wait_for(lambda: os.stat(f"/proc/{agent.front()}/exe").st_ino == os.stat(there).st_ino, 5, "the front is the new one")
        for _ in range(3):  # and again: a copy of the arguments is kept
            shutil.copy(os.path.join(BIN, "gpu-agent"), there + ".new")
            os.rename(there + ".new", there)
            reload(agent)
        wait_for(lambda: len(agent.sessions()) == 1, 10, "the session is still there")
        app.close_stdin()
        app.right(20)
        held = len(os.listdir(f"/proc/{agent.pid}/fd"))
        assert held < 30, f"{held} descriptors after four reloads"
        # One that cannot run, and one that is none: the agent goes on.
        for text in ("nonsense", "#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec sleep 60\n"):
            write(there + ".new", text)
            os.chmod(there + ".new", 0o755)
            os.rename(there + ".new", there)
            reload(agent, said="event=reload.refused")
        late = App("sum", 1, 1024, socket=sidecar.socket)
        late.right(20)


def test_what_only_a_restart_changes_is_named():
    with folder() as path:
        agent, file = configured(path, "max_sessions: 8")
        for line, wanted in (("max_sessions: 9", "'max_sessions' is another: a restart changes it"),
                             ("max_sessions: 8\nmemory_reserve: 1MiB", "'memory_reserve' is another"),
                             ("max_sessions: 8\nno_such_key: 1", "unknown key 'no_such_key'")):
            write(file, line)
            reload(agent, said="event=reload.refused")
            assert wanted in agent.log(), (line, agent.log())
        write(file, "max_sessions: 8")
        reload(agent, said="event=reload.same")
        assert agent.http("/healthz") and "event=agent.reloaded" not in agent.log()


def test_a_program_in_the_middle_of_copies_with_its_wire_cut():
    with folder() as path:
        file = os.path.join(path, "agent.yaml")
        write(file, "grace: 60s")
        with stack(between=Proxy, agent=("--config", file)) as s:
            app = s.app("sum", FOR_EVER, 4096)
            app.line("^started", 20)
            for n in range(3):
                write(file, f"grace: {50 + n}s")
                s.between.cut()
                reload(s.agent)
            wait_for(lambda: [one["state"] for one in s.agent.sessions()] == ["running"], 20, "it is back")
            app.close_stdin()
            app.right(30)
            assert "rounds right" in app.text(), app.text()


def test_sessions_of_a_tenant_without_a_token_end():
    """By the token file, and by a configuration that has another one; a tenant with a new token goes on."""
    def tokens(name, **of):
        file = os.path.join(path, name)
        write(file, *(f"{token} {tenant}" for tenant, token in of.items()))
        os.chmod(file, 0o600)
        return file

    def session(tenant, of):
        client = tokens(tenant, **{tenant: of})
        write(client, of)
        sidecar = Sidecar(os.path.join(path, "of-" + tenant), agent, "--token-file", client)
        app = App("bystander", socket=sidecar.socket)
        app.line("^started", 20)
        return app

    def revoked(app, tenant):
        wait_for(lambda: app.pid not in [one["pid"] for one in agent.sessions()], 20, "its session is over")
        said = [line for line in agent.log().splitlines() if "event=session.revoked" in line]
        assert said and said[-1].endswith(f"tenant={tenant}"), said
        app.close_stdin()
        assert app.wait(20) != 0, app.text()

    with folder() as path:
        first = tokens("tokens", a="a" * 32, b="b" * 32, c="c" * 32)
        file = os.path.join(path, "agent.yaml")
        write(file, f"token_file: {first}")
        agent = Agent(path, "--config", file, *operator(path))
        a, b, c = (session(tenant, tenant * 32) for tenant in "abc")
        tokens("tokens", b="x" * 32, c="c" * 32)
        revoked(a, "a")
        assert {one["pid"] for one in agent.sessions()} == {b.pid, c.pid}
        second = tokens("others", b="y" * 32)
        write(file, f"token_file: {second}")
        reload(agent)
        revoked(c, "c")
        assert {one["pid"] for one in agent.sessions()} == {b.pid}
        b.close_stdin()
        b.right(20)
