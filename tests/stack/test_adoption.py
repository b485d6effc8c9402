# SPDX-License-Identifier: Apache-2.0
"""What a program may bring to a sidecar that is to take its session over: the client here is a hand-made
one, which says what it likes of its segment."""
import contextlib
import fcntl
import mmap
import os
import socket
import struct

from peer import ANSWER, CHANNEL_MAGIC, CHANNEL_VERSION, REQUEST
from stack import Skip, stack, wait_for

ATTACH, HEARTBEAT, ADOPT, HOLD = 1, 5, 6, 7
NOT_PERMITTED, NOT_READY = 800, 802
SIZE, RING_SIZE, STATE, GRACE, UID, SESSION, SECRETS, ADDRESS = 8, 48, 512, 960, 964, 976, 1000, 1056
CHANNEL_LOST = 2
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Client:
    """A program's half of one channel, without a frame."""

    def __init__(self, s):
        self.path, self.sockets = s.sidecar.socket, []
        status, fds, answer = self.say(ATTACH)
        assert status == 0 and answer[7] & 1, answer
        self.size = answer[6]
        self.segment = fds[1]
        self.page = mmap.mmap(self.segment, self.size)

    def connect(self):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.settimeout(10)
        one.connect(self.path)
        self.sockets.append(one)
        return one

    def say(self, op, fd=None, size=0, held=0, holds=()):
        """(status, descriptors, answer)"""
        one = self.connect()

        def tell(op, number, size, fd):
            packed = REQUEST.pack(CHANNEL_MAGIC, CHANNEL_VERSION, op, number, size, 1, os.getpid(), 0, b"hand-made")
            socket.send_fds(one, [packed], [] if fd is None else [fd])

        tell(op, held, size, fd)
        for number, more, bytes_ in holds:
            tell(HOLD, number, bytes_, more)
        while True:
            data, fds, _, _ = socket.recv_fds(one, ANSWER.size, 4)
            answer = ANSWER.unpack(data)
            if answer[2] != HEARTBEAT:
                return answer[3], fds, answer

    def adopt(self, fd=None, size=None, **more):
        return self.say(ADOPT, self.segment if fd is None else fd, self.size if size is None else size, **more)

    @contextlib.contextmanager
    def forge(self, at, data):
        """The page says DATA for a while."""
        before = self.page[at:at + len(data)]
        self.page[at:at + len(data)] = data
        yield
        self.page[at:at + len(data)] = before

    def state(self):
        return struct.unpack_from("<I", self.page, STATE)[0]

    def close(self):
        for one in self.sockets:
            one.close()


@contextlib.contextmanager
def client(**more):
    with stack(**more) as s:
        one = Client(s)
        yield s, one
        one.close()


def refused(answer, word, status=NOT_PERMITTED):
    text = answer[2][10].split(b"\0")[0].decode()
    assert answer[0] == status and word in text, f"status {answer[0]}: {text}"


def memory(size, seals=SEALS, text=b""):
    fd = os.memfd_create("hand-made", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    os.pwrite(fd, text, 0)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def test_the_right_one_is_taken():
    with client() as (s, one):
        status, fds, _ = one.adopt()
        assert status == 0 and len(fds) == 1, status
        wait_for(lambda: "event=channel.resumed" in s.sidecar.log(), 10, "the session goes on")


def test_files_that_no_sidecar_made():
    with client() as (s, one):
        copy = bytes(one.page)
        on_disk = os.open(os.path.dirname(os.path.abspath(__file__)), os.O_TMPFILE | os.O_RDWR)
        os.ftruncate(on_disk, one.size)
        refused(one.say(ADOPT, None, one.size), "no descriptor")
        refused(one.adopt(one.sockets[0].fileno()), "not a file of memory")
        refused(one.adopt(on_disk), "not a file of memory")
        refused(one.adopt(size=one.size - 4096), "bytes")
        refused(one.adopt(size=one.size + 4096), "bytes")
        refused(one.adopt(memory(one.size, 0, copy)), "seals")
        refused(one.adopt(memory(one.size, fcntl.F_SEAL_SHRINK, copy)), "seals")
        refused(one.adopt(memory(one.size)), "version")
        refused(one.adopt(memory(4096, text=copy[:4096]), 4096), "layout")
        assert one.state() != CHANNEL_LOST, "the channel that it had is gone"


def test_another_users_file():
    if os.geteuid():
        raise Skip("needs to be root")
    with client() as (s, one):
        copy = bytes(one.page)
        os.seteuid(65534)
        try:
            fd = memory(one.size, text=copy)
        finally:
            os.seteuid(0)
        refused(one.adopt(fd), "made by user 65534")


def test_forged_pages():
    with client() as (s, one):
        for at, data, word in ((GRACE, bytes(4), "cannot be resumed"), (UID, struct.pack("<I", 12345), "of user 12345"),
                               (RING_SIZE, struct.pack("<Q", 1 << 40), "layout"), (RING_SIZE, bytes(8), "layout"),
                               (SIZE, struct.pack("<Q", 1 << 40), "layout"), (16, struct.pack("<Q", 64), "layout"),
                               (256, struct.pack("<Q", 5), "counts")):
            with one.forge(at, data):
                refused(one.adopt(), word)
        assert one.adopt()[0] == 0, "the right one was refused"


def test_no_agent_but_the_configured_one():
    """Else the token would go wherever a program says."""
    with client() as (s, one), socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0.5)
        with one.forge(ADDRESS, f"127.0.0.1:{stranger.getsockname()[1]}".encode() + b"\0"):
            refused(one.adopt(), "none of", NOT_READY)
        with contextlib.suppress(TimeoutError):
            stranger.accept()
            raise AssertionError("the sidecar came")


def test_forged_pinned_memory():
    with client() as (s, one):
        piece = memory(8192)
        refused(one.adopt(held=1, holds=[(0, piece, 8192)]), "as number 0")
        refused(one.adopt(held=1, holds=[(5000, piece, 8192)]), "as number 5000")
        refused(one.adopt(held=2, holds=[(1, piece, 8192), (1, piece, 8192)]), "as number 1")
        refused(one.adopt(held=1, holds=[(1, piece, 4096)]), "bytes")
        refused(one.adopt(held=5000), "5000 pinned")
        refused(one.adopt(held=1), "less pinned memory")
        assert one.adopt(held=1, holds=[(7, piece, 8192)])[0] == 0, "the right one was refused"


def test_a_secret_or_session_that_is_none():
    for at in (SECRETS, SESSION):
        with client() as (s, one):
            with one.forge(at, os.urandom(16)):
                assert one.adopt()[0] == 0
                wait_for(lambda: one.state() == CHANNEL_LOST, 10, "the agent refuses")
            assert [each["state"] for each in s.agent.sessions()] == ["running"], s.agent.sessions()
