# SPDX-License-Identifier: Apache-2.0
"""vcuda-peers status|run NETWORK.yaml"""
import argparse
import dataclasses
import json
import os
import sys

from . import directory, network
from .errors import PeersError


def status(options):
    good, bad = directory.workers(network.read(options.network))
    if options.json:
        print(json.dumps({"workers": [dataclasses.asdict(one) for one in good], "unreadable": bad}))
        return
    print(f"{'WORKER':24} {'GPUS':>4}  ADDRESS")
    for one in good:
        print(f"{one.node:24} {one.devices:4}  {one.address}")
    for node in bad:
        print(f"{ascii(node)[1:-1][:63]:24}    ?  its entry in the directory cannot be read")


def chosen(there, wanted, name):
    """The workers of the list WANTED ("": all), in its order."""
    if not there:
        raise PeersError(f"{name} has no worker")
    if not wanted:
        return there
    known = {one.node: one for one in there}
    names = wanted.split(",")
    for node in names:
        if node not in known:
            raise PeersError(f"{name} has no worker '{node}'; there are {', '.join(known)}")
        if names.count(node) > 1:
            raise PeersError(f"--workers names '{node}' twice")
    return [known[node] for node in names]


def run(options):
    """Becomes `vcuda run` over the workers: the program sees their GPUs as cuda:0 and on."""
    if not options.program:
        raise PeersError("run wants a program: vcuda-peers run NETWORK.yaml -- PROGRAM ...")
    joined = network.read(options.network)
    mine = chosen(directory.workers(joined)[0], options.workers, joined.name)
    os.environ["VCUDA_PEERS"] = json.dumps({"network": joined.name, "workers": [[w.node, w.devices] for w in mine]})
    command = [options.vcuda, "run", "--agent", "+".join(w.address for w in mine), "--token-file", joined.token_file,
               "--", *options.program]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise PeersError(f"{command[0]}: {error.strerror}") from None


def main():
    parser = argparse.ArgumentParser(prog="vcuda-peers", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("status", help="the workers that are there")
    one.add_argument("network", metavar="NETWORK.yaml")
    one.add_argument("--json", action="store_true")
    one.set_defaults(do=status)
    one = verbs.add_parser("run", help="a program, behind --, with the workers' GPUs")
    one.add_argument("network", metavar="NETWORK.yaml")
    one.add_argument("--workers", default="", metavar="ID,ID", help="these, in this order; default: all")
    one.add_argument("--vcuda", default="vcuda", help="the command vcuda")
    one.set_defaults(do=run)
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.program = words[at + 1:]
    try:
        options.do(options)
    except PeersError as error:
        sys.exit(f"vcuda-peers: {error}")


if __name__ == "__main__":
    main()
