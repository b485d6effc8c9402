# SPDX-License-Identifier: Apache-2.0
"""python -m vcuda_peers.keep PROGRAM ...: runs it, and leaves no process of it, whether it ends, we are told
to end, or who started us does.  Ray's nodes are dozens of processes, some in sessions of their own."""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

import psutil

PATIENCE = 3  # seconds for an end in order: less than Ray drains a node
OURS = ("vcuda", "vcuda-client")  # they end behind their program, and leave no file
PDEATHSIG, SUBREAPER = 1, 36  # of prctl(2)


def start(command, log, env):
    """COMMAND under us; to end it is to end us."""
    return subprocess.Popen([sys.executable, "-m", __name__, str(os.getpid()), *command],
                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)


def end_with_parent():
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def main():
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    end_with_parent()

    def end(*_):
        sys.exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    if os.getppid() != int(parent):
        return  # it was faster
    program = subprocess.Popen(command)
    try:
        status = program.wait()
        sys.exit(status if status >= 0 else 128 - status)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        program.terminate()
        until = time.monotonic() + PATIENCE
        while left := _descendants():
            over = time.monotonic() - until
            for one, name in left:
                if over > PATIENCE or over > 0 and name not in OURS:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
            time.sleep(0.05)


def _descendants():
    """[(process, its name)], those who only wait to be reaped not among them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append((one, one.name()))
    return found


if __name__ == "__main__":
    main()
