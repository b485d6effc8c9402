# SPDX-License-Identifier: Apache-2.0
"""NCCL at an agent: what its configuration allows, and what workers may then."""
import contextlib
import json
import os
import re
import subprocess

from stack import BIN, BUILD, Agent, App, Sidecar, folder, kill
from test_agents import agents

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


ALLOWED = ("--set", "nccl.allowed=true", "--set", "nccl.wait=20s")


@contextlib.contextmanager
def two():
    """A sidecar with two agents of one GPU each, which allow NCCL."""
    with agents(1, 1, more=ALLOWED) as (made, sidecar):
        yield made, sidecar


def right(sidecar, name, *words, env=None):
    app = App(*words, socket=sidecar.socket, program=os.path.join(BUILD, "nccl", "13", name), env=env or {})
    app.right(60)
    return app.text()


def test_ranks_of_a_process_at_two_agents():
    with two() as (_, sidecar):
        for name in ("first", "collectives", "errors", "apart"):
            right(sidecar, name)


def test_a_communicator_grows_over_agents():
    """By ranks of one process at both, and by four processes, of which two join."""
    with agents(2, 2, more=ALLOWED) as (_, sidecar):
        assert "to 4 processes" in right(sidecar, "grow")
    with two() as (_, sidecar):
        assert "to 2 processes" in right(sidecar, "grow")


def test_windows_at_two_agents():
    """Ranks of one process, and of two, put into each other's memory."""
    with two() as (_, sidecar):
        right(sidecar, "windows")
        for word in ("no_post", "no_learn", "no_cache"):
            right(sidecar, "windows", env={"VCUDA_PERF": word})


def test_memory_and_estimates_at_two_agents():
    with two() as (_, sidecar):
        right(sidecar, "suspend")


def test_parameters_are_those_of_the_agents_environment():
    with folder() as path:
        agent = Agent(path, *ALLOWED, "--set", "nccl.environment=NCCL_BUFFSIZE=12345", env=GPUS)
        sidecar = Sidecar(path, agent)
        assert "12 parameters" in right(sidecar, "params", env={"NCCL_BUFFSIZE": "99"})
        assert "NCCL_BUFFSIZE=12345" in right(sidecar, "params", "NCCL_BUFFSIZE", env={"NCCL_BUFFSIZE": "99"})


def missing_of(version):
    """What the programs are told of an agent whose NCCL is that old."""
    with folder() as path:
        library = os.path.join(BUILD, "stack", f"nccl-{version}")
        agent = Agent(path, *ALLOWED, "--set", f"libraries.nccl={library}", env=GPUS,
                      driver=os.path.join(BUILD, "lib", "libvcuda-softgpu.so"))
        sidecar = Sidecar(path, agent)
        found = set(re.findall("missing: (.*)", right(sidecar, "missing")))
        right(sidecar, "first")
        return found


GROWTH = {"ncclCommGetUniqueId", "ncclCommGrow"}
SIGNALS = {"ncclSignal", "ncclWaitSignal"}
LATER = {"ncclCommMemStats", "ncclCommSuspend", "ncclCommResume", "ncclParamBind",
         "ncclParamGetAllParameterKeys"}


def test_an_older_nccl_says_what_it_lacks():
    with folder() as path:
        sidecar = Sidecar(path, Agent(path, *ALLOWED, env=GPUS))
        assert "0 missing" in right(sidecar, "missing")
    assert missing_of("2.28") == GROWTH | SIGNALS | LATER | {"ncclPutSignal"}
    assert missing_of("2.18") == GROWTH | SIGNALS | LATER | {
        "ncclCommWindowRegister", "ncclGroupSimulateEnd"}


def test_ranks_at_two_agents_with_every_switch():
    with two() as (_, sidecar):
        for word in ("no_post", "no_learn", "no_cache", "no_batch", "no_push"):
            right(sidecar, "first", env={"VCUDA_PERF": word})
            right(sidecar, "apart", env={"VCUDA_PERF": word})
        right(sidecar, "first", env={"VCUDA_STRICT": "1"})


def round_trips(sidecar, thing, count):
    with folder() as path:
        stats = os.path.join(path, "stats")
        right(sidecar, "steady", thing, str(count), env={"VCUDA_STATS": stats})
        with open(stats) as file:
            return json.load(file)["round_trips"]


def test_a_collective_between_two_agents_waits_for_nobody():
    with two() as (_, sidecar):
        for thing in ("all_reduce", "exchange", "put_signal"):
            few, many = round_trips(sidecar, thing, 2), round_trips(sidecar, thing, 52)
            assert few == many, (thing, few, many)


def test_an_agent_of_two_that_does_not_allow_it():
    """The other one does not wait for its rank."""
    with folder() as path:
        made = []
        for number, more in enumerate(((), ALLOWED)):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            made.append(Agent(place, *more, env={"VCUDA_SOFTGPU_IDENTITY": place}))
        sidecar = Sidecar(path, "+".join(agent.address for agent in made))
        app = program("first", socket=sidecar.socket)
        app.line(r"agent 0: the agent's configuration does not allow NCCL \(nccl.allowed\)", 10)
        assert app.wait() == 1, app.text()


def test_an_agent_that_is_killed_under_a_collective():
    with two() as (made, sidecar):
        app = program("apart", "wait", socket=sidecar.socket)
        app.line("ready", 20)
        kill(made[1].everyone())
        app.line("the other rank is an error", 20)
        assert app.wait() == 0, app.text()
