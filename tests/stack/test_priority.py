# SPDX-License-Identifier: Apache-2.0
"""Classes of tenants: while one of a higher class works, those of a lower one get a turn now and then and
no more; when it is done they have the GPU.  What is compared is GPU time as the agent counts it, and turns."""
import os
import re
import signal
import time

from stack import BIN, App, Sidecar, kill, one_line, wait_for
from test_share import WORDS, counted, served, tenants


def started(socket):
    app = App("hog", WORDS, socket=socket)
    app.line("^started", 20)
    return app


def end(*apps):
    for app in apps:
        app.close_stdin()
        app.right()


def held(agent, tenant):
    got = re.search(rf'^vcuda_agent_tenant_held_total\{{tenant="{tenant}"\}} (\S+)$', agent.http("/metrics"), re.M)
    return int(got.group(1)) if got else None


def classes(*pairs):
    return [word for name, value in pairs for word in ("--set", f"tenants.{name}.priority={value}")]


def used(agent, *names):
    return [counted(agent, "seconds_total", name) for name in names]


def parts(agent, *names, seconds=3):
    """What each used of the GPU meanwhile."""
    before = used(agent, *names)
    time.sleep(seconds)
    return [b - a for a, b in zip(before, used(agent, *names))]


def goes_first(agent):
    """b before a.  On a busy machine b's program leaves gaps, in which a rightly has the GPU."""
    for _ in range(4):
        of_low, of_high = parts(agent, "a", "b")
        if of_high > 0 and of_low <= 0.2 * of_high:
            return
    raise AssertionError(f"the lower class has {of_low} s, the higher {of_high} s")


def goes_on(agent, name, amount=0.2):
    begin = counted(agent, "seconds_total", name)
    wait_for(lambda: counted(agent, "seconds_total", name) > begin + amount, 20, f"{name} has the GPU")


def test_a_higher_class_goes_first():
    with tenants(a=None, b=None, sets=classes(("a", "low"), ("b", "high"))) as (agent, sockets):
        low = started(sockets["a"])
        goes_on(agent, "a")  # alone it has what it wants
        high = started(sockets["b"])
        wait_for(lambda: held(agent, "a"), 20, "the lower one is held up")
        goes_first(agent)
        assert held(agent, "b") == 0
        # It does not stand still: some turns in a while.
        begin = counted(agent, "seconds_total", "a")
        wait_for(lambda: counted(agent, "seconds_total", "a") > begin, 20, "the lower one has a turn")
        names = {s["tenant"]: s["priority"] for s in agent.sessions()}
        assert names == {"a": "low", "b": "high"}, names
        assert 'vcuda_agent_tenant_priority{tenant="a",priority="low"} 1' in agent.http("/metrics")
        end(high)
        goes_on(agent, "a")
        end(low)


def test_the_same_class_is_not_held_up():
    with tenants(a=None, b=None, sets=classes(("*", "low"))) as (agent, sockets):
        apps = [started(sockets["a"]), started(sockets["b"])]
        for name in "ab":
            goes_on(agent, name)
        assert held(agent, "a") == held(agent, "b") == 0
        end(*apps)


def test_the_next_front_knows_the_classes():
    with tenants(a=None, b=None, sets=classes(("a", "low"))) as (agent, sockets):
        apps = [started(sockets["a"]), started(sockets["b"])]
        wait_for(lambda: held(agent, "a"), 20, "the lower one is held up")
        kill(agent.front())
        wait_for(lambda: served(agent), 10, "another front answers")
        wait_for(lambda: len(agent.sessions()) == 2, 10, "it has the sessions")
        goes_on(agent, "b")
        before = held(agent, "a")
        wait_for(lambda: held(agent, "a") > before, 20, "the lower one is held up again")
        goes_first(agent)
        end(*reversed(apps))


def test_the_next_front_knows_the_class_of_who_waits():
    """Its worker's STATS were not read by the front before, and come before anything that the next one asks for."""
    with tenants(a=None, sets=classes(("a", "low"))) as (agent, sockets):
        app = App("hold", socket=sockets["a"])
        app.line("^holding", 20)
        kill(agent.front(), signal.SIGSTOP)
        time.sleep(2.5)
        kill(agent.front())
        wait_for(lambda: served(agent), 10, "another front answers")
        wait_for(lambda: agent.sessions(), 10, "it has the session")
        time.sleep(1.5)  # and has heard of it
        assert [s["priority"] for s in agent.sessions()] == ["low"]
        end(app)


def test_a_client_may_ask_for_a_lower_class_and_for_no_higher_one():
    with tenants(a=None, b=None, sets=classes(("a", "normal"), ("b", "low"))) as (agent, sockets):
        folder = os.path.dirname(agent.folder)
        for tenant, asks, has in (("a", "low", "low"), ("a", "high", "normal"), ("b", "high", "low"),
                                  ("a", "normal", "normal"), ("b", "normal", "low")):
            sidecar = Sidecar(os.path.join(folder, f"{tenant}-{asks}"), agent, "--token-file",
                              os.path.join(folder, tenant), "--priority", asks)
            app = App("hold", socket=sidecar.socket)
            app.line("^holding", 20)
            got = [s["priority"] for s in agent.sessions() if s["pid"] == app.pid]
            assert got == [has], (tenant, asks, got)
            end(app)
        one_line([os.path.join(BIN, "vcuda-client"), "--priority", "urgent", "--agent", "x:1"], "low, normal or high")


def test_what_is_no_class_is_refused():
    one_line([os.path.join(BIN, "gpu-agent"), "--check-config", "--set", "tenants.a.priority=urgent"],
             "low, normal or high")
