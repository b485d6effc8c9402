# SPDX-License-Identifier: Apache-2.0
"""The workers of a network: the hashes `node:ID` that agents keep alive in Redis (docs/TENSORS.md), what the validator
says of them, `peer:ID`, and which validator that is.

What stands there was written by others: every number is checked, and one bad entry hides no other.
"""
import contextlib
import dataclasses
import json
import re
import socket
import time

from .errors import PeersError
from .network import DIRECTORY

PATIENCE = 5  # seconds for each answer of the directory
MOST_BYTES, MOST_ITEMS = 1 << 20, 1 << 16  # of one answer
ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}")
ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
MOST_DEVICES = 64
NUMBERS = ("failures", "until", "checked", "since")  # of a verdict; the last three are seconds since 1970
LEASE = 10  # seconds that a validator is one without renewing it
TAKE = """local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1"""
# At once: who reads meanwhile finds the former verdict, and takes no seat away.
JUDGE = """redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
if ARGV[2] ~= '0' then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return redis.call('SADD', KEYS[2], ARGV[1])"""
GIVE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"


@dataclasses.dataclass(frozen=True)
class Worker:
    node: str
    address: str  # HOST:PORT of its agent
    devices: int
    gpus: tuple  # UUIDs
    free: tuple = ()  # bytes of each GPU; (): it does not say
    version: str = ""


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
    free = said.get("free_bytes", "").split()
    if free and not (len(free) == int(devices) and all(re.fullmatch("[0-9]{1,15}", one) for one in free)):
        return None
    return Worker(node, said["address"], int(devices), tuple(said.get("gpus", "").split()), tuple(map(int, free)),
                  said.get("version", "").split(" ")[0][:63])


@contextlib.contextmanager
def _opened(network):
    password = _password(network) if network.password_file else ""
    try:
        with contextlib.closing(_Redis(network.directory)) as redis:
            if password:
                redis("AUTH", *([network.user] if network.user else []), password)
            yield redis
    except (OSError, PeersError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise PeersError(f"the directory {network.directory} of {network.name} does not serve: {why}") from None


def _hash(redis, key):
    flat = redis("HGETALL", key)
    return dict(zip(flat[::2], flat[1::2]))


def complain(network, text):
    """To the validator, which takes them from this list: JSON {worker, reason}."""
    with _opened(network) as redis:
        redis("RPUSH", "peer-complaints", text)


def complaints(network):
    """{worker: reason} of those that came; they are taken."""
    said = {}
    with _opened(network) as redis:
        for _ in range(100):
            text = redis("LPOP", "peer-complaints")
            if text is None:
                break
            with contextlib.suppress(ValueError, TypeError, KeyError):
                one = json.loads(text)
                said[str(one["worker"])] = str(one["reason"])[:200]
    return said


def workers(network):
    """(those that are there, in the order of their IDs; IDs of those whose entry cannot be); PeersError."""
    good, bad = [], []
    with _opened(network) as redis:
        for node in sorted(set(redis("SMEMBERS", "tensor-nodes"))):
            said = _hash(redis, "node:" + node)
            if not said or said.get("network", network.name) != network.name:
                continue  # its 10 s have lapsed; or it is another network's
            one = _worker(node, said)
            if one:
                good.append(one)
            else:
                bad.append(node)
    return good, bad


def verdicts(network):
    """{worker: what the validator says of it, as text}; {} for what no validator said."""
    with _opened(network) as redis:
        said = {node: _hash(redis, "peer:" + node) for node in redis("SMEMBERS", "peers:" + network.name)}
    whole = {node: ID.fullmatch(node) and {"state", "reason", "address"} <= set(one)
             and all(re.fullmatch("[0-9]{1,15}", one.get(key, "")) for key in NUMBERS) for node, one in said.items()}
    return {node: one if whole[node] else {} for node, one in said.items()}


def judge(network, node, verdict, seconds=None):
    """VERDICT of NODE from now on, for so many seconds; None: there is none any more."""
    with _opened(network) as redis:
        if verdict is None:
            redis("DEL", "peer:" + node)
            redis("SREM", "peers:" + network.name, node)
            return
        words = [str(word) for pair in verdict.items() for word in pair]
        redis("EVAL", JUDGE, "2", "peer:" + node, "peers:" + network.name, node, str(int(seconds or 0)), *words)


def renew(network, said):
    """Whether the network's validator is the one that says SAID, for LEASE seconds from now."""
    with _opened(network) as redis:
        return redis("EVAL", TAKE, "1", "validator:" + network.name, said, str(LEASE * 1000)) == 1


def resign(network, said):
    with _opened(network) as redis:
        redis("EVAL", GIVE, "1", "validator:" + network.name, said)


def validator(network):
    """({host, pid, head, dashboard, ray}, milliseconds that it is one without renewing); PeersError: there is none."""
    with _opened(network) as redis:
        said, left = redis("GET", "validator:" + network.name), redis("PTTL", "validator:" + network.name)
    with contextlib.suppress(TypeError, ValueError):
        said = json.loads(said)
        return {key: str(said.get(key, "")) for key in ("host", "pid", "head", "dashboard", "ray")}, left
    raise PeersError(f"{network.name} has no validator: start vcuda-peers validator")


def become_validator(network, said):
    """Takes a dead one's place when its lease is over; PeersError where one lives."""
    before = until = None
    while not renew(network, said):
        try:
            other, left = validator(network)
        except PeersError:
            continue  # it lapsed meanwhile
        if before is not None and left > before:
            raise PeersError(f"{network.name} has a validator: {other['host']}, process {other['pid']}")
        before, until = left, until or time.monotonic() + 2 * LEASE
        if time.monotonic() > until:
            raise PeersError(f"{network.name}'s validator:{network.name} cannot be taken: it has no lease")
        time.sleep(0.2)


def jobs(network, *change):
    """{submission id: JSON of how it was submitted}, of those that have not ended, after HSET or HDEL ..."""
    with _opened(network) as redis:
        if change:
            redis(change[0], "peer-jobs:" + network.name, *change[1:])
        return _hash(redis, "peer-jobs:" + network.name)
