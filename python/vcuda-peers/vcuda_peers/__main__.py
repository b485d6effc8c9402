# SPDX-License-Identifier: Apache-2.0
"""vcuda-peers VERB NETWORK.yaml: a model over the GPUs of several people's machines."""
import argparse
import json
import signal
import sys

from . import directory, network
from .errors import PeersError


def status(options):
    from . import look
    said = look.status(network.read(options.network))
    if options.json:
        print(json.dumps(said))
        return
    print(f"{'WORKER':24} {'GPUS':>4}  {'VERDICT':9} {'FREE MIB':>9} {'LAUNCHES':>9} {'MIB':>7}"
          f" {'TRIP US':>7}  ADDRESS, GPU, REASON")
    for one in said["workers"]:
        moved = one.get("bytes_received", 0) + one.get("bytes_sent", 0) if "launches" in one else None
        numbers = (one.get("free_bytes", -(1 << 20)) >> 20, one.get("launches", -1),
                   -1 if moved is None else moved >> 20, one.get("round_trip_us", -1))
        print(f"{one['node']:24} {one['devices']:4}  {one['verdict']:9}",
              *(f"{'-' if number < 0 else number:>{width}}" for number, width in zip(numbers, (9, 9, 7, 7))),
              f" {one['address']}  {one.get('gpu', '')}  {one['reason']}")
    for node in said["unreadable"]:
        print(f"{node:24}    ?  its entry in the directory cannot be read")
    for one in said["away"]:
        print(f"{one['node']:24}    -  {one['verdict']:9} {one['reason']}")


def doctor(options):
    from . import look
    rows = look.doctor(network.read(options.network), options.vcuda)
    for right, what, text in rows:
        print(f"{'ok   ' if right else 'WRONG'}  {what:24}  {text}")
    sys.exit(0 if all(right for right, _, _ in rows) else 1)


def validator(options):
    from . import validator as it
    it.run(options)


def seat(options):
    from . import seats
    seats.seat(network.read(options.network), options.worker, options.vcuda)


def job(options):
    from . import jobs
    mine = jobs.Jobs(network.read(options.network))
    if options.verb == "submit":
        print(mine.submit(options.program, options.working_dir))
    elif options.verb == "logs":
        sys.stdout.write(mine.logs(options.job))
    elif options.verb == "stop":
        mine.stop(options.job)
    elif options.json:
        print(json.dumps(mine.jobs()))
    else:
        for one in mine.jobs():
            print(f"{one['job']:24} {one['status']:10} {one['entrypoint']}")


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
    """`vcuda run` over the workers: the program sees their GPUs as cuda:0 and on."""
    from . import running
    if not options.program:
        raise PeersError("run wants a program: vcuda-peers run NETWORK.yaml -- PROGRAM ...")
    joined = network.read(options.network)

    def command_of(mine):
        return [options.vcuda, "run", "--agent", "+".join(w.address for w in mine),
                "--token-file", joined.token_file, "--", *options.program]

    there, refused = running.usable(joined)
    for node in options.workers.split(","):
        if node in refused:
            raise PeersError(f"the validator of {joined.name} refused '{node}': {refused[node]}")
    mine = chosen(there, options.workers, joined.name)
    sys.exit(running.run(joined, mine, refused, command_of, options.retries))


def main():
    parser = argparse.ArgumentParser(prog="vcuda-peers", description=__doc__)
    verbs = parser.add_subparsers(required=True, dest="verb")

    def verb(name, does, help, *flags, vcuda=False):
        one = verbs.add_parser(name, help=help)
        one.add_argument("network", metavar="NETWORK.yaml")
        for flag, more in flags:
            one.add_argument(flag, **more)
        if vcuda:
            one.add_argument("--vcuda", default="vcuda", help="the command vcuda")
        one.set_defaults(do=does)

    as_json, a_job = ("--json", {"action": "store_true"}), ("job", {"metavar": "JOB"})
    verb("status", status, "the workers that are there, and what the validator says of them", as_json)
    verb("run", run, "a program, behind --, with the workers' GPUs",
         ("--workers", {"default": "", "metavar": "ID,ID", "help": "these, in this order; default: all"}),
         ("--retries", {"type": int, "metavar": "N",
                        "help": "start it again where a worker is lost; default: its max_retries"}),
         vcuda=True)
    verb("doctor", doctor, "whether directory and workers are reached from here", vcuda=True)
    verb("validator", validator, "judges workers, and has Ray's head and their seats",
         ("--every", {"type": int, "default": 60, "metavar": "SECONDS",
                      "help": "between two tests of a worker (60)"}),
         ("--bar", {"type": int, "default": 3600, "metavar": "SECONDS",
                    "help": "that three failures keep one out (3600)"}),
         ("--address", {"default": "127.0.0.1", "help": "of Ray's head, for seats on other machines"}),
         ("--port", {"type": int, "default": 6380, "help": "of Ray's head (6380), and the next one"}),
         ("--dashboard-port", {"type": int, "default": 8265, "help": "on loopback (8265)"}),
         ("--no-seats", {"action": "store_true", "help": "none here: vcuda-peers seat elsewhere"}),
         vcuda=True)
    verb("seat", seat, "a worker's seat on this machine", ("worker", {"metavar": "WORKER"}), vcuda=True)
    verb("submit", job, "a program, behind --, as a job of Ray's: prints its name",
         ("--working-dir", {"default": "", "metavar": "DIR", "help": "copied to where it runs"}))
    verb("jobs", job, "the jobs", as_json)
    verb("logs", job, "what a job printed", a_job)
    verb("stop", job, "ends a job", a_job)
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:at])
    options.program = words[at + 1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what was started is ended
    try:
        options.do(options)
    except PeersError as error:
        sys.exit(f"vcuda-peers: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
