#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs of two agents that each have NVLinks to a switch (node.c): `vcuda smi topo` shows the links within an agent, and
none from one agent to the other.

    agents.py DRIVER VCUDA
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stack"))
sys.dont_write_bytecode = True

from stack import Agent, Sidecar, clean, environment, folder  # noqa: E402

driver, vcuda = (os.path.abspath(path) for path in sys.argv[1:])
try:
    with folder() as path:
        agents = [Agent(os.path.join(path, name), env={"VCUDA_SOFTGPU_DEVICES": "2"}, driver=driver) for name in "ab"]
        sidecar = Sidecar(path, "+".join(agent.address for agent in agents))
        got = subprocess.run([vcuda, "smi", "topo"], capture_output=True, text=True, timeout=30,
                             env=environment({"VCUDA_SOCKET": sidecar.socket}))
        rows = [line.split() for line in got.stdout.splitlines()[1:5]]
        assert rows == [["GPU0", "X", "NV2", "SYS", "SYS"], ["GPU1", "NV2", "X", "SYS", "SYS"],
                        ["GPU2", "SYS", "SYS", "X", "NV2"], ["GPU3", "SYS", "SYS", "NV2", "X"]], got
finally:
    clean()
