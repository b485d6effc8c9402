# SPDX-License-Identifier: Apache-2.0
"""protocol: auto: shared memory where the agent that is named is the one on this machine, and the network where it
is not."""
import glob
import json
import os
import re
import socket
import subprocess
import sys

from stack import BIN, Agent, App, Sidecar, Skip, environment, folder, kill, wait_for
from test_local import on_one_machine
from test_reload import reload, write
from test_stripes import FOR_EVER

CLIENT = os.path.join(BIN, "vcuda-client")


def both(path, name="agent"):
    """An agent that listens on TCP and, for memory, on a socket."""
    where = os.path.join(path, f"{name}.sock")
    agent = Agent(os.path.join(path, name), "--address", f"127.0.0.1,local://{where}")
    agent.socket = where
    return agent


def transport_of(sidecar):
    got = subprocess.run([CLIENT, "status", "--json", "--socket", sidecar.socket], capture_output=True, text=True,
                         timeout=60, env=environment())
    return [one["transport"] for one in json.loads(got.stdout)["channels"]]


def goes_by(sidecar, name):
    app = App("sum", FOR_EVER, 64, socket=sidecar.socket)
    wait_for(lambda: transport_of(sidecar) == [name], 30, f"it goes by {name}")
    app.close_stdin()
    app.right(60)


def test_the_agent_on_this_machine():
    with folder() as path:
        agent = both(path)
        goes_by(Sidecar(path, agent.address, "--local-socket", agent.socket), "local")
        goes_by(Sidecar(os.path.join(path, "2"), agent.address, env={"VCUDA_LOCAL_SOCKET": agent.socket}), "local")


def test_another_agents_socket_is_not_taken():
    with folder() as path:
        agent, other = both(path), both(path, "other")
        goes_by(Sidecar(path, agent.address, "--local-socket", other.socket), "native")
        only = Sidecar(os.path.join(path, "2"), agent.address, "--local-socket", other.socket, "--protocol", "local")
        app = App("sum", 1, 64, socket=only.socket)
        assert app.wait(60) != 0
        assert "protocol: local" in only.log(), only.log()


def test_no_socket_and_not_wanted():
    with folder() as path:
        agent = both(path)
        goes_by(Sidecar(path, agent.address, "--local-socket", f"{path}/nothing"), "native")
        goes_by(Sidecar(os.path.join(path, "2"), agent.address, "--local-socket", agent.socket, "--protocol", "native"),
                "native")


def test_a_killed_sidecar_is_followed():
    with folder() as path:
        agent = both(path)
        first = Sidecar(path, agent.address, "--local-socket", agent.socket)
        app = App("sum", FOR_EVER, 64, socket=first.socket)
        wait_for(lambda: transport_of(first) == ["local"], 30, "it goes by shared memory")
        kill(first.pid)
        first.process.wait(30)
        second = Sidecar(os.path.join(path, "2"), agent.address, "--local-socket", agent.socket, socket=first.socket)
        wait_for(lambda: "channel.resumed" in second.log(), 30, "the session goes on")
        wait_for(lambda: transport_of(second) == ["local"], 30, "by shared memory")
        app.close_stdin()
        app.right(60)


SHARED = "/dev/shm/vcuda-agent-"


def shared_sockets():
    return {path for path in glob.glob(SHARED + "*") if re.fullmatch(SHARED + "[0-9a-f]{32}", path)}


def in_one_ipc_namespace(path, name="agent", *flags):
    """An agent that listens on TCP and, under a random name, beside POSIX shared memory."""
    before = shared_sockets()
    agent = Agent(os.path.join(path, name), "--address", "127.0.0.1,local://", *flags)
    agent.sockets = shared_sockets() - before
    return agent


def test_where_both_have_host_ipc():
    with folder() as path:
        agent = in_one_ipc_namespace(path)
        assert agent.sockets, "it has a socket"
        goes_by(Sidecar(path, agent.address, "--ipc", "host"), "local")
        # Without hostIPC, or where it is not wanted, nobody looks there.
        goes_by(Sidecar(os.path.join(path, "2"), agent.address), "native")
        goes_by(Sidecar(os.path.join(path, "3"), agent.address, "--ipc", "host", "--protocol", "native"), "native")
        # Another agent's is another's.
        other = Agent(os.path.join(path, "other"), "--address", "127.0.0.1")
        goes_by(Sidecar(os.path.join(path, "4"), other.address, "--ipc", "host"), "native")
        agent.stop()
        assert not agent.sockets & shared_sockets(), "its socket goes with it"


def test_host_ipc_after_a_killed_sidecar():
    with folder() as path:
        agent = in_one_ipc_namespace(path)
        first = Sidecar(path, agent.address, "--ipc", "host")
        app = App("sum", FOR_EVER, 64, socket=first.socket)
        wait_for(lambda: transport_of(first) == ["local"], 30, "it goes by shared memory")
        kill(first.pid)
        first.process.wait(30)
        second = Sidecar(os.path.join(path, "2"), agent.address, "--ipc", "host", socket=first.socket)
        wait_for(lambda: "channel.resumed" in second.log(), 30, "the session goes on")
        wait_for(lambda: transport_of(second) == ["local"], 30, "by shared memory")
        app.close_stdin()
        app.right(60)
        agent.stop()


def test_foreign_sockets_beside_shared_memory():
    if os.geteuid():
        raise Skip("needs root, to be another user")
    with folder() as path:
        mine, foreign = (SHARED + os.urandom(16).hex() for _ in range(2))
        listener = subprocess.Popen(
            [sys.executable, "-c", f"import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
             f"s.bind('{foreign}'); s.listen(); print('up', flush=True); print(len(s.accept()[0].recv(1)))"],
            stdout=subprocess.PIPE, text=True)
        try:
            assert listener.stdout.readline() == "up\n"
            # What a killed agent left is taken away by the next one, another user's is not, nor asked.
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(mine)
            agent = in_one_ipc_namespace(path)
            assert not os.path.exists(mine) and os.path.exists(foreign)
            goes_by(Sidecar(path, agent.address, "--ipc", "host"), "local")
            assert listener.poll() is None, "somebody asked another user's socket"
            agent.stop()
        finally:
            listener.kill()
            listener.wait(30)
            os.unlink(foreign)


def probe(*flags):
    got = subprocess.run([CLIENT, "probe", *flags], capture_output=True, text=True, timeout=60, env=environment())
    return got.returncode, got.stderr + got.stdout


def test_bad_words():
    for flags, text in ((("--protocol", "quic"), "none of auto, native, light and local"),
                        (("--local-socket", "relative"), "no absolute path")):
        status_, said = probe("--agent", "127.0.0.1", *flags)
        assert status_ and text in said, said


def test_another_users_socket():
    if os.geteuid():
        raise Skip("needs root, to be another user")
    with folder() as path:
        os.chmod(path, 0o777)
        where = os.path.join(path, "s")
        listener = subprocess.Popen(
            [sys.executable, "-c", f"import os, socket, time; os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
             f"s.bind('{where}'); s.listen(); print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE, text=True)
        try:
            assert listener.stdout.readline() == "up\n"
            status_, said = probe("--agent", f"local://{where}")
            assert status_ and "user 65534 listens there, who is neither root nor this one" in said, said
        finally:
            listener.kill()
            listener.wait(30)


def test_no_plan_breaks_it():
    with on_one_machine() as (agent, _):
        status_, said = probe("--agent", f"fault+{agent.address}?delay=1ms")
        assert status_ and "shares memory" in said, said


def test_the_name_beside_shared_memory_outlives_a_reload():
    with folder() as path:
        file = os.path.join(path, "agent.yaml")
        write(file, "grace: 10s")
        agent = in_one_ipc_namespace(path, "agent", "--config", file)
        write(file, "grace: 20s")
        reload(agent)
        assert agent.sockets and agent.sockets <= shared_sockets(), "the socket is what it was"
        goes_by(Sidecar(path, agent.address, "--ipc", "host"), "local")
        agent.stop()
        assert not agent.sockets & shared_sockets(), "its socket goes with it"
