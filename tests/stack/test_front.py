# SPDX-License-Identifier: Apache-2.0
"""The agent's front dies: sessions run on in their workers, and the next front knows of them what this
one knew.  VCUDA_TEST_FRONTS and VCUDA_TEST_SESSIONS: how often the front is killed in the long test, and
with how many sessions."""
import os
import re
import signal
import time

from stack import LOST, MIB, children, kill, now, stack, wait_for
from test_sharing import end, given, taken, waiting, went_on
from test_stripes import FOR_EVER

FRONTS = int(os.environ.get("VCUDA_TEST_FRONTS", "4"))
SESSIONS = int(os.environ.get("VCUDA_TEST_SESSIONS", "3"))


def another_front(s):
    """Kills the front; the time until the next one answers."""
    before, began = s.agent.front(), now()
    kill(before)

    def answers():
        front = children(s.agent.pid, "agent-front")
        return front and front != [before] and s.agent.http("/healthz")

    wait_for(answers, 10, "another front")
    return now() - began


def accounts(s):
    """What the agent says of its sessions, but for what grows."""
    kept = ("session", "pid", "uid", "pod", "program", "peer", "worker_pid", "started", "tenant",
            "memory_limit_bytes")
    found = [{key: one[key] for key in kept} | {"lease": leased(one)} for one in s.agent.sessions()]
    return sorted(found, key=lambda one: one["pid"])


def leased(session):
    return [gpu["leased_bytes"] for gpu in session["memory"]]


def metric(s, name):
    return float(re.search(rf"^{name} ([0-9.e+]+)$", s.agent.http("/metrics"), re.M)[1])


def test_sessions_run_on_and_their_accounts_with_them():
    with stack() as s:
        free = s.free()
        apps = [s.app("bystander"), s.app("hold", 24 * MIB), s.app("bystander")]
        for app in apps:
            app.line("^(started|holds|hold)")
        wait_for(lambda: len(s.agent.sessions()) == 3, 5, "three sessions")
        wait_for(lambda: s.free() < free - 24 * MIB, 5, "the memory is in the ledger")
        before, left = accounts(s), s.free()
        another_front(s)
        wait_for(lambda: len(s.agent.sessions()) == 3, 5, "three sessions again")
        assert accounts(s) == before, (accounts(s), before)
        assert s.free() == left, "the ledger has other figures than before"
        assert metric(s, "vcuda_agent_sessions_adopted_total") == 3
        later = s.app("sum", 2, 1024)
        later.right()
        for app in apps:
            app.close_stdin()
            app.right()
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")
        wait_for(lambda: s.free() == free, 5, "all memory is back")
        assert "ledger.bug" not in s.agent.log(), s.agent.log()


def test_memory_is_asked_for_while_there_is_no_front():
    """Each program gets to its limit, no byte beyond, however often the front dies meanwhile."""
    with stack(agent=("--set", "lease_initial=2MiB", "--set", "memory_limit=200MiB")) as s:
        undisturbed = s.app("limit", 1 * MIB)
        error = r"^error 2 after (\d+) bytes"
        most = undisturbed.line(error, 20)[1]
        apps = [s.app("limit", 1 * MIB) for _ in range(3)]
        for _ in range(3):
            another_front(s)
        assert [app.line(error, 20)[1] for app in apps] == [most] * 3
        apps.append(undisturbed)
        wait_for(lambda: [leased(one) for one in s.agent.sessions()] == [[200 * MIB]] * 4, 5,
                 "the agent knows of each lease")
        for app in apps:
            app.close_stdin()
            app.right()


def test_clients_that_go_meanwhile_leave_nothing():
    with stack() as s:
        apps = [s.app("bystander") for _ in range(3)]
        for app in apps:
            app.line("^started")
        wait_for(lambda: len(s.agent.sessions()) == 3, 5, "three sessions")
        kill(s.agent.front())
        kill(apps[0].pid)
        wait_for(lambda: len(s.agent.sessions()) == 2, 8, "its session is over")
        another_front(s)
        kill(apps[1].pid)
        wait_for(lambda: len(s.agent.sessions()) == 1, 8, "its session is over")
        apps[2].close_stdin()
        apps[2].right()


def test_shared_memory_keeps_its_name():
    with stack() as s:
        owner = s.app("give", 3 * MIB)
        handle = owner.line("^handle (.*)", 20).group(1)
        another_front(s)
        user = s.app("take", handle)
        assert taken(user) == (0, 1)
        another_front(s)
        owner.close_stdin()
        owner.right()
        wait_for(lambda: len(s.agent.sessions()) == 1, 5, "the owner's session is over")
        late = s.app("take", handle)
        error, _ = taken(late)
        assert error, "opened after its owner was gone"
        end(user, late)


def test_shared_events_keep_their_names():
    with stack() as s:
        owner, handle = given(s)
        before = waiting(s, handle)
        another_front(s)
        user = waiting(s, handle)
        another_front(s)
        owner.close_stdin()
        owner.line("^done")
        went_on(before, user)
        owner.right()


def test_a_worker_that_dies_without_a_front_ends_its_session_only():
    with stack() as s:
        victim, other = s.app("calls"), s.app("bystander")
        victim.line("^(started|calling)")
        other.line("^started")
        worker = s.agent.worker(victim)
        front = s.agent.front()
        kill([front, worker])
        victim.line(rf"error {LOST} at|gave {LOST}", 15)
        wait_for(lambda: len(s.agent.sessions()) == 1, 8, "one session is over")
        other.close_stdin()
        other.right()


def test_again_and_again():
    signal.alarm(60 + 3 * FRONTS + 3 * SESSIONS)
    with stack() as s:
        apps = [s.app("sum", FOR_EVER, 256) for _ in range(SESSIONS)]
        for app in apps:
            app.line("^started", 60)
        wait_for(lambda: len(s.agent.sessions()) == SESSIONS, 5, "all sessions")
        slowest = 0
        for _ in range(FRONTS):
            slowest = max(slowest, another_front(s))
            wait_for(lambda: len(s.agent.sessions()) == SESSIONS, 5, "all sessions again")
            time.sleep(0.05)  # the apps go on, and so do their datagrams
        print(f"{FRONTS} fronts, the slowest answered after {slowest:.2f} s")
        descriptors = len(os.listdir(f"/proc/{s.agent.pid}/fd"))
        for app in apps:
            app.close_stdin()
            app.right()
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")
        wait_for(lambda: len(os.listdir(f"/proc/{s.agent.pid}/fd")) < descriptors, 5,
                 "what was kept for the sessions is closed")


def test_one_that_dies_again_and_again_is_not_waited_for_long():
    """A second is what a front has to be back: of that it waits a fifth, and begins in the rest."""
    with stack() as s:
        app = s.app("bystander")
        app.line("^started")
        for _ in range(8):
            another_front(s)
        waited = [int(ms) for ms in re.findall("event=front.died .*restart_ms=([0-9]+)", s.agent.log())]
        assert len(waited) == 8 and waited[0] == 0, waited
        assert max(waited) <= 200, f"waits of {waited} ms"
        assert len(s.agent.sessions()) == 1
        app.close_stdin()
        app.right()
