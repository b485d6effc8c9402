# SPDX-License-Identifier: Apache-2.0
"""An agent of two GPUs of which one has fallen: who needs the other alone is served, and everybody is told which it is."""
import contextlib
import json
import os
import time

from stack import BUILD, NOT_PERMITTED, Agent, App, Sidecar, children, folder, wait_for

FELL = 214  # cudaErrorECCUncorrectable, of the software GPU's `fall-with`


@contextlib.contextmanager
def two_gpus(fallen_at_first=False, driver="software"):
    """(folder, agent, sidecar, file): while there is the file, GPU 0 has fallen."""
    with folder() as path:
        fall = os.path.join(path, "fallen")
        if fallen_at_first:
            touch(fall + ".0")
        agent = Agent(path, driver=driver, env={"VCUDA_SOFTGPU_DEVICES": "2", "VCUDA_SOFTGPU_FAULT": f"fall-with={fall}"})
        try:
            yield path, agent, Sidecar(path, agent), fall + ".0"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{agent.log()[-1500:]}").with_traceback(error.__traceback__) from None


def touch(file):
    with open(file, "w"):
        pass


def devices(sidecar):
    app = App("count", socket=sidecar.socket)
    got = app.line(r"^error (\d+) devices (\d+)", 30)
    app.right()
    assert got.group(1) == "0", app.text()
    return int(got.group(2))


def fallen(agent):
    """Which GPUs have, as each of the pages says."""
    gpus = [gpu["index"] for gpu in json.loads(agent.http("/v1/gpus"))["gpus"] if gpu["fallen"]]
    metrics = agent.http("/metrics")
    ready, about = agent.http("/readyz"), json.loads(agent.http("/v1/agent"))
    assert about["ready"] and ready.endswith("ok\n"), (ready, about)
    for gpu in (0, 1):
        assert f'vcuda_agent_device_fallen{{gpu="{gpu}",' in metrics
        line = next(line for line in metrics.splitlines() if line.startswith(f'vcuda_agent_device_fallen{{gpu="{gpu}",'))
        assert line.endswith(" 1" if gpu in gpus else " 0"), (gpus, line)
        assert (f"GPU {gpu} has fallen" in ready) == (gpu in gpus), (gpus, ready)
    told = [c["text"] for c in about["conditions"] if c["name"] == "VcudaGpuFallen"]
    assert [text.split(" has fallen")[0] for text in told] == [f"GPU {gpu}" for gpu in gpus], told
    return gpus


def served(path, agent, sidecar):
    """By what is left."""
    assert devices(sidecar) == 1
    app = App("sum", 3, 256, socket=sidecar.socket)
    app.right(30)
    assert "3 rounds right" in app.text(), app.text()
    one = Sidecar(os.path.join(path, "one"), agent, "--gpu-count", "1")
    app = App("bystander", socket=one.socket)
    app.line("^started", 30)
    held = next(s for s in agent.sessions() if s["pid"] == app.pid)["memory"]
    assert [m["gpu"] for m in held if m["leased_bytes"]] == [1], held
    app.close_stdin()
    app.right(30)
    both = Sidecar(os.path.join(path, "both"), agent, "--gpu-count", "2")
    app = App("sum", 1, 64, socket=both.socket)
    app.line(f" gave {NOT_PERMITTED} ", 30)
    assert app.wait() != 0
    assert "2 GPUs are asked for, this agent has 1; GPU 0 has fallen" in both.log(), both.log()


def test_it_falls_and_comes_back():
    with two_gpus() as (path, agent, sidecar, fall):
        assert devices(sidecar) == 2 and fallen(agent) == []
        other = Sidecar(os.path.join(path, "other"), agent, "--gpu-count", "1")
        # Its GPU is 0, and that of each session of its pod, until it falls.
        before = App("bystander", socket=other.socket)
        before.line("^started", 30)
        hit = App("bystander", socket=sidecar.socket)  # has both, and uses the first
        hit.line("^started", 30)
        touch(fall)
        hit.line(f" gave {FELL} ", 30)
        wait_for(lambda: "event=gpu.fell" in agent.log(), 20, "the agent sees it")
        wait_for(lambda: agent.http("/readyz").endswith("ok\n"), 20, "it serves")
        assert fallen(agent) == [0]
        assert hit.wait() != 0
        served(path, agent, sidecar)
        os.unlink(fall)
        # Each session is followed by a new worker, which looks.
        wait_for(lambda: devices(sidecar) == 2, 30, "both are of use again", 0.2)
        assert fallen(agent) == [] and "event=gpu.rose gpu=0" in agent.log()
        App("sum", 3, 256, socket=sidecar.socket).right(30)
        before.process.kill()
        before.wait()


def test_it_has_fallen_before_the_agent_starts():
    with two_gpus(True) as (path, agent, sidecar, _):
        assert fallen(agent) == [0] and "event=gpu.fell gpu=0" in agent.log()
        served(path, agent, sidecar)


def test_a_worker_that_had_seen_it_before_it_fell():
    """It gets ready later, and what it says of the GPU is older than the error that another one met."""
    with two_gpus(driver=os.path.join(BUILD, "stack", "libholding-driver.so")) as (_, agent, sidecar, fall):
        hold = fall.replace(".0", ".hold")
        touch(hold)
        before = children(agent.pid, "agent-worker")
        hit = App("bystander", socket=sidecar.socket)
        hit.line("^started", 30)
        wait_for(lambda: len(children(agent.pid, "agent-worker")) > len(before), 20, "the next worker starts")
        time.sleep(0.5)  # and opens the first GPU
        touch(fall)
        hit.line(f" gave {FELL} ", 30)
        wait_for(lambda: "event=gpu.doubt" in agent.log(), 20, "the agent doubts")
        os.unlink(hold)
        wait_for(lambda: "event=gpu.fell gpu=0" in agent.log(), 20, "another new one looks")
        wait_for(lambda: fallen(agent) == [0], 20, "everybody is told")
        hit.wait()


def test_it_falls_soon_after_a_doubt():
    """New workers are made every ten seconds at the most: an error that comes before is not forgotten."""
    with two_gpus(driver=os.path.join(BUILD, "stack", "libholding-driver.so")) as (_, agent, sidecar, fall):
        fall, hold = fall.replace(".0", ".1"), fall.replace(".0", ".hold")

        def hit(meanwhile):
            app = App("bystander", socket=sidecar.socket, env={"CUDA_VISIBLE_DEVICES": "1"})
            app.line("^started", 30)
            wait_for(lambda: 'vcuda_agent_workers{state="ready"} 1\n' in agent.http("/metrics"), 20, "the next worker is ready")
            meanwhile()
            touch(fall)
            app.line(f" gave {FELL} ", 30)
            app.wait()
        hit(lambda: touch(hold))
        wait_for(lambda: "event=gpu.doubt" in agent.log(), 20, "the agent doubts")
        os.unlink(fall)
        os.unlink(hold)  # the one that looks finds it well
        hit(lambda: None)
        wait_for(lambda: "event=gpu.fell gpu=1" in agent.log(), 20, "it is looked at again")
        assert agent.log().count("event=gpu.doubt") == 2
