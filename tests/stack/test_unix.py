# SPDX-License-Identifier: Apache-2.0
"""unix://PATH: agent and sidecar on one machine, over a Unix socket.  What holds over TCP holds here:
stripes, tokens, ends and faults."""
import contextlib
import os
import re
import socket
import stat
import subprocess

from stack import (BIN, LOST, NOT_PERMITTED, NOT_READY, Agent, App, Sidecar, children, environment, folder,
                   kill, wait_for)
from test_stripes import FOR_EVER, stripes_of

VCUDA, AGENT = os.path.join(BIN, "vcuda"), os.path.join(BIN, "gpu-agent")


def listening(path, *flags, mode=""):
    """An agent that listens on a socket in a folder that is not there yet."""
    where = os.path.join(path, "run", "agent.sock")
    agent = Agent(path, "--address", f"unix://{where}{mode}", *flags)
    agent.socket, agent.address = where, f"unix://{where}"
    return agent


@contextlib.contextmanager
def on_one_machine(*flags, plan=None):
    with folder() as path:
        agent = listening(path, *flags)
        address = f"fault+{agent.address}?{plan}" if plan else agent.address
        yield agent, Sidecar(path, address)


def refused(*flags, status=1):
    got = subprocess.run([AGENT, "--driver", "software", "--ports", "0,0,0", "--insecure", *flags],
                         capture_output=True, text=True, timeout=20, env=environment())
    assert got.returncode == status, (got.returncode, got.stderr)
    return got.stderr


def vcuda(*words, status=0, **env):
    got = subprocess.run([VCUDA, *words], capture_output=True, text=True, timeout=60,
                         env=environment(env))
    assert got.returncode == status, (words, got.returncode, got.stdout, got.stderr)
    return got.stdout + got.stderr


def test_computes_and_is_named():
    with on_one_machine() as (agent, sidecar):
        assert agent.ports["send"] == agent.ports["recv"] == 0, agent.ports
        app = App("sum", FOR_EVER, 64, socket=sidecar.socket)
        agent.worker(app)
        assert [one["peer"] for one in agent.sessions()] == [f"uid:{os.getuid()}"], agent.sessions()
        assert f"peer=uid:{os.getuid()}" in agent.log(), agent.log()
        # No connection but those of HTTP goes through TCP: the agent has one listening socket of it.
        assert agent.log().count("send=0 recv=0") == 1, agent.log()
        app.close_stdin()
        app.right()
        wait_for(lambda: not agent.sessions(), 5, "no session is left")
        agent.stop()
        assert os.listdir(os.path.dirname(agent.socket)) == [], "socket and lock are gone"


def test_large_copies_take_stripes():
    with on_one_machine() as (agent, sidecar):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        wait_for(lambda: stripes_of(sidecar.socket) == 4, 20, "the stripes are open")
        wait_for(lambda: [one["lanes"] for one in agent.sessions()] == [4], 5, "the agent says so")
        app.close_stdin()
        app.right(30)
        assert re.search(r"\d+ rounds right", app.text()), app.text()


def test_killed_agent_ends_the_program_and_the_next_one_serves():
    with folder() as path:
        agent = listening(path)
        sidecar = Sidecar(path, agent)
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        wait_for(lambda: stripes_of(sidecar.socket) == 4, 20, "the stripes are open")
        kill(agent.pid)
        agent.process.wait(10)
        got = app.line(r"error (\d+) at|gave (\d+) ", 15)
        assert int(got[1] or got[2]) == LOST, got[0]
        app.wait()
        assert stat.S_ISSOCK(os.stat(agent.socket).st_mode), "the dead agent's socket is there"
        again = listening(path)
        App("sum", 3, 64, socket=sidecar.socket).right()
        again.stop()


def test_a_live_agents_socket_is_not_taken():
    with on_one_machine() as (agent, sidecar):
        said = refused("--address", agent.address)
        assert agent.socket in said and f"another agent (pid {agent.pid}) serves there" in said, said
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_other_files_are_not_taken():
    with folder() as path:
        file = os.path.join(path, "file")
        open(file, "w").close()
        assert "is not a socket" in refused("--address", f"unix://{file}")
        assert os.path.isfile(file)
        for address, why in (("unix://relative", "an absolute path"), (f"unix://{file}?mode=9", "mode=OCTAL"),
                             (f"unix:///{'x' * 120}", "an absolute path"), ("loop://x", "not supported")):
            assert why in refused("--address", address), address


def test_mode_of_the_socket():
    for mode, bits in (("", 0o660), ("?mode=0606", 0o606)):
        with folder() as path:
            agent = listening(path, mode=mode)
            assert stat.S_IMODE(os.stat(agent.socket).st_mode) == bits
            agent.stop()


def test_wrong_token():
    with folder() as path:
        right, wrong = (os.path.join(path, name) for name in ("right", "wrong"))
        for name in (right, wrong):
            with open(name, "w") as file:
                file.write(f"{os.path.basename(name)}-token\n")
        agent = listening(path, "--token-file", right)
        for token, status in ((right, 0), (wrong, NOT_PERMITTED)):
            sidecar = Sidecar(os.path.join(path, str(status)), agent, "--token-file", token)
            app = App("sum", 3, 64, socket=sidecar.socket)
            if status:
                app.line(rf"error {status} at|gave {status} ")
                assert "the token is not the agent's" in sidecar.log(), sidecar.log()
            else:
                app.right()
        assert f"reason=token peer=uid:{os.getuid()}" in agent.log(), agent.log()


def test_nobody_listens():
    with folder() as path:
        address = f"unix://{path}/nobody"
        sidecar = Sidecar(path, address)
        App("sum", 1, 64, socket=sidecar.socket).line(rf"error {NOT_READY} at|gave {NOT_READY} ")
        assert f"agent {address}: nobody listens there" in sidecar.log(), sidecar.log()


def test_killed_front_and_the_agent_serves_again():
    with on_one_machine() as (agent, sidecar):
        front = agent.front()
        kill(front)
        wait_for(lambda: agent.front() != front, 5, "another front")
        App("sum", 3, 64, socket=sidecar.socket).right()


def test_faults_wrap_it():
    with on_one_machine(plan="delay=2ms") as (_, sidecar):
        App("sum", 3, 64, socket=sidecar.socket).right()
    with on_one_machine(plan="cut-after=30") as (_, sidecar):
        App("sum", 20, 64, socket=sidecar.socket).right()
        assert "event=channel.resumed" in sidecar.log(), sidecar.log()


def test_beside_tcp():
    """One agent, two addresses: each is a way in."""
    with folder() as path:
        where = os.path.join(path, "agent.sock")
        agent = Agent(path, "--address", f"127.0.0.1, unix://{where}")
        for number, address in enumerate((agent.address, f"unix://{where}", f"unix://{where}, {agent.address}")):
            sidecar = Sidecar(os.path.join(path, str(number)), address)
            App("sum", 3, 64, socket=sidecar.socket).right()
        agent.stop()
        assert not os.path.exists(where)


def test_a_session_stays_with_its_transport():
    """A connection with a session's secret that comes another way is nobody's."""
    from test_stripes import FEATURE_STRIPES, greet
    with folder() as path:
        where = os.path.join(path, "agent.sock")
        agent = Agent(path, "--address", f"127.0.0.1, unix://{where}")
        commands, told = greet(agent.address, 1)
        assert told["status"] == 0 and told["features"] == FEATURE_STRIPES, told
        host, port = agent.address.rsplit(":", 1)
        replies, _ = greet(f"{host}:{agent.ports['send']}", 2, told["session"], told["secret"])
        stripe, mine = greet(agent.address, 4, told["session"], told["secret"])
        assert mine["status"] == 0, mine
        real, socket.create_connection = socket.create_connection, lambda *_: by_path(where)
        try:
            other, refusal = greet("any:1", 4, told["session"], told["secret"])
        finally:
            socket.create_connection = real
        assert refusal["status"] == NOT_PERMITTED, refusal
        for wire in (commands, replies, stripe, other):
            wire.close()
        agent.stop()


def by_path(path):
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(10)
    wire.connect(path)
    return wire


def test_wherever_an_address_is_given():
    with on_one_machine() as (agent, sidecar):
        program = os.path.join(os.path.dirname(BIN), "stack", "app")
        vcuda("run", "--agent", agent.address, "--", program, "sum", "3", "64")
        assert "ready: 1 GPU" in vcuda("doctor", "--agent", agent.address)
        vcuda("doctor", VCUDA_SOCKET=sidecar.socket)
        assert "GPU" in vcuda("smi", VCUDA_SOCKET=sidecar.socket)
        assert "nobody listens there" in vcuda("doctor", "--agent", agent.address + ".not", status=1)
        # Its control port has no number of its own in the address: 9999 of this machine.
        assert "127.0.0.1:9999" in vcuda("smi", "--agent", agent.address, status=1)
        config = os.path.join(os.path.dirname(sidecar.folder), "config.yaml")
        with open(config, "w") as file:
            file.write(f"agent: {agent.address}\n")
        for number, (flags, env) in enumerate(((["--config", config], {}), ([], {"VCUDA_AGENT": agent.address}))):
            where = f"{sidecar.socket}{number}"
            Sidecar(os.path.join(os.path.dirname(config), str(number)), None, socket=where, env=env,
                    command=[os.path.join(BIN, "vcuda-client"), "run", *flags])
            App("sum", 3, 64, socket=where).right()
        # A program that finds no sidecar starts one for that agent.
        before = set(children(os.getpid(), "vcuda-client"))
        App("sum", 3, 64, env={"REMOTE_GPU_ADDRESS": agent.address,
                               "XDG_RUNTIME_DIR": os.path.dirname(config)}).right()
        kill(list(set(children(os.getpid(), "vcuda-client")) - before))
