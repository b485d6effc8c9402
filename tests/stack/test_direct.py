# SPDX-License-Identifier: Apache-2.0
"""Copies and waits between two agents that do not visit the client (docs/SEVERAL-GPUS.md)."""
import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time

from peer import HELLO, SESSION_MAGIC, SESSION_VERSION, WELCOME, read_exact
from stack import ANYWHERE, BIN, BUILD, LOST, NOT_PERMITTED, Agent, App, Sidecar, environment, folder, kill, now, soon, wait_for
from test_tls import Authority, agent_flags

DIRECT = os.path.join(BUILD, "stack", "direct")
PEER = 8  # a HELLO's role


@contextlib.contextmanager
def agents(*gpus, peers=ANYWHERE, flags=(), driver="software", wire="{}", more=()):
    """An agent for each number, with so many GPUs, that may join the others, and a sidecar that has them all over
    such a wire."""
    with folder() as path:
        made = []
        for number, count in enumerate(gpus):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            joins = ("--peers", peers) if peers else ()
            made.append(Agent(place, *joins, *more, env={"VCUDA_SOFTGPU_DEVICES": str(count)}, driver=driver))
        sidecar = Sidecar(path, "+".join(wire.format(agent.address) for agent in made), *flags)
        try:
            yield made, sidecar
        except AssertionError as error:
            tails = "\n".join(one.log()[-900:] for one in (sidecar, *made))
            raise AssertionError(f"{error}\n{tails}").with_traceback(error.__traceback__) from None


def program(sidecar, *words, **env):
    return App(*words, program=DIRECT, socket=sidecar.socket, env=env)


def right(app, text="right", seconds=60):
    app.close_stdin()
    app.right(seconds)
    assert text in app.text(), app.text()


def direct(agent):
    """Connections between agents that this one has opened so far."""
    return agent.log().count("event=direct.open")


def test_every_form():
    with agents(1, 2) as (made, sidecar):
        right(program(sidecar, "copies"))
        assert [direct(agent) for agent in made] == [1, 1]


def test_events():
    with agents(1, 2) as (made, sidecar):
        right(program(sidecar, "events"))
        assert [direct(agent) for agent in made] == [1, 1]


def test_a_driver_that_waits_for_an_idle_gpu():
    """What lets a stream go on comes through the worker's loop: nothing that is made meanwhile may wait there."""
    for words in (("copies",), ("posts", "50"), ("deep", "3000")):
        with agents(1, 2, driver=os.path.join(BUILD, "stack", "libidling-driver.so")) as (_, sidecar):
            right(program(sidecar, *words))


def test_streams_that_share_a_channel():
    """Nothing that lets a stream go on is put behind it: what the worker does by itself has channels of its own."""
    for words in (("copies",), ("posts", "50"), ("deep", "3000")):
        with agents(1, 2, driver=os.path.join(BUILD, "stack", "libchannel-driver.so")) as (_, sidecar):
            right(program(sidecar, *words))


def test_memory_that_comes_back():
    """Under a limit memory is had again once the agent has taken it back, whose tickets come in their order: also
    where a later one is seen to be over first. Streams of two agents wait for each other meanwhile."""
    driver = os.path.join(BUILD, "stack", "liblate-driver.so")
    with agents(1, 1, driver=driver, more=("--memory-limit", "256MiB")) as (_, sidecar):
        right(program(sidecar, "memory", "200"))


def test_a_source_that_failed():
    """An end that cannot be asked for its part leaves the other one's stream as it was."""
    with agents(1, 1) as (_, sidecar):
        right(program(sidecar, "fault"))
        right(program(sidecar, "fault", VCUDA_PERF="no_post"))


def sent(app, sidecar):
    """Bytes that the sidecar has carried for the program, both ways, over all of its sessions."""
    got = json.loads(subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--socket", sidecar.socket, "--json"],
                                    capture_output=True, text=True, timeout=20, env=environment(), check=True).stdout)
    mine = [one for one in got["channels"] if one["pid"] == app.pid]
    assert len(mine) == 2, got
    return sum(one["bytes_sent"] + one["bytes_received"] for one in mine)


def step(app):
    app.process.stdin.write("\n")
    app.process.stdin.flush()


def test_bytes_do_not_visit_the_client():
    with agents(1, 1) as (made, sidecar):
        app = program(sidecar, "big", "256")
        app.line("^made", 60)
        before = sent(app, sidecar)
        step(app)
        app.line("^copied", 120)
        after = sent(app, sidecar)
        assert after - before < 64 << 10, after - before
        (source, target), size = made, (256 << 20) + 4  # the first copy is of four
        wait_for(lambda: source.sessions()[0]["peer_sent_bytes"] == size, 5, "the source says so")
        wait_for(lambda: target.sessions()[0]["peer_received_bytes"] == size, 5, "the destination says so")
        assert [agent.sessions()[0]["peers"] for agent in made] == [1, 1]
        step(app)
        right(app, seconds=120)
        said = [agent.http("/metrics") for agent in made]
        assert f'vcuda_agent_peer_bytes_total{{direction="sent"}} {size}\n' in said[0]
        assert f'vcuda_agent_peer_bytes_total{{direction="received"}} {size}\n' in said[1]
        ways = [re.findall(r'peer_connections_total{result="(accepted|dialed)"} 1\n', text) for text in said]
        assert sorted(ways) == [["accepted"], ["dialed"]], ways
        for agent in made:
            wait_for(lambda agent=agent: "vcuda_agent_peers 0\n" in agent.http("/metrics"), 10, "the connection is gone")


def test_no_round_trips():
    """Copies and waits are posts: a hundred of them make a program wait as often as none."""
    with agents(1, 1) as (_, sidecar), folder() as path:
        waits = []
        right(program(sidecar, "posts", "0"))  # its module is at the agents from now on
        for turns in (0, 100):
            file = os.path.join(path, str(turns))
            right(program(sidecar, "posts", str(turns), VCUDA_STATS=file))
            with open(file) as stats:
                waits.append(json.load(stats)["round_trips"])
        assert waits[0] == waits[1], waits


def client(sidecar, *words):
    """What `vcuda-client WORDS` says of the sidecar."""
    return subprocess.run([os.path.join(BIN, "vcuda-client"), *words, "--socket", sidecar.socket],
                          capture_output=True, text=True, timeout=20, env=environment(), check=True).stdout


def relayed(sidecar):
    """(connections between agents that the sidecar carried so far, their bytes)"""
    totals = json.loads(client(sidecar, "status", "--json"))["totals"]
    return totals["relays"], totals["relayed_bytes"]


def test_an_agent_goes_only_where_it_may():
    """Neither may dial: the sidecar carries what goes between them, says so once, and the answers are the same."""
    for peers in ("", "127.0.0.1", "10.0.0.0/8:*", "elsewhere.example:*"):
        with agents(1, 1, peers=peers) as (made, sidecar):
            for turn in 1, 2:
                right(program(sidecar, "copies"))
                assert [direct(agent) for agent in made] == [turn, turn]
                count, size = relayed(sidecar)
                assert count == turn and size > turn << 20, (count, size)
            assert all("peers:" in agent.log() for agent in made)
            assert sidecar.log().count("neither of these agents may dial the other") == 1


def test_the_plan_of_a_wire():
    """It is for the sidecar's wire to an agent: agents join one another without it, and so does a relay."""
    for peers in (ANYWHERE, ""):
        with agents(1, 1, peers=peers, wire="fault+native://{}?delay=1ms") as (made, sidecar):
            right(program(sidecar, "copies"))
            assert [direct(agent) for agent in made] == [1, 1]
            assert relayed(sidecar)[0] == (not peers)


def test_events_relayed():
    with agents(1, 2, peers="") as (made, sidecar):
        right(program(sidecar, "events"))
        assert [direct(agent) for agent in made] == [1, 1] and relayed(sidecar)[0] == 1


def test_relayed_bytes_are_counted():
    """256 MiB between two agents: in the sidecar's counters for relays, and not through the program."""
    with agents(1, 1, peers="") as (made, sidecar):
        app = program(sidecar, "big", "256")
        app.line("^made", 60)
        before = sent(app, sidecar)
        step(app)
        app.line("^copied", 120)
        assert sent(app, sidecar) - before < 64 << 10
        got, = json.loads(client(sidecar, "status", "--json"))["relays"]
        assert got["pid"] == app.pid and 256 << 20 <= got["bytes"] < 257 << 20, got
        assert sorted(got["agents"]) == sorted(agent.address for agent in made), got
        assert sorted(got["sessions"]) == sorted(agent.sessions()[0]["id"] for agent in made), got
        assert "relayed by this sidecar" in client(sidecar, "status")
        assert "vcuda_sidecar_relays 1\n" in client(sidecar, "metrics")
        step(app)
        right(app, seconds=120)
        assert relayed(sidecar)[1] >= 256 << 20
        wait_for(lambda: not json.loads(client(sidecar, "status", "--json"))["relays"], 20, "the relay ends")


def test_one_of_the_two_may():
    with folder() as path:
        made = []
        for number, peers in enumerate(("", ANYWHERE)):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            made.append(Agent(place, *(("--peers", peers) if peers else ())))
        sidecar = Sidecar(path, "+".join(agent.address for agent in made))
        right(program(sidecar, "copies"))
        assert [direct(agent) for agent in made] == [1, 1]


def test_commands_tell_whose_gpus_and_which_way():
    """`vcuda doctor`, `smi` and `status` name each GPU's agent; the doctor, how copies between agents go."""
    def vcuda(*words, **env):
        return subprocess.run([os.path.join(BIN, "vcuda"), *words], capture_output=True, text=True, timeout=60,
                              env=environment({"VCUDA_SOCKET": sidecar.socket, **env})).stdout

    for peers, way in ((ANYWHERE, "go from agent to agent"), ("", "go through the sidecar")):
        with agents(1, 2, peers=peers) as (made, sidecar):
            one, two = (agent.address for agent in made)
            said = vcuda("doctor")
            for line in f"GPU 0: agent {one}", f"GPUs 1 to 2: agent {two}", f"copies between {one} and {two} {way}":
                assert line + "\n" in said, said
            reversed_order = vcuda("doctor", CUDA_VISIBLE_DEVICES="2,0")
            assert f"GPU 0: agent {two}\n" in reversed_order and f"GPU 1: agent {one}\n" in reversed_order, reversed_order
            assert re.findall(r"agent (\S+)", vcuda("smi")) == [one, two, two]
            assert re.findall(r"agent (\S+)", vcuda("smi", "-L")) == [one, two, two]
            app = program(sidecar, "go-on")
            app.line("^copied", 60)
            status = vcuda("status")
            for agent in made:
                assert f"direct, {agent.address}\n" in status, status
            assert vcuda("smi").count(str(app.pid)) == 1  # it has two sessions
            right(app, " 0 wrong")


def test_switched_off():
    with agents(1, 1) as (made, sidecar):
        for word in ("copies", "no_direct"), ("copies", "no_post"), ("events", "no_post"), ("copies", "no_batch"), \
                ("events", "no_push"):
            before = direct(made[0])
            right(program(sidecar, word[0], VCUDA_PERF=word[1]))
            assert direct(made[0]) - before == (word[1] != "no_direct"), word


def test_tickets():
    """A ticket that is nobody's, and no ticket, open nothing; sessions go on."""
    with agents(1, 1) as (made, sidecar):
        app = program(sidecar, "go-on")
        app.line("^copied", 60)
        session = bytes.fromhex(made[1].sessions()[0]["id"])
        source = bytes.fromhex(made[0].sessions()[0]["id"])
        for secret in (bytes(16), os.urandom(16)):
            for to in (session, source, bytes(16)):
                with socket.create_connection(("127.0.0.1", made[1].ports["recv"]), 20) as wire:
                    wire.sendall(HELLO.pack(SESSION_MAGIC, SESSION_VERSION, PEER, 0, to, secret, 1, 1, b"", b"",
                                            source, b"", 0, 0, 0))
                    got = WELCOME.unpack(read_exact(wire, WELCOME.size, 20))
                assert got[2] == NOT_PERMITTED and b"the ticket is not one of" in got[-1], got
        right(app, " 0 wrong")
        assert direct(made[1]) == 1


@contextlib.contextmanager
def encrypted(peer_flags, usage="serverAuth,clientAuth", name="IP:127.0.0.1"):
    """Two agents with TLS that may join each other, started with PEER_FLAGS(authority), and a sidecar that has both."""
    with folder() as path:
        authority, made = Authority(path), []
        cert = authority.issue("agent", alternative=name, usage=usage)
        for number in range(2):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            made.append(Agent(place, "--peers", ANYWHERE, *agent_flags(*cert, *peer_flags(authority))))
        tls = ("--tls-name", name.split(":")[1]) if name.startswith("DNS") else ()
        yield made, Sidecar(path, "+".join(agent.address for agent in made), "--tls-ca", authority.file, "--tls-cert",
                            cert[0], "--tls-key", cert[1], *tls)


def peer_ca(authority, *more):
    return ("--set", f"tls.peer_ca={authority.file}", *more)


def test_tls_between_agents():
    """Copies and events go from agent to agent over TLS, also where a certificate is asked of who dials, and where the
    certificates name no address."""
    def mutual(authority):
        return peer_ca(authority, "--set", f"tls.client_ca={authority.file}", "--set", "tls.require_client_cert=true")

    for flags, name in ((peer_ca, "IP:127.0.0.1"), (mutual, "IP:127.0.0.1"),
                        (lambda a: peer_ca(a, "--set", "tls.peer_name=agents.example"), "DNS:agents.example")):
        with encrypted(flags, name=name) as (made, sidecar):
            for word in "copies", "events":
                right(program(sidecar, word))
            assert [direct(agent) for agent in made] == [2, 2] and relayed(sidecar)[0] == 0
            for agent in made:
                assert agent.log().count("transport=tls") == 2, agent.log()[-2000:]


def test_tls_that_does_not_fit_is_relayed_over_tls():
    """Agents that do not know who signs for the others, or know another, are joined by the sidecar: nothing in the
    clear."""
    def another(authority):
        return peer_ca(Authority(authority.path, "another"))

    for flags, why in ((lambda authority: (), "tls.peer_ca"), (another, "local issuer"),
                       (lambda a: peer_ca(a, "--set", "tls.peer_name=b.example"), "ostname mismatch")):
        with encrypted(flags) as (made, sidecar):
            right(program(sidecar, "copies"))
            assert relayed(sidecar)[0] == 1
            for agent in made:
                log = agent.log()
                assert why in log and log.count("event=direct.open") == log.count("transport=tls") == 1, log[-2000:]


class Tap:
    """Stands before an agent, and asks what to do with each ticket that comes: pass it on, or close."""

    def __init__(self, agent, ticket):
        self.agent, self.ticket = agent, ticket
        self.listeners = [socket.create_server(("127.0.0.2", agent.ports[name])) for name in ("recv", "send")]
        self.address = f"127.0.0.2:{agent.ports['recv']}"
        for listener in self.listeners:
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=listener.accept()[:1] + listener.getsockname()[1:],
                                 daemon=True).start()

    def serve(self, wire, port):
        with wire, contextlib.suppress(OSError, EOFError):
            hello = read_exact(wire, HELLO.size, 20)
            if HELLO.unpack(hello)[2] == PEER and not self.ticket(hello):
                return
            with socket.create_connection(("127.0.0.1", port), 20) as agent:
                agent.sendall(hello)
                for one in (wire, agent):
                    one.settimeout(None)
                back = threading.Thread(target=self.carry, args=(agent, wire), daemon=True)
                back.start()
                self.carry(wire, agent)
                back.join()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self):
        for listener in self.listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def present(agent, hello):
    """What the agent answers to a ticket."""
    with socket.create_connection(("127.0.0.1", agent.ports["recv"]), 20) as wire:
        wire.sendall(hello)
        got = WELCOME.unpack(read_exact(wire, WELCOME.size, 20))
    return got[2], got[-1].rstrip(b"\0").decode()


REFUSED = (NOT_PERMITTED, "the ticket is not one of this agent's, was used before, or is another session's")


def test_tickets_of_another_pair_used_and_old():
    """A ticket is good for its two sessions, once, and for ten seconds."""
    seen, answers = [], []

    def pass_on(hello):
        words = list(HELLO.unpack(hello))
        for field in (4, 10):  # the destination's session, the source's
            forged = list(words)
            forged[field] = os.urandom(16) + words[field][16:]
            answers.append(present(made[1], HELLO.pack(*forged)))
        seen.append(hello)
        return True

    def keep(hello):
        seen.append(hello)
        return False

    with folder() as path:
        made = []
        for number in range(2):
            os.makedirs(os.path.join(path, str(number)))
            made.append(Agent(os.path.join(path, str(number)), "--peers", "127.0.0.0/8:*"))
        tap = Tap(made[1], pass_on)
        try:
            sidecar = Sidecar(path, f"{made[0].address}+{tap.address}")
            first = program(sidecar, "go-on")
            first.line("^copied", 60)
            assert len(seen) == 1 and answers == [REFUSED, REFUSED], answers
            assert present(made[1], seen[0]) == REFUSED  # it was used
            tap.ticket = keep
            second = program(sidecar, "go-on")
            second.line("^copied", 60)
            assert len(seen) == 2
            time.sleep(10.5)
            assert present(made[1], seen[1]) == REFUSED
            for app in first, second:
                right(app, " 0 wrong")
        finally:
            tap.close()


def test_an_agent_that_dies():
    """Its devices are lost, the copy that was under way is an error, and the other device is as it was."""
    with agents(1, 1) as (made, sidecar):
        app = program(sidecar, "go-on")
        app.line("^copied", 60)
        kill(made[1].everyone())
        app.line("^error", 60)
        app.close_stdin()
        assert app.wait(60) == 0 and " wrong" in app.text(), app.text()


def test_lost_at_once():
    """kill -9 of one of two: its devices are sticky long before the grace is over, within half a second on a machine
    that has nothing else to do; the others' sums stay right."""
    with agents(1, 1) as (made, sidecar):
        app = App("go-on", program=os.path.join(BUILD, "stack", "spread"), socket=sidecar.socket)
        app.line("^running on 2", 30)
        began = now()
        kill(made[1].everyone())
        app.line(f"^device 1 lost: error {LOST}", 20)  # the grace is 30 s
        soon(began, 0.5, "the loss of an agent")
        app.close_stdin()
        assert app.wait(30) == 0 and "device 0 right" in app.text(), app.text()
