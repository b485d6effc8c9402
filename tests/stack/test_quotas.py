# SPDX-License-Identifier: Apache-2.0
"""Quotas of a tenant hold for all its sessions together, whatever becomes of one of them or of the front."""
import contextlib
import os
import re

from stack import MIB, Agent, App, Sidecar, folder, kill, wait_for
from test_share import WORDS, served


@contextlib.contextmanager
def tenant(**quotas):
    """An agent, and the sockets of two sidecars of one tenant."""
    with folder() as path:
        tokens = os.path.join(path, "tokens")
        with open(tokens, "w") as file:
            file.write("token-a a\n")
        with open(os.path.join(path, "a"), "w") as file:
            file.write("token-a")
        sets = [word for key, value in quotas.items()
                for word in ("--set", f"tenants.a.{key}={value}")]
        agent = Agent(path, "--token-file", tokens, *sets)
        yield agent, [Sidecar(os.path.join(path, f"sidecar-{n}"), agent, "--token-file",
                              os.path.join(path, "a")).socket for n in "ab"]
        agent.stop()


def used(agent, quota):
    got = re.search(rf'^vcuda_agent_tenant_quota_used\{{tenant="a",quota="{quota}"\}} (\S+)$',
                    agent.http("/metrics"), re.M)
    return float(got.group(1)) if got else None


def launching(agent, socket):
    """A program whose session has one module loaded, and launches now and then."""
    before = {s["pid"] for s in agent.sessions()}
    app = App("bystander", socket=socket)
    app.line("^started", 20)
    wait_for(lambda: any(s["launches"] for s in agent.sessions() if s["pid"] not in before), 20,
             "it launches")
    return app


def refused(agent, socket):
    app = App("hog", WORDS, socket=socket)
    app.line("cudaErrorMemoryAllocation", 20)
    assert app.wait(20) != 0
    line = [line for line in agent.log().split("\n") if "session.quota " in line][-1]
    assert "quota=modules limit=2 used=2 own=0 wanted=1" in line, line


def end(agent, apps):
    for app in apps:
        app.close_stdin()
    for app in apps:
        app.right()
    wait_for(lambda: not agent.sessions(), 20, "they are over")


def test_sessions_of_a_tenant_have_their_quotas_together():
    with tenant(modules=2) as (agent, (a, b)):
        apps = [launching(agent, a), launching(agent, b)]
        assert used(agent, "modules") == 2
        refused(agent, a)
        refused(agent, b)
        # Another front: it has what they have, not nothing.
        kill(agent.front())
        wait_for(lambda: served(agent), 10, "another front answers")
        assert used(agent, "modules") == 2
        wait_for(lambda: len(agent.sessions()) == 2, 10, "it has the sessions")
        refused(agent, a)
        # One is killed: what it had is free.
        wait_for(lambda: len(agent.sessions()) == 2, 20, "those that were refused are gone")
        kill(agent.worker(apps[0]))
        wait_for(lambda: len(agent.sessions()) == 1, 20, "it is gone")
        wait_for(lambda: used(agent, "modules") == 1, 10, "its module is not counted any more")
        again = launching(agent, b)
        refused(agent, a)
        wait_for(lambda: len(agent.sessions()) == 2, 20, "those that were refused are gone")
        end(agent, (again, apps[1]))
        wait_for(lambda: used(agent, "modules") == 0, 10, "nothing is left")
        apps[0].wait(20)


def test_bytes_in_flight_are_given_out_and_no_more():
    with tenant(inflight_bytes="20MiB") as (agent, (a, b)):
        apps = [launching(agent, a), launching(agent, b)]  # 16 MiB, and what is left
        assert used(agent, "inflight_bytes") == 20 * MIB
        assert sorted(s["quotas"]["inflight_bytes"]["used"] for s in agent.sessions()) == [4 * MIB, 16 * MIB]
        assert App("hog", WORDS, socket=a).wait(20) != 0
        assert "hello.refused reason=quota" in agent.log(), agent.log()[-600:]
        end(agent, apps)
        assert used(agent, "inflight_bytes") == 0


def test_one_session_leaves_room_for_those_that_may_come():
    with tenant(inflight_bytes="24MiB", sessions=5) as (agent, (a, b)):
        apps = [launching(agent, a) for _ in range(5)]
        assert used(agent, "inflight_bytes") <= 24 * MIB
        assert min(s["quotas"]["inflight_bytes"]["used"] for s in agent.sessions()) >= 4 * MIB
        end(agent, apps)
