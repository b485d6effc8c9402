# SPDX-License-Identifier: Apache-2.0
"""The program of `vcuda-peers run`: started again where a worker was lost under it, heard where it complains.

The program has no directory. It writes lines of JSON into a file of ours, `tell` of VCUDA_PEERS.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from . import directory, keep
from .errors import PeerLost, PeersError

MOST_LINE = 1 << 16
MOST_REFUSED = 64  # of whom the program is told: its environment is small


def usable(joined):
    """(the workers, but for whom the validator refused; {worker: why}). A network may have no validator."""
    refused = {}
    with contextlib.suppress(PeersError):  # a user may read nothing but the workers
        refused = {node: said.get("reason", "") for node, said in directory.verdicts(joined).items()
                   if said.get("state") in ("refused", "evicted")}
    return [one for one in directory.workers(joined)[0] if one.node not in refused], refused


def answers(worker, seconds=2):
    """Whether WORKER's agent is there: its entry outlives it by 10 s."""
    host, _, port = worker.address.rpartition(":")
    with contextlib.suppress(OSError):
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
        return True
    return False


def _once(command, said, hear):
    """Its exit status; HEAR gets each object that it wrote into SAID."""
    try:
        program = subprocess.Popen(command, preexec_fn=keep.end_with_parent)
    except OSError as error:
        raise PeersError(f"{command[0]}: {error.strerror}") from None
    mine = {signal.SIGTERM: lambda *_: program.terminate(),
            signal.SIGINT: lambda *_: None}  # a terminal sends it to the program, too
    before = {number: signal.signal(number, does) for number, does in mine.items()}
    try:
        while True:
            status = program.poll()
            for line in iter(lambda: said.readline(MOST_LINE), ""):
                with contextlib.suppress(ValueError, AttributeError, TypeError):
                    hear(json.loads(line))
            if status is not None:
                return status if status >= 0 else 128 - status
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.2)
    finally:
        for number, does in before.items():
            signal.signal(number, does)


def run(joined, mine, refused, command_of, retries):
    """The program's exit status in the end. It begins on the workers MINE; COMMAND_OF(those) is it there."""
    def hear(what):
        nonlocal retries
        if retries is None and isinstance(what.get("max_retries"), int):
            retries = what["max_retries"]
        if "complaint" in what:
            try:
                directory.complain(joined, json.dumps(what["complaint"]))
            except PeersError as error:
                print(f"vcuda-peers: a complaint did not reach the directory: {error}",
                      file=sys.stderr, flush=True)

    wanted, attempt = {one.node for one in mine}, 0
    with (tempfile.TemporaryDirectory(prefix="vcuda-peers-") as folder,
          open(os.path.join(folder, "tell"), "a+") as said):
        while True:
            os.environ["VCUDA_PEERS"] = json.dumps({"network": joined.name, "tell": said.name,
                                                    "refused": dict(list(refused.items())[:MOST_REFUSED]),
                                                    "workers": [[one.node, one.devices] for one in mine]})
            status = _once(command_of(mine), said, hear)
            if status != PeerLost.STATUS or attempt >= (retries or 0):
                return status
            time.sleep(min(2 ** attempt, 20) / 2)  # who starts an agent again has a moment
            attempt += 1
            there, refused = usable(joined)
            mine = [one for one in there if one.node in wanted and answers(one)]
            if not mine:
                raise PeersError(f"{joined.name} has no worker left")
            print(f"vcuda-peers: a worker was lost: attempt {attempt} of {retries}, over "
                  f"{', '.join(one.node for one in mine)}", file=sys.stderr, flush=True)
