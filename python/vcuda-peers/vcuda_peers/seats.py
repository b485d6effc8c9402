# SPDX-License-Identifier: Apache-2.0
"""Ray's nodes: the head, and for each admitted worker a seat, a node here with that worker's GPUs."""
import importlib.metadata
import json
import os
import secrets
import sys
import tempfile
import time

from . import directory, keep
from .errors import PeersError
from .network import check_private
from .said import last_line

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


def environment(network, make=False):
    """Ours, with Ray's token; MAKE writes one where there is none."""
    path = network.ray_token_file
    if make and not os.path.exists(path):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise PeersError(f"{path}: {error.strerror}: it is made by vcuda-peers validator; copy it from there"
                         ) from None
    check_private(path, mode)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": path,
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))}


def ray(*words):
    return [sys.executable, "-m", "ray.scripts.scripts", "start", *words, "--block", "--disable-usage-stats",
            "--dashboard-agent-listen-port", "0", "--num-cpus", "1", "--object-store-memory", str(STORE)]


class Seats:
    def __init__(self, network, vcuda, env, folder):
        self.network, self.vcuda, self.env, self.folder = network, vcuda, env, folder
        # worker: (address, process); processes; worker: when
        self.taken, self.ending, self.again = {}, [], {}

    def follow(self, head, only=None):
        """A seat for each admitted worker (of the set ONLY), and none for any other."""
        there = {one.node: one for one in directory.workers(self.network)[0]}
        admitted = {node: there[node].address for node, said in directory.verdicts(self.network).items()
                    if node in there and (only is None or node in only)
                    and said.get("state") == "admitted" and said.get("address") == there[node].address}
        self.ending = [one for one in self.ending if one.poll() is None]
        for node, (address, process) in list(self.taken.items()):
            if admitted.get(node) != address or process.poll() is not None:
                self.say(node, "ends" if process.poll() is None else
                         f"ended by itself: {self.last(node)}")
                process.terminate()
                self.ending.append(process)
                del self.taken[node]
        for node in sorted(set(admitted) - set(self.taken)):
            if time.monotonic() < self.again.get(node, 0):
                continue
            self.say(node, "begins")
            self.again[node] = time.monotonic() + AGAIN
            with open(self.log(node), "w") as log:
                self.taken[node] = admitted[node], keep.start(
                    [self.vcuda, "run", "--agent", admitted[node], "--token-file", self.network.token_file,
                     "--", *ray("--address", head, "--resources", json.dumps({"worker:" + node: 1}))],
                    log, self.env)
        self.again = {node: at for node, at in self.again.items() if node in there}

    def log(self, node):
        return os.path.join(self.folder, f"seat-{node}.log")

    def last(self, node):
        with open(self.log(node), errors="replace") as log:
            return last_line(log.read(), "it says nothing")

    def say(self, node, what):
        print(f"vcuda-peers: {self.network.name}: the seat of {node} {what}", flush=True)

    def end(self):
        for process in [process for _, process in self.taken.values()] + self.ending:
            process.terminate()
        for process in [process for _, process in self.taken.values()] + self.ending:
            process.wait()
        self.taken, self.ending = {}, []


def seat(network, node, vcuda):
    """One worker's seat here, for a validator elsewhere, as long as it is admitted; until we are ended."""
    said, _ = directory.validator(network)
    check_ray(said["ray"])
    with tempfile.TemporaryDirectory(prefix="vcuda-peers-") as folder:
        seats = Seats(network, vcuda, environment(network), folder)
        try:
            while True:
                seats.follow(directory.validator(network)[0]["head"], {node})
                time.sleep(1)
        finally:
            seats.end()
