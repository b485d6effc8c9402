# SPDX-License-Identifier: Apache-2.0
"""light://HOST:PORT: frames and stripes go by UDP where that gets through.  Between the two ends
stands a way that loses, doubles, reorders, changes and forges datagrams, moves a client to another
port, or lets no UDP through."""
import contextlib
import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import threading
import time

import proxy
from peer import SESSION_MAGIC, SESSION_VERSION
from stack import BIN, PATIENCE, Agent, App, Sidecar, environment, folder, kill, wait_for
from test_stripes import FOR_EVER, Relay, stripes_of

AGENT = os.path.join(BIN, "gpu-agent")
KNOCK = 1200
DATAGRAMS = int(os.environ.get("VCUDA_TEST_DATAGRAMS", "20000"))  # 1,000,000 is what must hold


class Way:
    """On another address of this machine with the agent's ports: TCP goes through as it is, of
    datagrams each(data, to_agent) says what becomes: a list of (seconds, bytes)."""
    host = proxy.HOST

    def __init__(self, agent, each=None):
        self.agent, self.each = agent, each or (lambda data, to_agent: [(0, data)])
        self.relays = [self.relay(agent.ports[which]) for which in ("recv", "send")]
        self.address = f"light://{self.host}:{agent.ports['recv']}"
        self.counts, self.sizes, self.last = {True: 0, False: 0}, [], {}
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.udp.bind((self.host, agent.ports["send"]))
        self.outer, self.inner, self.later, self.moves = {}, {}, [], 0
        self.running = True
        self.thread = threading.Thread(target=self.carry, daemon=True)
        self.thread.start()

    def relay(self, port):
        relay = Relay(f"127.0.0.1:{port}")
        relay.listener.shutdown(socket.SHUT_RDWR)
        relay.accepting.join(5)
        relay.listener.close()
        relay.listener = proxy.listen(port)
        relay.accepting = threading.Thread(target=relay.accept, daemon=True)
        relay.accepting.start()
        return relay

    def move(self):
        """From now on each client comes from another port."""
        self.moves += 1

    def to_agent(self, client):
        made = self.outer.get(client)
        if made and made[1] == self.moves:
            return made[0]
        to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        to.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        to.connect(("127.0.0.1", self.agent.ports["send"]))
        if made:
            self.inner.pop(made[0], None)
            made[0].close()
        self.outer[client], self.inner[to] = (to, self.moves), client
        return to

    def carry(self):
        while self.running:
            wait = min([0.1] + [max(0, one[0] - time.monotonic()) for one in self.later[:1]])
            ready, _, _ = select.select([self.udp, *self.inner], [], [], wait)
            for one in ready:
                with contextlib.suppress(OSError):
                    data, client = one.recvfrom(65536) if one is self.udp else (one.recv(65536), self.inner.get(one))
                    self.pass_on(data, client, one is self.udp)
            while self.later and self.later[0][0] <= time.monotonic():
                self.send(*self.later.pop(0)[1:])

    def pass_on(self, data, client, to_agent):
        self.counts[to_agent] += 1
        self.last[to_agent] = (data, client)
        for seconds, each in self.each(data, to_agent):
            if seconds:
                self.later.append((time.monotonic() + seconds, each, client, to_agent))
                self.later.sort(key=lambda one: one[0])
            else:
                self.send(each, client, to_agent)

    def send(self, data, client, to_agent):
        with contextlib.suppress(OSError):
            if to_agent:
                self.to_agent(client).send(data)
            else:
                self.udp.sendto(data, client)

    def close(self):
        self.running = False
        self.thread.join(5)
        for relay in self.relays:
            relay.close()
        self.udp.close()
        for to in self.inner:
            to.close()


@contextlib.contextmanager
def light(*flags, each=None, way=True):
    """(agent, sidecar, way)"""
    with folder() as path:
        agent = Agent(path, "--address", "light://127.0.0.1", *flags)
        between = Way(agent, each) if way else None
        try:
            yield agent, Sidecar(path, between.address if way else f"light://{agent.address}"), between
        finally:
            if between:
                between.close()


def status(sidecar):
    got = subprocess.run([os.path.join(BIN, "vcuda"), "status", "--socket", sidecar.socket, "--json"], capture_output=True,
                         text=True, timeout=20, env=environment())
    assert got.returncode == 0, got.stderr
    return json.loads(got.stdout)


def computes(sidecar, rounds=20, words=65536, seconds=60):
    app = App("sum", rounds, words, socket=sidecar.socket)
    app.right(seconds)
    return app


def test_computes_by_udp_alone():
    with light() as (agent, sidecar, way):
        app = App("sum", FOR_EVER, 65536, socket=sidecar.socket)
        wait_for(lambda: stripes_of(sidecar.socket) == 4, 20, "the stripes are open")
        app.close_stdin()
        app.right(60)
        # Payloads of 256 KiB each way: TCP had HELLOs and WELCOMEs.
        tcp = sum(sum(relay.bytes) + sum(relay.back) for relay in way.relays)
        assert min(way.counts.values()) > 500 and tcp < 20000, (way.counts, tcp)
        assert "light.tcp" not in sidecar.log(), sidecar.log()
        wait_for(lambda: not agent.sessions(), 5, "no session is left")
        agent.stop()


def hostile(loss=0.0, double=0.0, late=0.0, change=0.0, seed=1):
    """What becomes of a datagram: each one lost, doubled, sent 5 ms later or changed, by chance."""
    chance = random.Random(seed)

    def each(data, to_agent):
        if chance.random() < loss:
            return []
        out = [(0.005 if chance.random() < late else 0, data)]
        if chance.random() < double:
            out.append((0.001, data))
        if chance.random() < change:
            wrong = bytearray(data)
            wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
            out[0] = (out[0][0], bytes(wrong))
        return out
    return each


def test_loss_reordering_doubles_and_changed_bytes():
    for what in ({"loss": 0.2}, {"late": 0.3, "double": 0.3}, {"change": 0.1, "loss": 0.02}):
        with light(each=hostile(**what)) as (agent, sidecar, way):
            computes(sidecar, rounds=3, words=2048)
            assert min(way.counts.values()) > 100, (what, way.counts)
            assert agent.log().count("session.open") == 1, agent.log()


def test_a_small_path():
    """Datagrams of more than 1232 bytes (an MTU of 1280 over IPv6) do not get through."""
    sizes = []

    def each(data, to_agent):
        sizes.append(len(data))
        return [(0, data)] if len(data) <= 1232 else []

    with light(each=each) as (agent, sidecar, way):
        computes(sidecar, rounds=5, words=8192)
        assert "light.tcp" not in sidecar.log(), sidecar.log()
        assert any(size > 1232 for size in sizes), "nothing larger was tried"


def test_a_client_that_comes_from_another_port_goes_on():
    with light() as (agent, sidecar, way):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        wait_for(lambda: way.counts[True] > 300, 20, "frames go by UDP")
        for _ in range(3):
            way.move()
            before = way.counts[False]
            wait_for(lambda: way.counts[False] > before + 300, 10, "it goes on")
            time.sleep(1)  # the path before is given up
        app.close_stdin()
        app.right(30)
        assert agent.log().count("session.open") == 1 and "session.resumed" not in agent.log(), agent.log()


def test_udp_that_is_blocked():
    """From the beginning, but for the knock, and in the middle."""
    def only_knocks(data, to_agent):
        return [(0, data)] if len(data) == KNOCK and int.from_bytes(data[:8], "little") == SESSION_MAGIC or \
            not to_agent else []

    for each in (lambda data, to_agent: [], only_knocks):
        with light(each=each) as (agent, sidecar, way):
            began = time.monotonic()
            computes(sidecar, rounds=1, words=64)
            first, began = time.monotonic() - began, time.monotonic()
            assert "light.tcp" in sidecar.log(), sidecar.log()
            computes(sidecar, rounds=1, words=64)  # that is remembered: nobody waits
            lost = first - (time.monotonic() - began)
            assert lost < 1 or not os.environ.get("VCUDA_TEST_BARS"), f"over TCP after {lost:.2f} s"
    blocked = []
    with light(each=lambda data, to_agent: [] if blocked else [(0, data)]) as (agent, sidecar, way):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        wait_for(lambda: way.counts[True] > 300, 20, "frames go by UDP")
        blocked.append(True)
        wait_for(lambda: "session.resumed" in agent.log(), 10, "it is resumed")
        bytes_by_tcp = sum(way.relays[0].bytes)
        wait_for(lambda: sum(way.relays[0].bytes) > bytes_by_tcp + 100000, 10, "it goes on over TCP")
        app.close_stdin()
        app.right(30)
        assert agent.log().count("session.open") == 1, agent.log()


def channel_bytes(app):
    """Of the segment of the program's channel."""
    with open(f"/proc/{app.pid}/maps") as file:
        spans = [line.split()[0].split("-") for line in file if "memfd:vcuda" in line]
    return max(int(to, 16) - int(at, 16) for at, to in spans)


def test_more_is_under_way_where_nobody_says_how_much():
    """Over a long line: the arena and the bounce buffer, which have memory once copies need it. Not where shared
    memory is short, nor over TCP."""
    usual = 13 << 20
    with folder() as path:
        agent = Agent(path, "--address", "light://127.0.0.1")
        for flags, large in (((), True), (("--arena", "8Mi"), False), (("--shm-size", "256Mi"), False),
                             (("--shm-size", "1Gi"), True), (("--protocol", "native"), False)):
            scheme = "" if "native" in flags else "light://"
            sidecar = Sidecar(os.path.join(path, f"s{len(flags)}{flags[-1:]}"), f"{scheme}127.0.0.1:{agent.ports['recv']}", *flags)
            app = App("bystander", socket=sidecar.socket)
            app.line("^started", 30)
            assert (channel_bytes(app) > 4 * usual) == large, (flags, channel_bytes(app))
            app.close_stdin()
            app.right(30)
            sidecar.stop()
        agent.stop()


def test_an_agent_that_does_not_listen_for_it_and_a_client_that_does_not_ask():
    with folder() as path:
        agent = Agent(path)
        sidecar = Sidecar(path, f"light://{agent.address}")
        computes(sidecar, rounds=2, words=8192)
        assert "light.tcp" in sidecar.log(), sidecar.log()
    with light(way=False) as (agent, sidecar, _):
        native = Sidecar(os.path.join(agent.folder, "native"), agent.address)
        computes(native, rounds=2, words=8192)
        computes(sidecar, rounds=2, words=8192)


def test_datagrams_of_nobodys_have_no_effect():
    """Knocks with a wrong secret, noise, and packets that were seen on their way, changed and sent
    again, to the agent's port and, in the agent's name, to the client's: until the agent has looked at so many."""
    with light() as (agent, sidecar, way):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        bystander = App("sum", FOR_EVER, 64, socket=sidecar.socket)
        wait_for(lambda: way.counts[True] > 300, 20, "frames go by UDP")
        chance, port = random.Random(7), ("127.0.0.1", agent.ports["send"])
        stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        stranger.setblocking(False)
        knock = struct.pack("<QII", SESSION_MAGIC, SESSION_VERSION, 9)
        open_before = len(os.listdir(f"/proc/{agent.front()}/fd"))
        looked_at, turn, until = 0, 0, time.monotonic() + 60 * PATIENCE + DATAGRAMS / 2000
        while looked_at < DATAGRAMS and time.monotonic() < until:
            turn += 1
            if not turn % 2000:  # the socket has no room for some of them
                looked_at = int(re.search(r'knocks_total{result="refused"} (\d+)', agent.http("/metrics")).group(1))
            seen, client = way.last[True]
            back, _ = way.last[False]
            if len(seen) == KNOCK and seen[:5] == b"VCUDA":
                continue  # the client's own knock: who saw it may send it again, and is answered
            wrong = bytearray(seen)
            for _ in range(chance.choice((1, 1, 5))):
                wrong[chance.randrange(len(wrong))] ^= chance.randrange(1, 256)
            for data in (knock + chance.randbytes(KNOCK - len(knock)), chance.randbytes(chance.randrange(1, 1400)),
                         bytes(wrong), seen):
                with contextlib.suppress(OSError):
                    stranger.sendto(data, port)
            with contextlib.suppress(OSError, KeyError):
                way.outer[client][0].send(bytes(wrong))  # as if it were the client's
                wrong = bytearray(back)
                wrong[chance.randrange(len(wrong))] ^= chance.randrange(1, 256)
                way.udp.sendto(bytes(wrong), client)  # … and the agent's
        assert looked_at >= DATAGRAMS, looked_at
        assert not select.select([stranger], [], [], 0)[0], "a stranger was answered"
        assert len(os.listdir(f"/proc/{agent.front()}/fd")) <= open_before + 2
        for one in (app, bystander):
            one.close_stdin()
        app.right(30)
        bystander.right(30)
        assert agent.log().count("session.open") == 2 and "session.resumed" not in agent.log(), agent.log()


def test_a_killed_worker_a_killed_sidecar_and_a_restarted_front():
    with light() as (agent, sidecar, way):
        app = App("sum", FOR_EVER, 4096, socket=sidecar.socket)
        wait_for(lambda: way.counts[True] > 300, 20, "frames go by UDP")
        kill(agent.front())
        before = way.counts[True]
        wait_for(lambda: way.counts[True] > before + 300, 20, "it goes on without the front")
        way.move()  # the next front knows its sessions
        before = way.counts[False]
        wait_for(lambda: way.counts[False] > before + 300, 20, "it goes on from another port")
        kill(agent.worker(app))
        wait_for(lambda: app.process.poll() is not None, 20, "the program sees the loss")


def taken_for_udp(sockets):
    """A port that somebody, one of SOCKETS, has for UDP and nobody for TCP."""
    while True:
        taken = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        taken.bind(("127.0.0.1", 0))
        with socket.socket() as tcp, contextlib.suppress(OSError):
            tcp.bind(taken.getsockname())
            return taken.getsockname()[1]


def test_what_is_wrong_is_said_in_one_sentence():
    def said(*flags):
        got = subprocess.run([AGENT, "--driver", "software", "--insecure", *flags], capture_output=True, text=True,
                             timeout=20, env=environment())
        assert got.returncode == 1, (got.returncode, got.stderr)
        return got.stderr

    with contextlib.ExitStack() as sockets:
        port = taken_for_udp(sockets)
        text = said("--address", "light://127.0.0.1", "--ports", f"{port},0,0")
        assert f"UDP port {port} on 127.0.0.1: another program has it; choose another port" in text, text
