#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command beside an agent with the software GPU and a sidecar that shares memory with it (local://).

    tests/stack/on_local.py COMMAND [ARGUMENT …]

The command finds the sidecar by VCUDA_SOCKET: `vcuda run -- PROGRAM` without --software.  Its exit status is ours.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from stack import Agent, Sidecar, folder  # noqa: E402


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    kept = {name: value for name, value in os.environ.items() if name.startswith("VCUDA_SOFTGPU_")}
    with folder() as path:
        agent = Agent(path, "--address", f"local://{path}/agent.sock", env=kept)
        sidecar = Sidecar(path, f"local://{path}/agent.sock")
        try:
            return subprocess.run(sys.argv[1:], env=dict(os.environ, VCUDA_SOCKET=sidecar.socket), check=False).returncode
        finally:
            sidecar.stop()
            agent.stop()


if __name__ == "__main__":
    sys.exit(main())
