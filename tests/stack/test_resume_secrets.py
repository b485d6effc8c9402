# SPDX-License-Identifier: Apache-2.0
"""Who may come back to a session: the client here is a hand-made one, which says each secret that it
was ever told, and others."""
import contextlib
import os
import socket

from peer import HELLO, SESSION_MAGIC, SESSION_VERSION, WELCOME, read_exact
from stack import NOT_PERMITTED, Agent, children, folder, kill, wait_for

COMMANDS, REPLIES, RESUME, END = 1, 2, 5, 6
FEATURE_RESUME = 1 << 1
GRACE_MS = 20_000
NOBODY = bytes(16)


class Client:
    """The sidecar's half of one session, without a frame."""

    def __init__(self, agent):
        self.agent, self.open = agent, []
        status, welcome = self.say("recv", COMMANDS, NOBODY, NOBODY)
        assert status == 0, status
        self.session, self.secret = welcome[4], welcome[5]
        assert welcome[9] == GRACE_MS, f"granted {welcome[9]} ms"
        self.join()

    def say(self, port, role, session, secret, counted=0):
        """(status, WELCOME)"""
        s = socket.create_connection(("127.0.0.1", self.agent.ports[port]), timeout=20)
        grace, first = (GRACE_MS if role == COMMANDS else 0), role == RESUME
        s.sendall(HELLO.pack(SESSION_MAGIC, SESSION_VERSION, role, FEATURE_RESUME, session, secret,
                             os.getpid(), os.getuid(), b"hand-made", b"ns/pod", b"", b"",
                             counted if first else 0, 0, grace))
        welcome = WELCOME.unpack(read_exact(s, WELCOME.size, 20))
        if welcome[2]:
            s.close()
        else:
            self.open.append(s)
        return welcome[2], welcome

    def join(self):
        status, _ = self.say("send", REPLIES, self.session, self.secret)
        assert status == 0, status

    def resume(self, secret, session=None):
        """The status, and the next secret."""
        status, welcome = self.say("recv", RESUME, session or self.session, secret)
        return status, welcome[5]

    def cut(self):
        while self.open:
            self.open.pop().close()


@contextlib.contextmanager
def one_session():
    with folder() as path:
        agent = Agent(path)
        client = Client(agent)
        wait_for(lambda: [one["state"] for one in agent.sessions()] == ["running"], 5, "it runs")
        client.cut()
        yield agent, client
        client.cut()
        agent.stop()


def test_the_next_secret_ends_the_one_before():
    with one_session() as (agent, client):
        first = client.secret
        status, lost = client.resume(first)
        assert status == 0, status
        client.cut()
        # The WELCOME may have been lost: the first still serves, and what was offered then does too.
        status, second = client.resume(first)
        assert status == 0 and second not in (first, lost), status
        client.secret = second
        client.join()
        client.cut()
        assert client.resume(first)[0] == NOT_PERMITTED, "an old secret"
        assert client.resume(lost)[0] == NOT_PERMITTED, "a secret that was offered and never shown"
        status, third = client.resume(second)
        assert status == 0 and third != second, status
        assert 'vcuda_agent_resumes_total{result="refused"} 2' in agent.http("/metrics"), agent.http("/metrics")


def test_nobody_else_comes_back():
    with one_session() as (agent, client):
        other = Client(agent)
        other.cut()
        changed = bytes([client.secret[0] ^ 1]) + client.secret[1:]
        for secret, session in ((NOBODY, None), (changed, None), (other.secret, None),
                                (client.secret, other.session), (client.secret, os.urandom(16))):
            status, _ = client.resume(secret, session)
            assert status == NOT_PERMITTED, f"status {status}"
        assert client.resume(client.secret)[0] == 0, "the right one was shut out"
        assert other.resume(other.secret)[0] == 0, "the right one was shut out"


def test_another_front_takes_the_same_secrets():
    with one_session() as (agent, client):
        first = client.secret
        status, client.secret = client.resume(first)
        assert status == 0, status
        client.join()
        client.cut()
        front = agent.front()
        kill(front)
        wait_for(lambda: children(agent.pid, "agent-front") not in ([], [front]), 5, "another front")
        assert client.resume(first)[0] == NOT_PERMITTED, "an old secret, at another front"
        assert client.resume(client.secret)[0] == 0


def test_who_gives_up_has_the_worker_end():
    with one_session() as (agent, client):
        status, _ = client.say("recv", END, client.session, client.secret)
        assert status == 0, status
        wait_for(lambda: not agent.sessions(), 5, "the session is over, long before its grace")
