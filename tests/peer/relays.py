# SPDX-License-Identifier: Apache-2.0
"""What the sidecar carries between two agents: a program that lies about it, and agents that refuse, are silent or go."""

import contextlib
import os
import threading
import time
import unittest

from peer import *

RELAY, PEER, NOT_READY = 8, 8, 802
AGENTS = 2  # a feature's bit: the program attaches once for each agent
MOST = 72  # relays of a session


class Part(App):
    """One of the channels of a program that has several agents."""

    def __init__(self, path, number):
        self.number = number
        super().__init__(path)

    def tell(self, op, segment=0, size=0, program=b"", version=CHANNEL_VERSION, features=0):
        if op == ATTACH:
            segment, features = self.number, features | AGENTS
        super().tell(op, segment, size, program, version, features)

    def relay(self, session, *tickets):
        return self.ask(RELAY, program=session + b"".join(tickets))


@contextlib.contextmanager
def pair(welcome=None):
    """Two agents, a sidecar that has both, and a program's channel and session with each."""
    with contextlib.ExitStack() as ends:
        agents = [Agent(welcome), Agent()]
        for agent in agents:
            ends.callback(agent.close)
        sidecar = Sidecar("+".join(f"127.0.0.1:{agent.port}" for agent in agents))
        ends.callback(sidecar.stop)
        parts, sessions = [], []
        for number, agent in enumerate(agents):
            parts.append(Part(sidecar.path, number))
            ends.callback(parts[-1].close)
            sessions.append(agent.session())
        yield agents, sidecar, parts, sessions
        assert sidecar.process.poll() is None, "the sidecar died: " + sidecar.text()


def names(parts):
    """The sessions of the channels, as the agents named them."""
    return [bytes.fromhex(part.session) for part in parts]


def peer_of(agent):
    """The connection in the role PEER that came to it, with its HELLO."""
    found = []

    def look():
        found[:] = [one for one in list(agent.waiting.values()) if one.hello[2] == PEER]
        return found
    wait_for(look, message="a PEER")
    return found[-1].commands, found[-1].hello


class Relays(unittest.TestCase):
    def alive(self, parts, sessions):
        for part, session in zip(parts, sessions):
            part.call(0, b"still here?")
            got = b""
            while not got:  # a sign of life has none
                got = session.read()[1]
            self.assertEqual(got, b"still here?")
            session.reply(0, b"yes")
            self.assertEqual(part.answer(0), (0, b"yes", 0))
            self.assertIsNone(part.lost())

    def refused(self, text, part, *words):
        with self.assertRaises(Refused) as caught:
            part.relay(*words)
        self.assertEqual(caught.exception.status, NOT_READY)
        self.assertIn(text, caught.exception.text)

    def test_bytes_cross_both_ways(self):
        with pair() as (agents, sidecar, parts, sessions):
            here, there = names(parts)
            one, two = os.urandom(16), os.urandom(16)
            parts[0].relay(there, one, two)
            wires = []
            for agent, session, source, ticket in (agents[0], here, there, one), (agents[1], there, here, two):
                wire, hello = peer_of(agent)
                self.assertEqual((hello[4], hello[5], hello[10][:16]), (session, ticket, source))
                self.assertEqual(hello[11].strip(b"\0"), b"", "a token went to a peer")
                wires.append(wire)
            for source, target in wires, wires[::-1]:
                data = os.urandom(16 << 20)  # more than all buffers on the way have room for
                writer = threading.Thread(target=source.sendall, args=(data,), daemon=True)
                writer.start()
                time.sleep(0.2)  # the other end takes nothing: what comes behind it waits
                self.assertEqual(read_exact(target, len(data), 20), data)
                writer.join(20)
            self.alive(parts, sessions)
            wires[0].close()  # one end goes: so does the other
            wires[1].settimeout(10)
            self.assertEqual(wires[1].recv(1), b"")
            wait_for(lambda: "relay.closed" in sidecar.text(), message="logged")
            self.assertEqual(sidecar.text().count("neither of these agents may dial the other"), 1)
            self.alive(parts, sessions)

    def test_sessions_that_are_not_the_programs(self):
        with pair() as (agents, sidecar, parts, sessions):
            here, there = names(parts)
            for session in bytes(16), os.urandom(16), here:
                self.refused("none of this process'", parts[0], session, bytes(16), bytes(16))
            self.alive(parts, sessions)
            self.assertFalse([one for agent in agents for one in agent.waiting.values() if one.hello[2] == PEER])

    def test_an_agent_that_refuses_the_ticket(self):
        def welcome(fields, hello):
            if hello[2] == PEER:
                fields.update(status=800, text=b"the ticket is nobody's")
        with pair(welcome) as (_, _, parts, sessions):
            for turn in range(3):
                self.refused("the ticket is nobody's", parts[turn % 2], names(parts)[1 - turn % 2], bytes(16), bytes(16))
            self.alive(parts, sessions)

    def test_an_agent_that_says_nothing(self):
        """The program hears within the deadline that there is no relay; its calls go on meanwhile."""
        silent = threading.Event()

        def welcome(fields, hello):
            if hello[2] == PEER:
                silent.wait(20)
        with pair(welcome) as (_, _, parts, sessions):
            asked = threading.Thread(target=self.refused, args=("", parts[1], names(parts)[0], bytes(16), bytes(16)))
            asked.start()
            self.alive(parts, sessions)
            self.assertTrue(asked.is_alive())
            asked.join(15)
            silent.set()
            self.assertFalse(asked.is_alive())
            self.alive(parts, sessions)

    def test_a_session_has_so_many_and_no_more(self):
        with pair() as (_, sidecar, parts, sessions):
            there = names(parts)[1]
            for _ in range(MOST):
                parts[0].relay(there, os.urandom(16), os.urandom(16))
            self.refused("too many relays", parts[0], there, bytes(16), bytes(16))
            self.alive(parts, sessions)
            parts[1].relay(names(parts)[0], os.urandom(16), os.urandom(16))  # the other session has its own


if __name__ == "__main__":
    unittest.main()
