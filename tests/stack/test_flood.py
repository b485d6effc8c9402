# SPDX-License-Identifier: Apache-2.0
"""A flood of connections from one address, plain and with TLS: clients of another address get in,
a session that runs keeps its pace, and the agent spends memory of its slots and nothing else."""
import contextlib
import os
import re
import socket
import statistics
import threading
import time

from stack import Agent, App, Sidecar, descendants, folder, wait_for
from test_tls import Authority, agent_flags, client_hello, context, packed, resident, say_hello

RATE, ROUNDS = 2000, 400
FLOODER, OTHER = "127.0.0.3", "127.0.0.2"  # sidecars come from 127.0.0.1
SLOTS_KIB = 16 << 10


class Flood:
    """RATE connections a second from FLOODER that say DATA and stay, until it is stopped."""

    def __init__(self, port, data):
        self.port, self.data, self.made, self.stopped = port, data, 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        held, began = [], time.monotonic()
        while not self.stopped.is_set():
            due = (time.monotonic() - began) * RATE
            if self.made >= due:
                time.sleep(0.001)
                continue
            wire = socket.socket()
            wire.setblocking(False)
            wire.bind((FLOODER, 0))
            wire.connect_ex(("127.0.0.1", self.port))
            held.append(wire)
            self.made += 1
            if len(held) > 200:
                first = held.pop(0)
                with contextlib.suppress(OSError):
                    first.send(self.data)
                first.close()
        for wire in held:
            wire.close()

    def stop(self):
        self.stopped.set()
        self.thread.join()


def greet(port, authority):
    """How long a client of OTHER waits until the agent has answered its PROBE."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 10, source_address=(OTHER, 0)) as raw:
        wire = context(authority.file).wrap_socket(raw, server_hostname="127.0.0.1") if authority else raw
        assert say_hello(wire, b"", 3) == 0
        wire.close()
    return time.monotonic() - began


def pace(sidecar):
    """Of launches that are waited for: the middle time, and the 99th of a hundred."""
    app = App("pace", ROUNDS, 4096, socket=sidecar.socket)
    got = app.line(r"half in ([\d.]+), all but one in a hundred in ([\d.]+)", 60)
    app.right()
    return float(got[1]), float(got[2])


def flooded(tls):
    with folder() as path:
        authority = Authority(path) if tls else None
        agent = Agent(path, *(agent_flags(*authority.issue("agent")) if tls else ()), "--warm", "2")
        port = int(agent.address.rsplit(":", 1)[1])
        address = f"tls://{agent.address}" if tls else agent.address
        sidecar = Sidecar(path, address, *(("--tls-ca", authority.file) if tls else ()))
        alone = pace(sidecar)
        greet(port, authority)
        front, before, workers = agent.front(), resident(agent.front()), len(descendants(agent.pid))
        starts = re.search(r"worker_starts_total (\d+)", agent.http("/metrics"))[1]
        data = packed(*client_hello(authority.file)) if tls else b"\x00" * 64
        flood = Flood(port, data)
        try:
            wait_for(lambda: flood.made > RATE / 8, 60, "a flood")
            waits = [greet(port, authority) for _ in range(20)]
            assert len(descendants(agent.pid)) <= workers
            assert re.search(r"worker_starts_total (\d+)", agent.http("/metrics"))[1] == starts
            beside = pace(sidecar)
        finally:
            flood.stop()
        grown = resident(front) - before
        # Each was answered, none later than the 10 s of greet().
        assert grown < SLOTS_KIB, grown
        if os.environ.get("VCUDA_TEST_BARS"):
            assert statistics.median(waits) < 2, waits
            assert beside[0] < 3 * alone[0] + 1e-3, (alone, beside)


def test_plain():
    flooded(False)


def test_tls():
    flooded(True)
