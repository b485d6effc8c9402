# SPDX-License-Identifier: Apache-2.0
"""What is told of a network: status and doctor."""
import concurrent.futures
import contextlib
import http.client
import json
import socket
import threading

from . import directory, validator
from .errors import PeersError
from .network import secret

MOST_BYTES = 4 << 20
PATIENCE = 2  # seconds to connect, and for the whole answer
AT_ONCE = 16
ODD = (OSError, OverflowError, ValueError, RecursionError, http.client.HTTPException)  # of what others answer
NUMBERS = ("launches", "bytes_received", "bytes_sent")


def _ask(worker, token, path):
    """Of its control port, the one behind that of its sessions; {}: not reached, or no token for that."""
    host, _, port = worker.address.rpartition(":")
    asking = http.client.HTTPConnection(host.strip("[]"), int(port) + 1, timeout=PATIENCE)
    with contextlib.suppress(*ODD), contextlib.closing(asking):  # a redirect is followed nowhere
        asking.connect()
        with _cut(asking.sock):
            asking.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = asking.getresponse()
            said = json.loads(answer.read(MOST_BYTES)) if answer.status == 200 else {}
            return said if isinstance(said, dict) else {}
    return {}


@contextlib.contextmanager
def _cut(connection):
    """It ends when PATIENCE does, however often a byte comes."""
    def cut():
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    timer = threading.Timer(PATIENCE, cut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _number(value):
    if not isinstance(value, (int, float)) or not 0 <= value < 1 << 63:
        raise ValueError
    return int(value)


def _use(worker, token):
    said, got = {}, _ask(worker, token, "/v1/sessions")
    with contextlib.suppress(TypeError, KeyError, ValueError):
        said = {key: sum(_number(one[key]) for one in got["sessions"]) for key in NUMBERS}
        said["sessions"] = len(got["sessions"])
        gpus = _ask(worker, token, "/v1/gpus")["gpus"]
        said["free_bytes"] = sum(_number(one["memory_free_bytes"]) for one in gpus)
    return said


def status(network):
    """{workers, unreadable, away}: away are those with a verdict and without an entry."""
    good, bad = directory.workers(network)
    said, token = directory.verdicts(network), (secret(network.token_file).split() or [""])[0]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for one, use in zip(good, pool.map(lambda one: _use(one, token), good)):
            row = {"node": one.node, "address": one.address, "devices": one.devices, "gpus": one.gpus}
            if one.free:
                row["free_bytes"] = sum(one.free)
            rows.append({**row, "verdict": "unjudged", "reason": "", **_said(said.pop(one.node, {})), **use})
    away = [{"node": node, **_said(verdict)} for node, verdict in said.items() if verdict]
    return {"workers": rows, "unreadable": bad, "away": away}


def _said(verdict):
    """The validator's, with numbers as numbers."""
    names = {"state": "verdict", "memory_bytes": "tested_bytes"}
    return {names.get(key, key): int(value) if key in directory.NUMBERS + directory.FIGURES else value
            for key, value in verdict.items() if key != "address"}


def doctor(network, vcuda):
    """[(right, what, text)]"""
    try:
        good, bad = directory.workers(network)
    except PeersError as error:
        return [(False, "directory", str(error))]
    rows = [(True, "directory", f"{network.directory} serves; {len(good)} workers")]
    rows += [(False, node, "its entry in the directory cannot be read") for node in bad]
    for one in good:
        wrong = validator.answers(vcuda, one.address, network.token_file)
        rows.append((not wrong, one.node, wrong or f"{one.address} answers and takes the token"))
    try:
        said, _ = directory.validator(network)
    except PeersError as error:
        return rows + [(True, "validator", str(error))]
    host, _, port = said["head"].rpartition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
        rows.append((True, "validator", f"Ray's head {said['head']} is reached"))
    except (OSError, ValueError) as error:
        rows.append((False, "validator", f"Ray's head {said['head']} is not reached: {error}"))
    return rows
