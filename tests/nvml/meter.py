#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent's metrics say of a GPU that NVML knows: utilisation, memory, power, temperature; and what an XID that
NVML tells takes with it: the tensors that lay there.

    meter.py DRIVER FOLDER      FOLDER has the node's libnvidia-ml.so.1 (node.c)
"""
import os
import sys
import time

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "stack"), os.path.join(TESTS, "store")]
sys.dont_write_bytecode = True

from stack import Agent, Sidecar, clean, folder, wait_for  # noqa: E402
from tensors import Program  # noqa: E402

driver, nvml = map(os.path.abspath, sys.argv[1:])
WANTED = {"utilization_ratio": "0.61", "memory_utilization_ratio": "0.62",
          "memory_in_use_bytes": "4.29497e+11", "power_watts": "301", "temperature_celsius": "41"}


def figures(agent):
    return [line for line in agent.http("/metrics").splitlines()
            if any(line.startswith(f"vcuda_agent_device_{name}{{") for name in WANTED)]


def lost(agent):
    """How many tensors, as the alert VcudaTensorsLost counts them."""
    return sum(int(line.rsplit(None, 1)[1]) for line in agent.http("/metrics").splitlines()
               if line.startswith('vcuda_agent_tensor_events_total{event="lost"}'))


try:
    with folder() as path:
        agent = Agent(path, driver=driver)
        gpu = agent.gpu()
        assert not figures(agent), figures(agent)
        agent.stop()
        # A GPU of another UUID is another GPU.
        for uuid, there in (("GPU-00000000-0000-0000-0000-000000000000", False), (gpu["uuid"], True)):
            agent = Agent(os.path.join(path, uuid), "--set", f"libraries.path={nvml}", driver=driver,
                          env={"VCUDA_SOFTGPU_NODE_UUID": uuid})
            wait_for(lambda: "event=library." in agent.log(), 10, "the probe has looked")
            if there:
                wait_for(lambda: figures(agent), 10, "the meter speaks")
            labels = f'gpu="0",UUID="{uuid}",modelName="{gpu["name"]}"'
            expected = [f"vcuda_agent_device_{name}{{{labels}}} {value}"
                        for name, value in WANTED.items()] if there else []
            assert figures(agent) == expected, figures(agent)
            agent.stop()
        # A program's own error (13) is none of the GPU's; one that fell off the bus is.
        xid = os.path.join(path, "xid")
        agent = Agent(os.path.join(path, "xids"), "--set", f"libraries.path={nvml}", "--set", "store.bytes=64MiB",
                      driver=driver, env={"VCUDA_SOFTGPU_NODE_UUID": gpu["uuid"], "VCUDA_SOFTGPU_NODE_XID": xid})
        wait_for(lambda: figures(agent), 10, "the meter speaks")
        sidecar = Sidecar(os.path.join(path, "client"), agent)
        owner, reader = Program(sidecar.socket), Program(sidecar.socket)
        owner("t = vcuda.create('t', 'u8', (4096,), keep=True); fill(t, 7); t.seal()")
        for number in (13, 79):
            assert "event=gpu.fell" not in agent.log(), agent.log()
            with open(xid + "+", "w") as file:
                file.write(str(number))
            os.rename(xid + "+", xid)
            if number == 13:
                time.sleep(6)  # longer than the meter waits
                assert reader("every(vcuda.get('t'))") == 7 and not lost(agent), lost(agent)
        wait_for(lambda: "NVML tells XID 79" in agent.log(), 10, "the GPU has fallen")
        wait_for(lambda: lost(agent) == 1, 12, "what lay there is lost")
        sentence = reader.fails("vcuda.get('t')", 500)
        assert "lost" in sentence or "no tensor" in sentence, sentence
        for program in (owner, reader):
            program.process.kill()
        sidecar.stop()
        agent.stop()
    print("the metrics say what NVML says")
finally:
    clean()
