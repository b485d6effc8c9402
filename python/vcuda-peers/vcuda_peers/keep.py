# SPDX-License-Identifier: Apache-2.0
"""python -m vcuda_peers.keep PARENT PROGRAM ...: runs it, and leaves no process of it, whether it ends, we
are told to end, or our PARENT does.  Ray's nodes are dozens of processes, some in sessions of their own."""
import contextlib
import ctypes
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import psutil

from .errors import last_line

PATIENCE = 3  # seconds for an end in order: less than Ray drains a node
OURS = ("vcuda", "vcuda-client")  # they end behind their program, and leave no file
PDEATHSIG, SUBREAPER = 1, 36  # of prctl(2)
PREFIX, LOCK = "vcuda-peers-", "lock"


def _sweep():
    """Removes the folders of those that were killed, and of whose children none is left."""
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), PREFIX + "*")):
        with contextlib.suppress(OSError):
            if os.lstat(folder).st_uid == os.getuid():  # nobody else's, nor a link of his
                with open(os.path.join(folder, LOCK)) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def own_folder():
    """A Folder for as long as we are."""
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as path:
        with open(os.path.join(path, "new"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(lock.name, os.path.join(path, LOCK))
            yield Folder(path, lock)
    _sweep()  # of whose children some lived before


class Folder:
    """It stays while somebody has LOCK open."""

    def __init__(self, path, lock):
        self.path, self.lock = path, lock

    def start(self, name, command, env):
        """COMMAND under us, whose output is NAME.log; to end it is to end us."""
        with open(os.path.join(self.path, name + ".log"), "w") as log:
            return subprocess.Popen([sys.executable, "-m", __name__, str(os.getpid()), *command], env=env,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    pass_fds=[self.lock.fileno()])

    def last(self, name):
        """The last that it said."""
        with open(os.path.join(self.path, name + ".log"), errors="replace") as log:
            return last_line(log.read(), "it says nothing")


def end_with_parent():
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def main():
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    end_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    if os.getppid() != int(parent):
        return  # it was faster
    program = subprocess.Popen(command)
    try:
        sys.exit(program.wait())
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        program.terminate()
        us, began = psutil.Process(), time.monotonic()
        while left := us.children(recursive=True):
            over = time.monotonic() - began
            for one in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if over > 2 * PATIENCE or over > PATIENCE and one.name() not in OURS:
                        one.kill()
            psutil.wait_procs(left, 0.1)  # those whose parent ended are ours to reap


if __name__ == "__main__":
    main()
