# SPDX-License-Identifier: Apache-2.0
"""A network between sidecar and agent that can be cut: 127.0.0.2 stands for the agent, on its own
ports, since it names the port of the replies itself."""
import contextlib
import socket
import struct
import threading

HARD = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets


class Proxy:
    def __init__(self, agent):
        self.lock, self.links, self.listeners = threading.Lock(), set(), []
        self.dark = self.over = False  # dark: what is accepted is cut at once
        self.cuts = 0
        for port in (agent.ports["recv"], agent.ports["send"]):
            listener = socket.create_server(("127.0.0.2", port), backlog=64)
            self.listeners.append(listener)
            threading.Thread(target=self.accept, args=(listener, port), daemon=True).start()
        self.address = f"127.0.0.2:{agent.ports['recv']}"

    def accept(self, listener, port):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                if self.dark:
                    self.end(near)
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    self.end(near)
                    continue
                link = (near, far)
                for one in link:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self.lock:
                    self.links.add(link)
                for source, target in (link, link[::-1]):
                    threading.Thread(target=self.pump, args=(link, source, target),
                                     daemon=True).start()

    def pump(self, link, source, target):
        with contextlib.suppress(OSError):
            while True:
                some = source.recv(1 << 18)
                if not some:
                    break
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
            return
        self.drop(link)

    @staticmethod
    def end(one):
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()

    def drop(self, link):
        with self.lock:
            if link not in self.links:
                return
            self.links.discard(link)
        for one in link:
            self.end(one)

    def cut(self):
        """All connections, reset in the middle of whatever they carry."""
        with self.lock:
            links = list(self.links)
        for link in links:
            self.drop(link)
        self.cuts += bool(links)

    def close(self):
        for listener in self.listeners:
            listener.close()
        self.cut()


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
