# SPDX-License-Identifier: Apache-2.0
"""A network between sidecar and agent that can be broken: 127.0.0.2 stands for the agent, on its own
ports, since it names the port of the replies itself.

One thread carries all connections and is the only one that closes them: where one thread closes what
another is about to read, that one reads from whatever connection gets the number next."""
import collections
import contextlib
import queue
import random
import select
import socket
import struct
import threading
import time

from peer import FRAME, FRAME_MAGIC, HELLO, WELCOME

HOST = "127.0.0.2"
HARD = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets
PIECE = 1 << 18                 # bytes carried at once
QUEUE = 1 << 20                 # bytes on their way in one direction
BULK = 1 << 16                  # a frame from that size on is bulk
STRIPE, STRIPES = 4, 0x30       # a HELLO's role; the flags of a frame whose payload is elsewhere


def listen(port):
    """At HOST; another test may have that number there, for a moment."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            return socket.create_server((HOST, port), backlog=256)
        time.sleep(0.1)
    return socket.create_server((HOST, port), backlog=256)


class Frames:
    """Follows the frames of one direction, so that a cut comes where it is wanted: `frame`, between two;
    `inside`, in a header; `bulk`, in a large payload; `welcome`, in place of the agent's last answer before
    there are frames (LAST)."""

    def __init__(self, greeting, last=False):
        self.greeting, self.last, self.seen = greeting, last, bytearray()
        self.header, self.left, self.plain = bytearray(), 0, False

    def cut_at(self, data, where, rng):
        """The offset in DATA where the cut comes, or None; then all of DATA was followed."""
        at = 0
        while at < len(data):
            rest = len(data) - at
            if len(self.seen) < self.greeting:
                if where == "welcome" and self.last:
                    return at
                step = min(rest, self.greeting - len(self.seen))
                self.seen += data[at:at + step]
                if len(self.seen) == self.greeting == HELLO.size:
                    self.plain = HELLO.unpack(self.seen)[2] == STRIPE
            elif self.plain:
                return at + rng.randrange(rest) if where == "bulk" else None
            elif self.left:
                if where == "bulk" and self.left > BULK:
                    return at + rng.randrange(min(rest, self.left))
                step = min(rest, self.left)
                self.left -= step
            else:
                if not self.header and where == "frame":
                    return at
                if where == "inside" and not self.header:
                    return at + min(rest, rng.randrange(1, FRAME.size))
                step = min(rest, FRAME.size - len(self.header))
                self.header += data[at:at + step]
                if len(self.header) == FRAME.size:
                    length, _, _, flags, _, body, _, _, _, magic, _ = FRAME.unpack(self.header)
                    self.left = body if flags & STRIPES else length
                    self.plain = magic != FRAME_MAGIC
                    self.header.clear()
            at += step
        return None


class Flow:
    """One direction of a link."""

    def __init__(self, source, target, greeting, last=False):
        self.source, self.target, self.frames = source, target, Frames(greeting, last)
        self.pieces, self.bytes, self.eof, self.ended = collections.deque(), 0, False, False
        self.next = 0  # when the next piece may be read: of a slow link


class Proxy:
    """All attributes may be set at any time."""

    def __init__(self, agent, seed=0):
        self.dark = False  # what is accepted is cut at once
        self.hole = False  # nothing is carried, and nobody is told
        self.rate = 0      # bytes per second of each direction of a link, 0: as fast as it goes
        self.jitter = 0.0  # s that a piece waits at most; connections overtake one another
        self.cuts, self.links, self.rng = 0, set(), random.Random(seed)
        self.where = None  # the cut that is wanted: see cut_in
        self.orders, self.over, self.listeners = queue.SimpleQueue(), False, {}
        self.wake, self.waker = socket.socketpair()
        self.last = agent.ports["send"]
        for port in (agent.ports["recv"], agent.ports["send"]):
            listener = listen(port)
            self.listeners[listener.fileno()] = (listener, port)
        self.address = f"{HOST}:{agent.ports['recv']}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    # --- what tests call ---

    def order(self, what):
        done = threading.Event()
        self.orders.put((what, done))
        self.waker.send(b"x")
        assert done.wait(30) or not self.thread.is_alive(), "the proxy does not answer"

    def cut(self):
        """All connections, reset in the middle of whatever they carry."""
        self.order(self.cut_all)

    def cut_in(self, where, seconds=1.0):
        """As cut(), as soon as a frame is WHERE a class Frames says, or after SECONDS."""
        self.where, before = where, self.cuts
        end = time.monotonic() + seconds
        while self.cuts == before and time.monotonic() < end:
            time.sleep(0.002)
        if self.cuts == before:
            self.where = None
            self.cut()

    def close(self):
        def end():
            self.over = True
            self.cut_all()
            for listener, _ in self.listeners.values():
                listener.close()
        self.order(end)
        self.thread.join(10)
        self.wake.close()
        self.waker.close()

    # --- the thread ---

    def cut_all(self):
        self.where = None
        self.cuts += bool(self.links)
        for link in list(self.links):
            self.drop(link)

    def drop(self, link):
        self.links.discard(link)
        for flow in link:
            with contextlib.suppress(OSError):
                flow.source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
            flow.source.close()

    def accept(self, listener, port):
        with contextlib.suppress(OSError):
            near, _ = listener.accept()
            if self.dark:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
                near.close()
                return
            try:
                far = socket.create_connection(("127.0.0.1", port), timeout=5)
            except ConnectionRefusedError:  # the agent is gone, and so is this port
                near.close()
                del self.listeners[listener.fileno()]
                listener.close()
                return
            except OSError:
                near.close()
                return
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                one.setblocking(False)
            self.links.add((Flow(near, far, HELLO.size), Flow(far, near, WELCOME.size, port == self.last)))

    def may_read(self, flow, now):
        return not (flow.eof or self.hole or flow.bytes >= QUEUE or flow.next > now)

    def may_write(self, flow, now):
        return bool(flow.pieces) and not self.hole and flow.pieces[0][0] <= now

    def read(self, flow):
        """False: the link is over."""
        now = time.monotonic()
        most = max(1, min(PIECE, int(self.rate * 0.01))) if self.rate else PIECE
        try:
            data = flow.source.recv(most)
        except BlockingIOError:
            return True
        if not data:
            flow.eof = True
            return True
        at = flow.frames.cut_at(data, self.where, self.rng)
        if at is not None:
            with contextlib.suppress(OSError):
                if not flow.pieces:
                    flow.target.send(data[:at])
            self.cut_all()
            return True
        flow.next = now + len(data) / self.rate if self.rate else 0
        due = now + self.rng.random() * self.jitter if self.jitter else 0
        if flow.pieces:
            due = max(due, flow.pieces[-1][0])  # within a connection nothing overtakes
        flow.pieces.append((due, memoryview(data)))
        flow.bytes += len(data)
        return True

    def write(self, flow):
        due, data = flow.pieces.popleft()
        try:
            sent = flow.target.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            flow.pieces.appendleft((due, data[sent:]))
        flow.bytes -= sent

    def serve(self, link, ready):
        """ready: descriptors → what poll() says of them."""
        for flow in link:
            got = ready.get(flow.source.fileno(), 0)
            if got & (select.POLLERR | select.POLLNVAL):
                raise ConnectionResetError
            now = time.monotonic()
            if self.may_read(flow, now) and got & (select.POLLIN | select.POLLHUP):
                self.read(flow)
                if link not in self.links:
                    return
            if self.may_write(flow, now):
                self.write(flow)
            if flow.eof and not flow.pieces and not flow.ended:
                flow.target.shutdown(socket.SHUT_WR)
                flow.ended = True
        if all(flow.ended for flow in link):
            self.drop(link)

    def look(self):
        """What poll() has to say, and of which descriptors."""
        poll, now, soon = select.poll(), time.monotonic(), 100.0
        poll.register(self.wake, select.POLLIN)
        for fd in self.listeners:
            poll.register(fd, select.POLLIN)
        wanted = {}
        for link in self.links:
            for flow in link:
                wanted.setdefault(flow.source.fileno(), 0)
                if self.may_read(flow, now):
                    wanted[flow.source.fileno()] |= select.POLLIN
                elif flow.next > now:
                    soon = min(soon, (flow.next - now) * 1000)
                if self.may_write(flow, now):
                    fd = flow.target.fileno()
                    wanted[fd] = wanted.get(fd, 0) | select.POLLOUT
                elif flow.pieces and not self.hole:
                    soon = min(soon, (flow.pieces[0][0] - now) * 1000)
        for fd, mask in wanted.items():
            if mask:
                poll.register(fd, mask)
        return dict(poll.poll(max(1, soon)))

    def run(self):
        while not self.over:
            ready = self.look()
            if self.wake.fileno() in ready:
                self.wake.recv(64)
            while not self.orders.empty():
                what, done = self.orders.get()
                what()
                done.set()
            if self.over:
                return
            for fd in list(self.listeners):
                if fd in ready:
                    self.accept(*self.listeners[fd])
            for link in list(self.links):
                try:
                    if link in self.links:
                        self.serve(link, ready)
                except OSError:
                    self.drop(link)


@contextlib.contextmanager
def cutting(proxy, every):
    """Cuts each EVERY seconds while it lasts."""
    over = threading.Event()

    def run():
        while not over.wait(every):
            proxy.cut()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
