# SPDX-License-Identifier: Apache-2.0
"""The workers of a network: the hashes `node:ID` that agents keep alive in Redis (docs/TENSORS.md), what the validator
says of them, `peer:ID`, and which validator that is.

What stands there was written by others: every number is checked, and one bad entry hides no other.
"""
import contextlib
import dataclasses
import json
import re
import time

import redis.backoff
import redis.retry

from .errors import PeersError
from .network import DIRECTORY, secret

PATIENCE = 5  # seconds for each answer of the directory
ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}")
ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
MOST_DEVICES = 64
NUMBERS = ("failures", "until", "checked", "since")  # of a verdict; the last three are seconds since 1970
LEASE = 10  # seconds that a validator is one without renewing it
TAKE = """local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1"""
GIVE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 1"
ONCE = redis.retry.Retry(redis.backoff.NoBackoff(), 0)  # who asks says whether to ask again


@dataclasses.dataclass(frozen=True)
class Worker:
    node: str
    address: str  # HOST:PORT of its agent
    devices: int
    gpus: tuple  # UUIDs
    free: tuple = ()  # bytes of each GPU; (): it does not say
    version: str = ""


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
    got = DIRECTORY.fullmatch(network.directory)
    where = {"unix_socket_path": got["path"]} if got["path"] else {"host": got["host"].strip("[]"),
                                                                   "port": int(got["port"])}
    password = secret(network.password_file) if network.password_file else None
    try:
        with redis.Redis(**where, username=network.user or None, password=password, protocol=2, retry=ONCE,
                         socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, decode_responses=True,
                         encoding_errors="replace") as client:
            yield client
    except redis.RedisError as error:
        raise PeersError(f"the directory {network.directory} of {network.name} does not serve: {error}") from None


def complain(network, text):
    """To the validator, which takes them from this list: JSON {worker, reason}."""
    with _opened(network) as client:
        client.rpush("peer-complaints", text)


def complaints(network):
    """{worker: reason} of those that came; they are taken."""
    said = {}
    with _opened(network) as client:
        for text in client.lpop("peer-complaints", 100) or ():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                one = json.loads(text)
                said[str(one["worker"])] = str(one["reason"])[:200]
    return said


def workers(network):
    """(those that are there, in the order of their IDs; IDs of those whose entry cannot be); PeersError."""
    good, bad = [], []
    with _opened(network) as client:
        for node in sorted(client.smembers("tensor-nodes")):
            said = client.hgetall("node:" + node)
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
    with _opened(network) as client:
        said = {node: client.hgetall("peer:" + node) for node in client.smembers("peers:" + network.name)}
    whole = {node: ID.fullmatch(node) and {"state", "reason", "address"} <= set(one)
             and all(re.fullmatch("[0-9]{1,15}", one.get(key, "")) for key in NUMBERS) for node, one in said.items()}
    return {node: one if whole[node] else {} for node, one in said.items()}


def judge(network, node, verdict, seconds=None):
    """VERDICT of NODE from now on, for so many seconds; None: there is none any more."""
    with _opened(network) as client, client.pipeline() as at_once:  # who reads meanwhile finds the former verdict
        at_once.delete("peer:" + node)
        if verdict is None:
            at_once.srem("peers:" + network.name, node)
        else:
            at_once.hset("peer:" + node, mapping=verdict).sadd("peers:" + network.name, node)
            if seconds:
                at_once.expire("peer:" + node, seconds)
        at_once.execute()


def renew(network, said):
    """Whether the network's validator is the one that says SAID, for LEASE seconds from now."""
    with _opened(network) as client:
        return client.eval(TAKE, 1, "validator:" + network.name, said, LEASE * 1000) == 1


def resign(network, said):
    with _opened(network) as client:
        client.eval(GIVE, 1, "validator:" + network.name, said)


def validator(network):
    """({host, pid, head, dashboard, ray}, milliseconds that it is one without renewing); PeersError: there is none."""
    with _opened(network) as client:
        said, left = client.get("validator:" + network.name), client.pttl("validator:" + network.name)
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


def jobs(network, ended=None, **submitted):
    """{submission id: JSON of how it was submitted} of those that have not ended; ENDED is no more among them."""
    key = "peer-jobs:" + network.name
    with _opened(network) as client:
        if submitted:
            client.hset(key, mapping=submitted)
        if ended:
            client.hdel(key, ended)
        return client.hgetall(key)
