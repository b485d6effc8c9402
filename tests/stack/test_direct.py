# SPDX-License-Identifier: Apache-2.0
"""Copies and waits between two agents that do not visit the client (docs/SEVERAL-GPUS.md)."""
import contextlib
import os

from stack import BUILD, Agent, App, Sidecar, folder

DIRECT = os.path.join(BUILD, "stack", "direct")
ANYWHERE = "127.0.0.1/32:*"


@contextlib.contextmanager
def agents(*gpus, peers=ANYWHERE, flags=()):
    """An agent for each number, with so many GPUs, that may join the others, and a sidecar that has them all."""
    with folder() as path:
        made = []
        for number, count in enumerate(gpus):
            place = os.path.join(path, str(number))
            os.makedirs(place)
            more = ("--peers", peers) if peers else ()
            made.append(Agent(place, *more, env={"VCUDA_SOFTGPU_DEVICES": str(count)}))
        sidecar = Sidecar(path, "+".join(agent.address for agent in made), *flags)
        try:
            yield made, sidecar
        except AssertionError as error:
            tails = "\n".join(one.log()[-900:] for one in (sidecar, *made))
            raise AssertionError(f"{error}\n{tails}").with_traceback(error.__traceback__) from None


def program(sidecar, *words, **env):
    return App(*words, program=DIRECT, socket=sidecar.socket, env=env)


def right(app, text="right", seconds=60):
    app.close_stdin()
    app.right(seconds)
    assert text in app.text(), app.text()


def direct(agent):
    """Connections between agents that this one has opened so far."""
    return agent.log().count("event=direct.open")


def test_every_form():
    with agents(1, 2) as (made, sidecar):
        right(program(sidecar, "copies"))
        assert [direct(agent) for agent in made] == [1, 1]


def test_events():
    with agents(1, 1) as (made, sidecar):
        right(program(sidecar, "events"))
        assert [direct(agent) for agent in made] == [1, 1]
