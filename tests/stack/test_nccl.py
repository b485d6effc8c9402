# SPDX-License-Identifier: Apache-2.0
"""NCCL at an agent: what its configuration allows, and what workers may then."""
import os
import subprocess

from stack import BIN, BUILD, Agent, App, Sidecar, folder

GPUS = {"VCUDA_SOFTGPU_DEVICES": "2"}


def program(name, *words, socket):
    return App(*words, socket=socket, program=os.path.join(BUILD, "nccl", "13", name))


def isolation(agent):
    return next(line for line in agent.http("/metrics").splitlines()
                if line.startswith("vcuda_agent_worker_isolation{"))


def test_an_agent_that_does_not_allow_it_says_so():
    with folder() as path:
        agent = Agent(path, env=GPUS)
        sidecar = Sidecar(path, agent)
        app = program("first", socket=sidecar.socket)
        app.line("nccl.allowed", 20)
        assert app.wait() == 1, app.text()
        assert "connections" not in isolation(agent), isolation(agent)
        assert "nccl.refused" in agent.log()


def test_with_it_workers_make_connections_and_that_is_said():
    with folder() as path:
        agent = Agent(path, "--set", "nccl.allowed=true", "--set", "nccl.wait=2s", env=GPUS)
        sidecar = Sidecar(path, agent)
        app = program("first", socket=sidecar.socket)
        app.line("three communicators added", 40)
        assert isolation(agent).endswith(', connections allowed"} 1'), isolation(agent)
        app = program("processes", "late", socket=sidecar.socket)
        app.line(r"not all ranks came within 2000 ms \(nccl.wait\)", 20)


def test_an_environment_that_is_not_nccls_is_refused():
    for value in ("LD_PRELOAD=/x.so", "NCCL_DEBUG", "nccl_debug=INFO"):
        got = subprocess.run([os.path.join(BIN, "gpu-agent"), "--insecure", "--check-config", "--set",
                              f"nccl.environment={value}"], capture_output=True, text=True, timeout=20)
        assert got.returncode and "a list of texts like NCCL_DEBUG=WARN" in got.stderr, got
    got = subprocess.run([os.path.join(BIN, "gpu-agent"), "--insecure", "--check-config", "--set",
                          "nccl.environment=NCCL_IB_HCA=mlx5_0:1"], capture_output=True, text=True, timeout=20)
    assert not got.returncode, got
