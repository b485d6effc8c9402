# SPDX-License-Identifier: Apache-2.0
"""The program of `vcuda-peers run`: started again where a worker was lost under it, heard where it complains.

The program has no directory. It writes lines of JSON into a file of ours, `tell` of VCUDA_PEERS.
"""
import contextlib
import json
import os
import subprocess
import sys
import time

from . import directory, keep
from .errors import PeerLost, PeersError

MOST_REFUSED = 64  # of whom the program is told: its environment is small


def usable(network):
    """({ID: worker}, but for whom the validator refused; {ID: why}). A network may have no validator."""
    refused = {}
    with contextlib.suppress(PeersError):  # a user may read nothing but the workers
        refused = {node: said.reason for node, said in directory.verdicts(network).items()
                   if said and said.state != "admitted"}
    return {one.node: one for one in directory.workers(network)[0] if one.node not in refused}, refused


def chosen(network, there, refused, names):
    """The workers NAMES (none: all), in that order."""
    for node in names:
        if node in refused:
            raise PeersError(f"the validator of {network.name} refused '{node}': {refused[node]}")
        if there and node not in there:
            raise PeersError(f"{network.name} has no worker '{node}'; there are {', '.join(there)}")
        if names.count(node) > 1:
            raise PeersError(f"--workers names '{node}' twice")
    if not there:
        raise PeersError(f"{network.name} has no worker")
    return [there[node] for node in names or there]


def _once(command, said, hear):
    """Its exit status; HEAR gets each object that it wrote into SAID."""
    try:
        program = subprocess.Popen(command, preexec_fn=keep.end_with_parent)
    except OSError as error:
        raise PeersError(f"{command[0]}: {error.strerror}") from None
    status = None
    while status is None:
        try:
            status = program.wait(0.2)
        except SystemExit:  # of SIGTERM
            program.terminate()
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            pass  # the former a terminal sends to the program, too
        for line in said:
            with contextlib.suppress(ValueError, AttributeError, TypeError):
                hear(json.loads(line))
    return status if status >= 0 else 128 - status


def run(network, names, retries, vcuda, program):
    """The program's exit status in the end. It begins on the workers NAMES."""
    def hear(what):
        nonlocal retries
        if retries is None and isinstance(what.get("max_retries"), int):
            retries = what["max_retries"]
        if "complaint" in what:
            try:
                directory.complain(network, json.dumps(what["complaint"]))
            except PeersError as error:
                print(f"vcuda-peers: a complaint did not reach the directory: {error}",
                      file=sys.stderr, flush=True)

    there, refused = usable(network)
    first = mine = chosen(network, there, refused, names)
    attempt = 0
    with keep.own_folder() as folder, open(os.path.join(folder.path, "tell"), "a+") as said:
        while True:
            os.environ["VCUDA_PEERS"] = json.dumps({"network": network.name, "tell": said.name,
                                                    "refused": dict(list(refused.items())[:MOST_REFUSED]),
                                                    "workers": [[one.node, one.devices] for one in mine]})
            status = _once([vcuda, "run", "--agent", "+".join(one.address for one in mine),
                            "--token-file", network.token_file, "--", *program], said, hear)
            if status != PeerLost.STATUS or attempt >= (retries or 0):
                return status
            time.sleep(min(2 ** attempt, 20) / 2)  # who starts an agent again has a moment
            attempt += 1
            there, refused = usable(network)
            mine = [there[one.node] for one in first  # an agent's entry outlives it by 10 s
                    if one.node in there and not directory.reached(there[one.node].address)]
            if not mine:
                raise PeersError(f"{network.name} has no worker left")
            print(f"vcuda-peers: a worker was lost: attempt {attempt} of {retries}, over "
                  f"{', '.join(one.node for one in mine)}", file=sys.stderr, flush=True)
