# SPDX-License-Identifier: Apache-2.0
"""WorkerNode and ValidatorNode: what `vcuda peer join` and `vcuda-peers validator` do, from Python."""
import subprocess
import sys

from .errors import PeersError


class _Node:
    """A context, too: in it the node runs."""

    def __init__(self, network, *arguments):
        self._command, self._process = [*self._words, network, *arguments], None

    def start(self):
        if self.is_running():
            raise PeersError(f"{type(self).__name__} runs already")
        try:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise PeersError(f"{self._command[0]}: {error.strerror}") from None
        return self

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout=None):
        return self._process.wait(timeout)

    def stop(self, patience=60):
        if self.is_running():
            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    __enter__ = start

    def __exit__(self, *_):
        self.stop()


class WorkerNode(_Node):
    """This machine's GPUs are the network's until stop()."""
    _words = ("vcuda", "peer", "join")


class ValidatorNode(_Node):
    _words = (sys.executable, "-m", "vcuda_peers", "validator")
