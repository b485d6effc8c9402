# SPDX-License-Identifier: Apache-2.0
"""WorkerNode and ValidatorNode: `vcuda peer join` and `leave`, and `vcuda-peers validator`, from Python."""
import subprocess
import sys

from . import network as networks
from .errors import PeersError, last_line


class _Node:
    """A context, too: in it the node runs."""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class WorkerNode(_Node):
    """This machine's GPUs are the network's from start() to stop(). FOLDER is the agent's networks_folder,
    not that of this user; where start() starts an agent, that has the ARGUMENTS."""

    def __init__(self, network, *arguments, folder=None):
        self.network, self.arguments = network, ["--", *arguments] if arguments else []
        self.folder = ["--folder", folder] if folder else []

    def start(self):
        self._peer("join", self.network, *self.arguments)

    def stop(self):
        self._peer("leave", networks.read(self.network).name)

    def _peer(self, verb, *words):
        try:
            got = subprocess.run(["vcuda", "peer", verb, *self.folder, *words], text=True,
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except OSError as error:
            raise PeersError(f"vcuda: {error.strerror}") from None
        if got.returncode:
            raise PeersError(last_line(got.stderr, f"vcuda peer {verb} ended with {got.returncode}"))


class ValidatorNode(_Node):
    """The network's validator from start() to stop()."""

    def __init__(self, network, *arguments):
        self.command = [sys.executable, "-m", "vcuda_peers", "validator", network, *arguments]
        self.process = None

    def start(self):
        if self.is_running():
            raise PeersError("this ValidatorNode runs already")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def wait(self, timeout=None):
        return self.process.wait(timeout)

    def stop(self):
        if self.is_running():
            self.process.terminate()
            self.process.wait()
