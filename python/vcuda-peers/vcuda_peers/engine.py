# SPDX-License-Identifier: Apache-2.0
"""Ray: its token; its nodes, the head and for each admitted worker a seat, a node here with that worker's
GPUs; its interface for jobs, which outlive their validator."""
import contextlib
import functools
import importlib.metadata
import json
import os
import secrets
import shlex
import sys
import time

from . import directory, keep
from .errors import PeersError, last_line
from .network import check_private

RAY = "2.60.0"
AGAIN = 5  # seconds between two starts of one seat
STORE = 256 << 20  # bytes of shared memory a node may have for Ray's objects


def check_ray(theirs=RAY):
    try:
        ours = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        ours = "none"
    if ours != theirs:
        raise PeersError(f"Ray {theirs} is needed, and here is {ours}: pip install 'ray[default]=={theirs}'")


def take_token(network, make=False):
    """Ray's, into our environment; MAKE writes one where there is none."""
    path = network.ray_token_file
    try:
        if make and not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32) + "\n")
        check_private(path, os.stat(path).st_mode)
    except OSError as error:
        raise PeersError(f"{path}: {error.strerror}: it is made by vcuda-peers validator; copy it from there"
                         ) from None
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=path, RAY_USAGE_STATS_ENABLED="0")


def ray(*words):
    return [sys.executable, "-m", "ray.scripts.scripts", "start", *words, "--block", "--disable-usage-stats",
            "--dashboard-agent-listen-port", "0", "--num-cpus", "1", "--object-store-memory", str(STORE)]


class Seats:
    def __init__(self, network, vcuda, folder):
        self.network, self.vcuda, self.folder = network, vcuda, folder
        self.taken, self.ending = {}, []  # {worker: (address, process, since)}; processes

    def follow(self, head, only=None):
        """A seat for each admitted worker (ONLY for this one), and none for any other."""
        verdicts = directory.verdicts(self.network)
        admitted = {one.node: one.address for one in directory.workers(self.network)[0]
                    if only in (None, one.node) and (said := verdicts.get(one.node))
                    and (said.state, said.address) == ("admitted", one.address)}
        for node, (address, process, since) in list(self.taken.items()):
            ended = process.poll() is not None
            if admitted.get(node) != address or ended and time.monotonic() > since + AGAIN:
                self.say(node, f"ended by itself: {self.folder.last('seat-' + node)}" if ended else "ends")
                process.terminate()
                self.ending.append(process)
                del self.taken[node]
        self.ending = [one for one in self.ending if one.poll() is None]
        for node in sorted(set(admitted) - set(self.taken)):
            self.say(node, "begins")
            process = self.folder.start("seat-" + node, [
                self.vcuda, "run", "--agent", admitted[node], "--token-file", self.network.token_file, "--",
                *ray("--address", head, "--resources", json.dumps({"worker:" + node: 1}))], os.environ)
            self.taken[node] = admitted[node], process, time.monotonic()

    def say(self, node, what):
        print(f"vcuda-peers: {self.network.name}: the seat of {node} {what}", flush=True)

    def end(self):
        self.ending += [process for _, process, _ in self.taken.values()]
        for process in self.ending:
            process.terminate()
        for process in self.ending:
            process.wait()


def seat(network, node, vcuda):
    """One worker's seat here, for a validator elsewhere, as long as it is admitted; until we are ended."""
    check_ray(directory.validator(network).ray)
    take_token(network)
    with keep.own_folder() as folder:
        seats = Seats(network, vcuda, folder)
        try:
            while True:
                seats.follow(directory.validator(network).head, node)
                time.sleep(1)
        finally:
            seats.end()


@contextlib.contextmanager
def _asked():
    try:
        yield
    except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
        raise PeersError(f"Ray says: {last_line(str(error))}") from None


class Jobs:
    def __init__(self, network, dashboard):
        self.network, self.dashboard = network, dashboard

    @functools.cached_property
    def client(self):
        from ray.job_submission import JobSubmissionClient
        return JobSubmissionClient("http://" + self.dashboard)

    @classmethod
    def of(cls, network):
        """Those of its validator."""
        said = directory.validator(network)
        check_ray(said.ray)
        take_token(network)
        return cls(network, said.dashboard)

    def _submit(self, name, said):
        runtime = {"working_dir": said["folder"]} if said["folder"] else {}
        self.client.submit_job(entrypoint=said["entrypoint"], submission_id=name, runtime_env=runtime)

    def submit(self, program, folder):
        said = {"entrypoint": shlex.join(program), "folder": os.path.abspath(folder) if folder else ""}
        name = "job-" + secrets.token_hex(6)
        with _asked():
            self._submit(name, said)
        directory.jobs(self.network, **{name: json.dumps(said)})
        return name

    def jobs(self):
        with _asked():
            return [{"job": one.submission_id, "status": str(one.status.value), "entrypoint": one.entrypoint}
                    for one in self.client.list_jobs() if one.submission_id]

    def logs(self, name):
        with _asked():
            return self.client.get_job_logs(name)

    def stop(self, name):
        with _asked():
            self.client.stop_job(name)
        directory.jobs(self.network, ended=name)

    def carry(self):
        """The validator's: what has not ended when one dies is submitted again by the next."""
        open_jobs = directory.jobs(self.network)
        if not open_jobs:
            return
        with _asked():
            known = {one.submission_id: one for one in self.client.list_jobs()}
            for name, text in open_jobs.items():
                if name not in known:
                    self._submit(name, json.loads(text))
                elif known[name].status.is_terminal():
                    directory.jobs(self.network, ended=name)
