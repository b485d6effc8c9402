# SPDX-License-Identifier: Apache-2.0
"""A hand-made agent and a hand-made app that speak the layouts of protocol/wire/*.h, so that tests can
lie in any field.  Standard library only; numbers are copied from the headers on purpose: a layout
that moves breaks these tests."""

import contextlib
import ctypes
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

BUILD = os.environ.get("BUILD", "build")

FRAME = struct.Struct("<IHBBQIHHIHH")  # length op kind flags seq body tag context status magic deferred
FRAME_MAGIC = 0xCDA1
POST, CALL, REPLY, DATA, UPDATE, UPCALL, ACK, LOST, PAD, PING, PONG, BYE = (
    1, 2, 16, 17, 18, 19, 20, 21, 31, 32, 33, 34)
BULK = 1
SESSION_VERSION = 4
HELLO = struct.Struct("<QIIQ16s16sII64s128s40s256sQII")
WELCOME = struct.Struct("<QIIQ16s16sHBBIQ192s")
SESSION_MAGIC = 0x4144554356
REQUEST = struct.Struct("<IIIIQQiI64s")
ANSWER = struct.Struct("<IIIIIIQQ64s128s256s")
CHANNEL_MAGIC = 0x6C6E6863
ATTACH, PIN, UNPIN, HEARTBEAT, RESERVE = 1, 3, 4, 5, 9
FEATURE_RESERVE = 1 << 10
CHANNEL_VERSION = 2
SLOT = 2048
# struct channel_page: cache lines of their own
TAIL, UPCALL_HEAD, HEAD, IDLE, UPCALL_TAIL, PROGRESS, STATE, WANT = (
    128, 192, 256, 320, 384, 448, 512, 832)
LOST_STATUS, LOST_TEXT = STATE + 4, STATE + 8
WIRE = 896


def frame(kind, body=b"", payload=b"", op=0, flags=0, seq=0, tag=0, status=0, magic=FRAME_MAGIC,
          length=None, body_length=None):
    header = FRAME.pack(len(body) + len(payload) if length is None else length, op, kind, flags,
                        seq, len(body) if body_length is None else body_length, tag, 0, status,
                        magic, 0)
    return header + body + payload


def wait_for(what, seconds=5.0, message="in time"):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("not " + message)
        time.sleep(0.002)


def read_exact(sock, n, seconds=5.0):
    sock.settimeout(seconds)
    data = bytearray()
    while len(data) < n:
        got = sock.recv(min(n - len(data), 1 << 20))
        if not got:
            raise EOFError
        data += got
    return bytes(data)


class Session:
    """The agent's end of one session. `seq` acknowledges what was read, as a worker does."""

    def __init__(self, commands, hello):
        self.commands, self.replies, self.hello = commands, None, hello
        self.seq = 0
        self.ready = threading.Event()

    def read(self, seconds=5.0):
        """One frame: (header tuple as dict, body, payload). PINGs are answered on the way."""
        while True:
            f = FRAME.unpack(read_exact(self.commands, 32, seconds))
            names = "length op kind flags seq body tag context status magic deferred".split()
            header = dict(zip(names, f))
            assert header["magic"] == FRAME_MAGIC, header
            rest = read_exact(self.commands, header["length"], seconds)
            if header["kind"] == PING:
                self.send(frame(PONG, seq=self.seq))
                continue
            if header["seq"]:
                assert header["seq"] == self.seq + 1, header
                self.seq = header["seq"]
            return header, rest[:header["body"]], rest[header["body"]:]

    def send(self, data):
        self.replies.settimeout(5)
        self.replies.sendall(data)

    def reply(self, tag, body=b"", payload=b"", status=0):
        self.send(frame(REPLY, body, payload, seq=self.seq, tag=tag, status=status))

    def ack(self):
        self.send(frame(ACK, seq=self.seq))

    def closed(self, seconds=5.0):
        """The sidecar closed the link."""
        self.commands.settimeout(seconds)
        try:
            while True:
                if not self.commands.recv(65536):
                    return True
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def close(self):
        for s in (self.commands, self.replies):
            if s:
                s.close()


class Agent:
    """Listens on two ports and grants sessions; `welcome` may change or refuse."""

    def __init__(self, welcome=None):
        self.welcome = welcome
        self.sessions, self.waiting = [], {}
        self.receive, self.send = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.port = self.receive.getsockname()[1]
        self.new = threading.Semaphore(0)
        self.taken = 0
        for s in (self.receive, self.send):
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, listener):
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.greet, args=(s, listener is self.send),
                             daemon=True).start()

    def greet(self, s, replies):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            hello = HELLO.unpack(read_exact(s, HELLO.size))
        except (EOFError, OSError):
            s.close()
            return
        fields = dict(magic=SESSION_MAGIC, version=SESSION_VERSION, status=0, features=0, session=os.urandom(16),
                      secret=os.urandom(16), port=self.send.getsockname()[1], grace=0, text=b"",
                      raw=None)
        if replies:
            fields["session"], fields["secret"] = hello[4], hello[5]
        if self.welcome:
            self.welcome(fields, hello)
        if fields["raw"] is not None:
            s.sendall(fields["raw"])
            s.close()
            return
        data = WELCOME.pack(fields["magic"], fields["version"], fields["status"],
                            fields["features"], fields["session"], fields["secret"],
                            fields["port"], 0, 0, fields["grace"], 0, fields["text"])
        if fields["status"] or hello[2] == 3 or not fields["port"]:
            s.sendall(data)
            s.close()
        elif replies:
            session = self.waiting.pop(hello[4])
            session.replies = s
            s.sendall(data)
            self.sessions.append(session)
            self.new.release()
        else:
            self.waiting[fields["session"]] = Session(s, hello)
            s.sendall(data)

    def session(self, seconds=5.0):
        assert self.new.acquire(timeout=seconds), "no session came"
        self.taken += 1
        return self.sessions[self.taken - 1]

    def close(self):
        for s in (self.receive, self.send):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)  # else accept() keeps it open
            s.close()
        for s in self.sessions:
            s.close()


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__("%d %s" % (status, text))
        self.status, self.text = status, text


class App:
    """The app's end of a channel, as the shim does it."""

    def __init__(self, path, program=b"toy", version=CHANNEL_VERSION, features=0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        self.socket.connect(path)
        try:
            answer, fds = self.ask(ATTACH, program=program, version=version, features=features)
        except BaseException:
            self.socket.close()
            raise
        self.doorbell = fds[0]
        self.mode, self.session = answer[4], answer[8][:32].decode()
        self.memory = self.map(answer, fds[1:])
        self.extra = {}
        fields = struct.unpack_from("<IIQQQQQQQQQQ", self.memory, 0)
        (_, _, self.size, self.slots, self.counters, self.upcalls, self.ring, self.ring_size,
         self.arena, self.arena_size, self.bounce, self.bounce_size) = fields
        self.tail, self.seq = 0, 0

    def ask(self, op, segment=0, size=0, program=b"", version=CHANNEL_VERSION, features=0):
        self.tell(op, segment, size, program, version, features)
        answer = None
        while not answer or answer[2] == HEARTBEAT:
            data, fds, _, _ = socket.recv_fds(self.socket, ANSWER.size, 4)
            if not data:
                raise EOFError
            answer = ANSWER.unpack(data)
            if answer[2] == HEARTBEAT:
                self.heartbeat = mmap.mmap(fds[0], 4096, prot=mmap.PROT_READ)
                self.heartbeat_fd = fds[0]
        if answer[3]:
            raise Refused(answer[3], answer[10].rstrip(b"\0").decode())
        return answer, fds

    def tell(self, op, segment=0, size=0, program=b"", version=CHANNEL_VERSION, features=0):
        self.socket.send(REQUEST.pack(CHANNEL_MAGIC, version, op, segment, size, features, os.getpid(), 0,
                                      program))

    def map(self, answer, fds):
        self.fd = fds[0]
        return mmap.mmap(self.fd, answer[6])

    def pin(self, size):
        answer, fds = self.ask(PIN, size=size)
        self.extra[answer[5]] = self.map(answer, fds)
        return answer[5]

    def u32(self, at):
        return struct.unpack_from("<I", self.memory, at)[0]

    # In one access, as the shim's atomics: struct would clear the bytes and then write each.
    def u64(self, at):
        return ctypes.c_uint64.from_buffer(self.memory, at).value

    def publish(self, tail=None):
        word = ctypes.c_uint64.from_buffer(self.memory, TAIL)
        word.value = (self.tail if tail is None else tail) % 2**64
        if self.u32(IDLE):
            os.eventfd_write(self.doorbell, 1)

    def put(self, kind, body=b"", tag=0, bulk=None, op=7, publish=True, **wrong):
        """One entry: bulk = (segment, offset, length[, claimed payload])."""
        self.seq += 1
        flags = wrong.pop("flags", BULK if bulk else 0)
        payload = (bulk[3] if len(bulk) > 3 else bulk[2]) if bulk else 0
        wrong.setdefault("length", len(body) + payload)
        wrong.setdefault("seq", self.seq)
        data = frame(kind, body, op=op, flags=flags, tag=tag, **wrong)
        if bulk:
            data = data[:32] + struct.pack("<IIQ", bulk[0], bulk[2], bulk[1]) + data[32:]
        data += bytes(-len(data) % 16)
        self.raw(data, publish)

    def raw(self, data, publish=True):
        at = self.tail & (self.ring_size - 1)
        if at + len(data) > self.ring_size:
            if self.ring_size - at >= 32:
                self.memory[self.ring + at:self.ring + at + 32] = frame(PAD)
            self.tail += self.ring_size - at
            at = 0
        wait_for(lambda: self.tail + len(data) - self.u64(HEAD) <= self.ring_size
                 or self.lost(), message="room in the ring")
        self.memory[self.ring + at:self.ring + at + len(data)] = data
        self.tail += len(data)
        if publish:
            self.publish()

    def call(self, tag, body=b"", **more):
        at = self.slots + tag * SLOT
        struct.pack_into("<I", self.memory, at, 0)
        self.put(CALL, body, tag=tag, **more)

    def answer(self, tag, seconds=5.0):
        """(status, data, payload bytes)"""
        at = self.slots + tag * SLOT
        wait_for(lambda: self.u32(at) == 1, seconds, "answered")
        status, _, body, payload = struct.unpack_from("<IIII", self.memory, at + 8)
        return status, self.memory[at + 32:at + 32 + body], payload

    def lost(self):
        """None, or (status, text)."""
        if self.u32(STATE) != 2:
            return None
        return self.u32(LOST_STATUS), self.memory[LOST_TEXT:LOST_TEXT + 256].split(b"\0")[0].decode()

    def wait_lost(self, seconds=5.0):
        wait_for(self.lost, seconds, "lost")
        return self.lost()

    def close(self):
        self.socket.close()
        os.close(self.doorbell)
        os.close(self.heartbeat_fd)
        os.close(self.fd)


class Sidecar:
    """build/bin/vcuda-client in a folder of its own."""

    def __init__(self, agent=None, ipc="pod", *flags, env=None, wait=True):
        self.folder = tempfile.mkdtemp(prefix="vcuda-test-")
        self.path = os.path.join(self.folder, "run", "vcuda.sock")
        self.log = open(os.path.join(self.folder, "log"), "a")
        command = [os.path.join(BUILD, "bin", "vcuda-client"), "run", "--socket", self.path,
                   "--ipc", ipc, "--label", "test%d" % os.getpid()]
        if os.geteuid():  # else /proc/PID is root's
            command += ["--dumpable", "1"]
        if agent:
            command += ["--agent", agent if isinstance(agent, str) else "127.0.0.1:%d" % agent.port]
        self.process = subprocess.Popen(command + list(flags), stderr=self.log,
                                        env=dict(os.environ, **(env or {})))
        if wait:
            wait_for(lambda: os.path.exists(self.path) or self.process.poll() is not None)

    def text(self):
        with open(self.log.name) as f:
            return f.read()

    def resident(self):
        with open("/proc/%d/smaps_rollup" % self.process.pid) as f:
            return {l.split(":")[0]: int(l.split()[1]) for l in f if l.split()[-1] == "kB"}

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def segments(self):
        """Of each piece of its shared memory: bytes, and how many of them have memory."""
        found = []
        for name in os.listdir("/proc/%d/fd" % self.process.pid):
            path = "/proc/%d/fd/%s" % (self.process.pid, name)
            with contextlib.suppress(OSError):
                memory = os.stat(path)
                if os.readlink(path).startswith("/memfd:"):
                    found.append((memory.st_size, memory.st_blocks * 512))
        return found

    def steady(self):
        """How many it has once it has begun: the same number for a tenth of a second."""
        last, same = -1, 0
        while same < 5:
            now = self.descriptors()
            same, last = (same + 1 if now == last else 0), now
            time.sleep(0.02)
        return last

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        text = self.text()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        for word in ("Sanitizer", "runtime error"):
            assert word not in text, text


@contextlib.contextmanager
def stage(ipc="pod", *flags, welcome=None):
    """An agent, a sidecar and one attached app: (agent, sidecar, app, session)."""
    agent = Agent(welcome)
    sidecar = Sidecar(agent, ipc, *flags)
    app = None
    try:
        app = App(sidecar.path)
        yield agent, sidecar, app, agent.session()
        assert sidecar.process.poll() is None, "the sidecar died: " + sidecar.text()
    finally:
        if app:
            app.close()
        agent.close()
        sidecar.stop()
