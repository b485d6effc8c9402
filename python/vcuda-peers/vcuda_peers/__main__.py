# SPDX-License-Identifier: Apache-2.0
"""vcuda-peers VERB NETWORK.yaml: a model over the GPUs of several people's machines."""
import json
import signal
import sys
from typing import Annotated, Optional

import typer

from . import network as networks
from .errors import PeersError, mib

# Each verb imports what it wants: `vcuda-peers status` waits for no Ray.


def _wanted(context: typer.Context, program: Optional[list[str]]):
    if not program:
        verb = context.command.name
        raise PeersError(f"{verb} wants a program: vcuda-peers {verb} NETWORK.yaml -- PROGRAM ...")
    return program


Network = Annotated[networks.Network, typer.Argument(metavar="NETWORK.yaml", parser=networks.read)]
Program = Annotated[Optional[list[str]], typer.Argument(metavar="-- PROGRAM ...", callback=_wanted)]
Vcuda = Annotated[str, typer.Option(help="the command vcuda")]
Json = Annotated[bool, typer.Option("--json")]
Job = Annotated[str, typer.Argument(metavar="JOB")]
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)


def _show(rows, *columns):
    table = [columns, *([str(row.get(column, "-")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


@app.command()
def status(network: Network, as_json: Json = False):
    """The workers that are there, and what the validator says of them."""
    from . import look
    said = look.status(network)
    if as_json:
        return print(json.dumps(said))
    unreadable = [{"node": node, "reason": "its entry in the directory cannot be read"}
                  for node in said["unreadable"]]
    rows = [{key: mib(value) if "bytes" in key else value for key, value in row.items()}
            for row in [*said["workers"], *unreadable, *said["away"]]]
    _show(rows, "node", "devices", "verdict", "free_bytes",
          "launches", "bytes_received", "bytes_sent", "round_trip_us", "address", "gpu", "reason")


@app.command()
def run(network: Network, program: Program = None,
        workers: Annotated[str, typer.Option(metavar="ID,ID", help="these, in this order; else all")] = "",
        retries: Annotated[Optional[int], typer.Option(
            help="start it again where a worker is lost; default: its max_retries")] = None,
        vcuda: Vcuda = "vcuda"):
    """A program, behind --, with the workers' GPUs: it sees them as cuda:0 and on."""
    from . import running
    sys.exit(running.run(network, workers.split(",") if workers else [], retries, vcuda, program))


@app.command()
def doctor(network: Network, vcuda: Vcuda = "vcuda"):
    """Whether directory and workers are reached from here."""
    from . import look
    rows = look.doctor(network, vcuda)
    _show([{"state": "WRONG" if wrong else "ok", "what": what, "text": wrong or right}
           for what, wrong, right in rows], "state", "what", "text")
    sys.exit(any(wrong for _, wrong, _ in rows))


@app.command()
def validator(network: Network, vcuda: Vcuda = "vcuda",
              every: Annotated[int, typer.Option(help="seconds between two tests of a worker")] = 60,
              bar: Annotated[int, typer.Option(help="seconds that three failures keep one out")] = 3600,
              address: Annotated[str, typer.Option(
                  help="of Ray's head, for seats on other machines")] = "127.0.0.1",
              port: Annotated[int, typer.Option(help="of Ray's head, and the next one")] = 6380,
              dashboard_port: Annotated[int, typer.Option(help="on loopback")] = 8265,
              no_seats: Annotated[bool, typer.Option(
                  "--no-seats", help="none here: vcuda-peers seat elsewhere")] = False):
    """Judges workers, and has Ray's head and their seats."""
    from . import validator as it
    it.run(network, vcuda, every, bar, address, port, dashboard_port, no_seats)


@app.command()
def seat(network: Network, worker: str, vcuda: Vcuda = "vcuda"):
    """A worker's seat on this machine."""
    from . import engine
    engine.seat(network, worker, vcuda)


@app.command()
def submit(network: Network, program: Program = None, working_dir: Annotated[str, typer.Option(
        metavar="DIR", help="copied to where it runs")] = ""):
    """A program, behind --, as a job of Ray's: prints its name."""
    print(_jobs(network).submit(program, working_dir))


@app.command()
def jobs(network: Network, as_json: Json = False):
    """The jobs."""
    found = _jobs(network).jobs()
    if as_json:
        return print(json.dumps(found))
    _show(found, "job", "status", "entrypoint")


@app.command()
def logs(network: Network, job: Job):
    """What a job printed."""
    sys.stdout.write(_jobs(network).logs(job))


@app.command()
def stop(network: Network, job: Job):
    """Ends a job."""
    _jobs(network).stop(job)


def _jobs(network):
    from .engine import Jobs
    return Jobs.of(network)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # what was started is ended
    try:
        app()
    except PeersError as error:
        sys.exit(f"vcuda-peers: {error}")


if __name__ == "__main__":
    main()
