# SPDX-License-Identifier: Apache-2.0
"""`gpu_spread`: the GPUs of a process on one agent of the list or on several, and the same for all of a pod."""
import contextlib
import json
import os
import subprocess

from stack import BIN, BUILD, MIB, Agent, App, Sidecar, environment, folder, one_line, wait_for

CLIENT = os.path.join(BIN, "vcuda-client")
SPREAD = os.path.join(BUILD, "stack", "spread")


@contextlib.contextmanager
def pool(spread, wanted, *agents, flags=()):
    """An agent for each (GPUs, memory of each), and a sidecar that is to choose among them."""
    with folder() as path:
        made = []
        for number, (gpus, memory) in enumerate(agents):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            made.append(Agent(place, env={"VCUDA_SOFTGPU_DEVICES": str(gpus), "VCUDA_SOFTGPU_MEMORY": memory}))
        names = ",".join(agent.address for agent in made)
        yield made, Sidecar(path, names, "--gpu-count", str(wanted), "--gpu-spread", spread, *flags)


def running(sidecar, count):
    """A program that works on all of its devices until its input ends."""
    app = App("go-on", program=SPREAD, socket=sidecar.socket)
    app.line(f"^running on {count}", 30)
    return app


def end(app, last):
    app.close_stdin()
    app.right(60)
    assert f"device {last} right" in app.text(), app.text()


def gpus(agent):
    """On how many GPUs each session there has memory."""
    return [sum(bool(gpu["leased_bytes"]) for gpu in session["memory"]) for session in agent.sessions()]


def test_two_gpus_of_two_agents():
    with pool("if-needed", 2, (1, "1G"), (1, "1G")) as (made, sidecar):
        app, other = running(sidecar, 2), running(sidecar, 2)
        assert [gpus(agent) for agent in made] == [[1, 1], [1, 1]]
        end(app, 1)
        end(other, 1)
        App("between", program=SPREAD, socket=sidecar.socket).right(60)


def test_one_that_has_enough_is_taken_alone():
    with pool("if-needed", 2, (1, "2G"), (3, "1G"), (2, "512M")) as (made, sidecar):
        app = running(sidecar, 2)
        assert [gpus(agent) for agent in made] == [[], [2], []]
        end(app, 1)


def test_never():
    with pool("never", 2, (1, "2G"), (2, "1G")) as (made, sidecar):
        app = running(sidecar, 2)
        assert [gpus(agent) for agent in made] == [[], [2]]
        end(app, 1)
    with pool("never", 2, (1, "1G"), (1, "1G")) as (made, sidecar):
        app = App("all", program=SPREAD, socket=sidecar.socket)
        assert app.wait(30) and "2 GPUs are asked for, this agent has 1" in app.text(), app.text()


def test_always():
    with pool("always", 3, (2, "2G"), (4, "1G")) as (made, sidecar):
        app = running(sidecar, 3)
        assert [gpus(agent) for agent in made] == [[2], [1]]
        end(app, 2)


def test_too_few():
    with pool("if-needed", 4, (1, "1G"), (2, "1G")) as (made, sidecar):
        needle = "4 GPUs are asked for; the agents of "
        app = App("all", program=SPREAD, socket=sidecar.socket)
        assert app.wait(30) and needle in app.text() and "(2) have 3" in app.text(), app.text()
        names = ",".join(agent.address for agent in made)
        one_line([CLIENT, "probe", "--agent", names, "--gpu-count", "4", "--gpu-spread", "always"], needle, status=3)


def test_an_agent_that_is_gone_is_not_counted():
    """… and one that has two names is counted once."""
    with pool("if-needed", 2, (1, "1G"), (1, "1G"), (1, "512M")) as (made, sidecar):
        made[0].stop()
        app = running(sidecar, 2)
        assert [gpus(agent) for agent in made[1:]] == [[1], [1]]
        end(app, 1)
    with folder() as path:
        agent = Agent(path, "--address", "0.0.0.0")
        port = agent.address.split(":")[1]
        sidecar = Sidecar(path, f"{agent.address},127.0.0.2:{port}", "--gpu-count", "2", "--gpu-spread", "if-needed")
        app = App("all", program=SPREAD, socket=sidecar.socket)
        assert app.wait(30) and "(1) have 1" in app.text(), app.text()


def test_the_choice_stays_while_a_process_is_there():
    with pool("if-needed", 1, (1, "1G"), (1, "900M")) as (made, sidecar):
        app = App("hold", 600 * MIB, socket=sidecar.socket)
        app.line("^holding", 30)
        App("sum", 1, 64, socket=sidecar.socket).right()  # the other one is the freer now
        assert len(made[0].sessions()) >= 1 and not made[1].sessions()
        app.close_stdin()
        app.right()
        wait_for(lambda: not json.loads(status(sidecar))["channels"], 10, "nobody is joined")
        made[0].stop()
        end(running(sidecar, 1), 0)
        assert sidecar.log().count("event=spread.chosen") == 2


def status(sidecar):
    return subprocess.run([CLIENT, "status", "--json", "--socket", sidecar.socket], capture_output=True, text=True,
                          timeout=20, env=environment(), check=True).stdout


def test_one_sentence_each():
    for words, needle in ((("--gpu-spread", "sometimes"), "is not never, if-needed or always"),
                          (("--gpu-spread", "always"), "gpu_count says it"),
                          (("--gpu-spread", "if-needed", "--gpu-count", "2", "--agent", "b+c"), "with commas they are")):
        one_line([CLIENT, "run", "--agent", "a", "--socket", "/tmp/vcuda-none/s", *words], needle, status=2)
    one_line([CLIENT, "run"], "VCUDA_GPU_SPREAD", "most", status=2, env={"VCUDA_GPU_SPREAD": "most"})
