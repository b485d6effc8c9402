# SPDX-License-Identifier: Apache-2.0
"""The sidecar's half of a session by hand, so that tests can lie in any field of it to a real agent."""
import contextlib
import socket
import time

from peer import BYE, CALL, HELLO, POST, SESSION_MAGIC, SESSION_VERSION, WELCOME, frame, read_exact

COMMANDS, REPLIES, PROBE, STRIPE, RESUME, END, RENEW = range(1, 8)
TAKEN, ALL = 35, 2 ** 64 - 1
RESUMES, STRIPES = 1 << 1, 1 << 2
NOBODY = bytes(16)


def hello(role=COMMANDS, magic=SESSION_MAGIC, version=SESSION_VERSION, features=RESUMES | STRIPES, session=NOBODY,
          secret=NOBODY, pid=1, uid=1, program=b"hostile", pod=b"ns/hostile", pod_uid=b"", token=b"", memory=0,
          gpus=0, grace=2000):
    return HELLO.pack(magic, version, role, features, session, secret, pid, uid, program, pod, pod_uid, token,
                      memory, gpus, grace)


class Client:
    """The sidecar's half, by hand."""

    def __init__(self, rig):
        self.rig, self.open, self.seq, self.secret = rig, [], 0, None

    def dial(self, port="recv"):
        s = socket.create_connection(("127.0.0.1", self.rig.agent.ports[port]), timeout=10)
        self.open.append(s)
        return s

    def say(self, data, port="recv"):
        """A connection that said it."""
        s = self.dial(port)
        with contextlib.suppress(OSError):
            s.sendall(data)
        return s

    def welcome(self, s):
        """WELCOME, or None where the agent closed."""
        try:
            return WELCOME.unpack(read_exact(s, WELCOME.size, 10))
        except (OSError, EOFError):
            return None

    def refused(self, data, port="recv"):
        got = self.welcome(self.say(data, port))
        assert got is None or got[2], "the agent let it in"

    def begin(self, **more):
        self.commands = self.say(hello(**more))
        got = self.welcome(self.commands)
        assert got and not got[2], f"not let in: {got}"
        self.session, self.secret = got[4], got[5]
        self.replies = self.say(hello(REPLIES, session=self.session, secret=self.secret), "send")
        got = self.welcome(self.replies)
        assert got and not got[2], f"no second connection: {got}"
        return self

    def post(self, kind=POST, body=b"", payload=b"", seq=None, **more):
        """One frame; numbered where its kind is."""
        if seq is None:
            self.seq += kind in (POST, CALL, BYE)
            seq = self.seq if kind in (POST, CALL, BYE) else 0
        self.raw(frame(kind, body, payload, seq=seq, **more))

    def raw(self, data):
        with contextlib.suppress(OSError):
            self.commands.sendall(data)

    def over(self, seconds=10):
        """The worker said LOST, or closed."""
        end = time.monotonic() + seconds
        self.replies.settimeout(1)
        while time.monotonic() < end:
            try:
                if not self.replies.recv(1 << 16):
                    return
            except socket.timeout:
                continue
            except OSError:
                return
        raise AssertionError("the session goes on")

    def leave(self):
        """In order: the agent is not to wait for its grace's end."""
        if self.secret:
            self.welcome(self.say(hello(END, session=self.session, secret=self.secret)))

    def close(self):
        for s in self.open:
            s.close()
