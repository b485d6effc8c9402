# SPDX-License-Identifier: Apache-2.0
"""The workers of a network: the hashes `node:ID` that agents keep alive in Redis (docs/TENSORS.md), what the
validator says of them, `peer:ID`, and which validator that is.

What stands there was written by others: of every hash only the fields below are read, none that is long, each
must be as its form says, and one bad entry hides no other.
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
from .said import shown

PATIENCE = 5  # seconds for each answer of the directory
ADDRESS = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|\[[0-9a-fA-F:.]{2,45}\])"
                     r":(?P<port>[1-9][0-9]{0,4})")
ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
MOST_DEVICES = 64
MOST_TEXT = 4096  # bytes of a field
NUMBERS = ("failures", "until", "checked", "since")  # of a verdict; the last three are seconds since 1970
FIGURES = ("memory_bytes", "round_trip_us", "bytes_per_second")  # and these, where the worker was tested
LINE, NUMBER = re.compile("[ -~]{0,300}"), re.compile("[0-9]{1,15}")
ENTRY = {"address": ADDRESS, "devices": re.compile("[0-9]{1,3}"), "gpus": re.compile("[A-Za-z0-9/ -]*"),
         "free_bytes": re.compile("[0-9 ]*"), "version": LINE, "network": LINE}
VERDICT = {"state": re.compile("admitted|refused|evicted|gone"), "reason": LINE, "address": ADDRESS,
           "gpu": LINE, **dict.fromkeys(NUMBERS + FIGURES, NUMBER)}
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


def is_address(text):
    got = ADDRESS.fullmatch(text)
    return bool(got) and int(got["port"]) < 65536


def _worker(node, said):
    """What NODE says of itself; None where it says nothing that can be."""
    if not said or "devices" not in said or not is_address(said.get("address", "")):
        return None
    devices = int(said["devices"])
    free, gpus = said.get("free_bytes", "").split(), said.get("gpus", "").split()
    if not 0 < devices <= MOST_DEVICES or any(each and len(each) != devices for each in (free, gpus)):
        return None
    if not all(map(NUMBER.fullmatch, free)):
        return None
    return Worker(node, said["address"], devices, tuple(gpus), tuple(map(int, free)),
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
        raise PeersError(f"the directory {network.directory} of {network.name} does not serve: {error}"
                         ) from None


def _hashes(client, prefix, nodes, forms):
    """{node: {field: text}} of the hashes PREFIX + node that are there; None for what FORMS do not allow."""
    def asked(command, each):
        with client.pipeline(transaction=False) as at_once:
            for node in each:
                command(at_once, prefix + node)
            return at_once.execute(raise_on_error=False)

    def lengths(at_once, key):
        at_once.hlen(key)
        for field in forms:
            at_once.hstrlen(key, field)

    said, width = {}, 1 + len(forms)
    got = asked(lengths, nodes)
    for node, (count, *long) in zip(nodes, (got[at:at + width] for at in range(0, len(got), width))):
        if isinstance(count, redis.ResponseError) and not str(count).startswith("WRONGTYPE"):
            raise count
        if count:
            said[node] = {} if isinstance(count, int) and max(long) <= MOST_TEXT else None
    there = [node for node, one in said.items() if one is not None]
    for node, values in zip(there, asked(lambda at_once, key: at_once.hmget(key, *forms), there)):
        one = {} if isinstance(values, redis.ResponseError) else {
            field: value for field, value in zip(forms, values) if value is not None}
        said[node] = one if all(forms[field].fullmatch(value) for field, value in one.items()) else None
    return said


def complain(network, text):
    """To the validator, which takes them from this list: JSON {worker, reason}."""
    with _opened(network) as client:
        client.rpush("peer-complaints", text)


def complaints(network):
    """{worker: reason} of those that came; they are taken."""
    said = {}
    with _opened(network) as client:
        for text in client.lpop("peer-complaints", 100) or ():
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                one = json.loads(text[:MOST_TEXT])
                said[str(one["worker"])] = shown(one["reason"], 200)
    return said


def workers(network):
    """(those that are there, in the order of their IDs; IDs of those whose entry cannot be); PeersError."""
    with _opened(network) as client:
        names = sorted(client.smembers("tensor-nodes"))
        said = _hashes(client, "node:", [node for node in names if ID.fullmatch(node)], ENTRY)
    mine = {node: _worker(node, one) for node, one in said.items()  # those of which the 10 s have not lapsed
            if (one or {}).get("network", network.name) == network.name}
    bad = [node for node, one in mine.items() if not one]
    bad += [shown(node, 63) for node in names if not ID.fullmatch(node)]
    return [one for one in mine.values() if one], bad


def verdicts(network):
    """{worker: what the validator says of it, as text}; {} for what no validator said."""
    with _opened(network) as client:
        names = client.smembers("peers:" + network.name)
        said = _hashes(client, "peer:", [node for node in names if ID.fullmatch(node)], VERDICT)
    needed = {"state", "reason", "address", *NUMBERS}
    return {node: said[node] if needed <= set(said.get(node) or ()) else {} for node in names}


def judge(network, node, verdict, seconds=None):
    """VERDICT of NODE from now on, for so many seconds; None: there is none any more."""
    with _opened(network) as client, client.pipeline() as at_once:  # meanwhile there is the former verdict
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
    with contextlib.suppress(PeersError), _opened(network) as client:  # it lapses by itself, too
        client.eval(GIVE, 1, "validator:" + network.name, said)


def validator(network):
    """({host, pid, head, dashboard, ray}, milliseconds that it is one without renewing); PeersError."""
    key = "validator:" + network.name
    with _opened(network) as client:
        said, left = client.getrange(key, 0, MOST_TEXT), client.pttl(key)
    with contextlib.suppress(AttributeError, RecursionError, ValueError):
        said = json.loads(said)
        said = {key: shown(said.get(key, ""), 260) for key in ("host", "pid", "head", "dashboard", "ray")}
        if is_address(said["head"]) and is_address(said["dashboard"]):
            return said, left
    raise PeersError(f"{network.name} has no validator: start vcuda-peers validator")


def become_validator(network, said):
    """Takes a dead one's place when its lease is over; PeersError where one lives."""
    before, until = None, time.monotonic() + 2 * LEASE
    while not renew(network, said):
        try:
            other, left = validator(network)
        except PeersError:
            other, left = None, before  # it lapsed meanwhile; or what stands there is none
        if other and before is not None and left > before:
            raise PeersError(f"{network.name} has a validator: {other['host']}, process {other['pid']}")
        before = left
        if time.monotonic() > until:
            raise PeersError(f"{network.name}'s validator:{network.name} cannot be taken: it has no lease")
        time.sleep(0.2)


def jobs(network, ended=None, **submitted):
    """{submission id: JSON of how it was submitted} of those that have not ended; ENDED is not among them."""
    key = "peer-jobs:" + network.name
    with _opened(network) as client:
        if submitted:
            client.hset(key, mapping=submitted)
        if ended:
            client.hdel(key, ended)
        return client.hgetall(key)
