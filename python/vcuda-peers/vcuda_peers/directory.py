# SPDX-License-Identifier: Apache-2.0
"""The workers of a network: the hashes `node:ID` that agents keep alive in Redis (docs/TENSORS.md).

What stands there was written by others: every number is checked, and one bad entry hides no other.
"""
import contextlib
import dataclasses
import re
import socket

from .errors import PeersError
from .network import DIRECTORY

PATIENCE = 5  # seconds for each answer of the directory
MOST_BYTES, MOST_ITEMS = 1 << 20, 1 << 16  # of one answer
ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}")
ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
MOST_DEVICES = 64


@dataclasses.dataclass(frozen=True)
class Worker:
    node: str
    address: str  # HOST:PORT of its agent
    devices: int
    gpus: tuple  # UUIDs


class _Redis:
    """As much of Redis' protocol as reading takes."""

    def __init__(self, directory):
        got = DIRECTORY.fullmatch(directory)
        if got["path"]:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE)
            self.socket.connect(got["path"])
        else:
            self.socket = socket.create_connection((got["host"].strip("[]"), int(got["port"])), PATIENCE)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def __call__(self, *words):
        words = [word.encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self._answer()

    def _number(self, text, most):
        if not re.fullmatch(rb"-?[0-9]{1,10}", text) or int(text) > most:
            raise PeersError("its answer is none of Redis")
        return int(text)

    def _answer(self, nested=False):
        line = self.file.readline(512)
        if not line.endswith(b"\r\n"):
            raise PeersError("it hung up" if not line else "its answer is none of Redis")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise PeersError(f"it says '{rest.decode(errors='replace')}'")
        if kind == b"+":
            return rest.decode(errors="replace")
        if kind == b":":
            return self._number(rest, MOST_BYTES)
        if kind == b"*" and not nested:
            return [self._answer(nested=True) for _ in range(self._number(rest, MOST_ITEMS))]
        if kind != b"$":
            raise PeersError("its answer is none of Redis")
        length = self._number(rest, MOST_BYTES)
        if length < 0:
            return None
        text = self.file.read(length + 2)
        if len(text) != length + 2:
            raise PeersError("it hung up")
        return text[:-2].decode(errors="replace")


def _password(network):
    try:
        with open(network.password_file) as file:
            return file.readline(1024).rstrip("\n")
    except (OSError, UnicodeError) as error:
        raise PeersError(f"{network.password_file}: {getattr(error, 'strerror', None) or 'no text'}") from None


def _worker(node, said):
    """What NODE says of itself; None where it says nothing that can be."""
    devices = said.get("devices", "")
    if not (ID.fullmatch(node) and ADDRESS.fullmatch(said.get("address", "")) and re.fullmatch(r"[0-9]{1,3}", devices)):
        return None
    if not 0 < int(devices) <= MOST_DEVICES:
        return None
    return Worker(node, said["address"], int(devices), tuple(said.get("gpus", "").split()))


def workers(network):
    """(those that are there, in the order of their IDs; IDs of those whose entry cannot be); PeersError."""
    password = _password(network) if network.password_file else ""
    good, bad = [], []
    try:
        with contextlib.closing(_Redis(network.directory)) as redis:
            if password:
                redis("AUTH", *([network.user] if network.user else []), password)
            for node in sorted(set(redis("SMEMBERS", "tensor-nodes"))):
                flat = redis("HGETALL", "node:" + node)
                if not flat:
                    continue  # its 10 s have lapsed
                one = _worker(node, dict(zip(flat[::2], flat[1::2])))
                if one:
                    good.append(one)
                else:
                    bad.append(node)
    except (OSError, PeersError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise PeersError(f"the directory {network.directory} of {network.name} does not serve: {why}") from None
    return good, bad
