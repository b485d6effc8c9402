# SPDX-License-Identifier: Apache-2.0
"""The workers of a network: the hashes `node:ID` that agents keep alive in Redis (docs/TENSORS.md), what the
validator says of them, `peer:ID`, and which validator that is.

What stands there was written by others: of every hash only the fields below are read, none that is long, each
must be as its form says, and one bad entry hides no other.
"""
import contextlib
import re
import socket
import time
import urllib.parse
from typing import Annotated, Literal

import redis.backoff
import redis.retry
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from .errors import PeersError, shown
from .network import PORT, secret

PATIENCE = 5  # seconds for each answer of the directory
ADDRESS = rf"^(?:[A-Za-z0-9_][A-Za-z0-9._-]{{0,252}}|\[[0-9a-fA-F:.]{{2,45}}\]):{PORT}$"
ID = re.compile(r"[A-Za-z0-9._-]{1,63}")
MOST_TEXT = 4096  # bytes of a field
LEASE = 10  # seconds that a validator is one without renewing it
# Whether validator KEYS[1] is ARGV[1], for ARGV[2] ms from now; 0: no longer.
TAKE = """local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])"""
ONCE = redis.retry.Retry(redis.backoff.NoBackoff(), 0)  # who asks says whether to ask again

Address = Annotated[str, Field(pattern=ADDRESS)]
Line = Annotated[str, Field(pattern="^[ -~]*$", max_length=300)]
Count = Annotated[int, Field(ge=0, lt=10 ** 15)]


class Worker(BaseModel):
    """What an agent says of itself."""
    address: Address  # HOST:PORT
    devices: int = Field(ge=1, le=64)
    gpus: Annotated[list[Annotated[str, Field(pattern="^[A-Za-z0-9/-]+$")]], BeforeValidator(str.split)] = []
    free_bytes: Annotated[list[Count], BeforeValidator(str.split)] = []  # of each GPU; []: it does not say
    version: Line = ""
    network: Line = ""
    node: str

    @model_validator(mode="after")
    def _each_has_one(self):
        if any(each and len(each) != self.devices for each in (self.free_bytes, self.gpus)):
            raise ValueError("not one for each GPU")
        return self


class Verdict(BaseModel):
    """The validator's; the times are seconds since 1970."""
    state: Literal["admitted", "refused", "evicted"]
    reason: Line
    address: Address
    failures: Count  # in a row
    until: Count  # it is not tested before
    checked: Count
    since: Count
    gpu: Line = ""
    memory_bytes: Count = 0
    round_trip_us: Count = 0
    bytes_per_second: Count = 0


class Complaint(BaseModel):
    worker: str
    reason: str


class Validator(BaseModel):
    host: Line
    pid: int
    head: Address  # of Ray
    dashboard: Address
    ray: Line  # its version


def reached(address, seconds=2):
    """"": somebody listens there; else why not."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
        return ""
    except (OSError, ValueError) as error:  # a name can be none
        return str(error)


@contextlib.contextmanager
def _opened(network):
    password = secret(network.password_file) if network.password_file else None
    try:
        with redis.Redis.from_url(
                urllib.parse.quote(network.directory.replace("tcp://", "redis://"), safe=":/[]"),
                username=network.user or None, password=password, protocol=2, retry=ONCE,
                socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, decode_responses=True,
                encoding_errors="replace") as client:
            yield client
    except redis.RedisError as error:
        raise PeersError(f"the directory {network.directory} of {network.name} does not serve: {error}"
                         ) from None


def _hashes(client, prefix, nodes, form):
    """{node: what FORM makes of the hash PREFIX + node, None where it cannot be} of those that are there."""
    def asked(nodes, *commands):  # in one round trip
        with client.pipeline(transaction=False) as at_once:
            for node in nodes:
                for command, *fields in commands:
                    at_once.execute_command(command, prefix + node, *fields)
            answers = iter(at_once.execute(raise_on_error=False))
        return [(node, [next(answers) for _ in commands]) for node in nodes]

    said, short, fields = {}, [], [field for field in form.model_fields if field != "node"]
    for node, (count, *long) in asked(nodes, ["HLEN"], *(["HSTRLEN", field] for field in fields)):
        if isinstance(count, redis.ResponseError) and not str(count).startswith("WRONGTYPE"):
            raise count
        if count:
            said[node] = None
        if isinstance(count, int) and count and max(long) <= MOST_TEXT:
            short.append(node)
    for node, [values] in asked(short, ["HMGET", *fields]):
        with contextlib.suppress(ValidationError, TypeError):  # it may be no hash any more
            values = {field: value for field, value in zip(fields, values) if value is not None}
            said[node] = form.model_validate({"node": node, **values})
    return said


def complain(network, complaint):
    """To the validator, which takes them from this list: JSON {worker, reason}."""
    with _opened(network) as client:
        client.rpush("peer-complaints", complaint)


def complaints(network):
    """{worker: reason} of those that came; they are taken."""
    said = {}
    with _opened(network) as client:
        for text in client.lpop("peer-complaints", 100) or ():
            with contextlib.suppress(ValidationError):
                one = Complaint.model_validate_json(text[:MOST_TEXT])
                said[one.worker] = shown(one.reason, 200)
    return said


def workers(network):
    """(those that are there, in the order of their IDs; IDs of those whose entry cannot be); PeersError."""
    with _opened(network) as client:
        names = sorted(client.smembers("tensor-nodes"))
        said = _hashes(client, "node:", list(filter(ID.fullmatch, names)), Worker)
    bad = [node for node, one in said.items() if not one]
    bad += [shown(node, 63) for node in names if not ID.fullmatch(node)]
    return [one for one in said.values() if one and one.network in ("", network.name)], bad


def verdicts(network):
    """{worker: what the validator says of it}; None for what no validator said."""
    with _opened(network) as client:
        names = client.smembers("peers:" + network.name)
        said = _hashes(client, "peer:", list(filter(ID.fullmatch, names)), Verdict)
    return {node: said.get(node) for node in names}


def judge(network, node, verdict, seconds=None):
    """VERDICT of NODE from now on, for so many seconds; what it does not say stays. None: there is none."""
    with _opened(network) as client, client.pipeline() as at_once:
        if verdict is None:
            at_once.delete("peer:" + node).srem("peers:" + network.name, node)
        else:
            at_once.hset("peer:" + node, mapping=verdict).sadd("peers:" + network.name, node)
            if seconds:
                at_once.expire("peer:" + node, seconds)
        at_once.execute()


def renew(network, said, seconds=LEASE):
    """Whether the network's validator is the one that says SAID, for so long from now; 0: no longer."""
    with _opened(network) as client:
        return client.eval(TAKE, 1, "validator:" + network.name, said, seconds * 1000) == 1


def validator(network):
    """PeersError where there is none."""
    with _opened(network) as client:
        said = client.getrange("validator:" + network.name, 0, MOST_TEXT)
    try:
        return Validator.model_validate_json(said)
    except ValidationError:
        raise PeersError(f"{network.name} has no validator: start vcuda-peers validator") from None


def become_validator(network, said):
    """Takes a dead one's place when its lease is over; PeersError where one lives."""
    until = time.monotonic() + LEASE + 1
    while not renew(network, said):
        if time.monotonic() > until:
            other = validator(network)
            raise PeersError(f"{network.name} has a validator: {other.host}, process {other.pid}")
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
