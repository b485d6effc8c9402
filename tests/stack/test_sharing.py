# SPDX-License-Identifier: Apache-2.0
"""Memory and events that processes share: who may have them, how long they stay, and that nobody waits for a
process that is gone."""
import os
import time

from stack import BUILD, MIB, Agent, App, Sidecar, folder, kill, stack, wait_for
from test_users import FLAGS, as_root, user

EVENTS = os.path.join(BUILD, "stack", "events")
NOT_READY = 600
UID = "5f3c9f5e-1111-2222-3333-44445555666"


def taken(app):
    """The error, and the byte that was there."""
    got = app.line(r"^taken (\d+) byte (\d+)", 20)
    return int(got.group(1)), int(got.group(2))


def end(*apps):
    for app in apps:
        app.close_stdin()
        app.right()


def test_what_is_given_outlives_its_owner_and_then_nobody_has_it():
    with stack() as s:
        owner = s.app("give", 3 * MIB)
        handle = owner.line("^handle (.*)", 20).group(1)
        user = s.app("take", handle)
        assert taken(user) == (0, 1)
        user.line("^written", 20)
        owner.close_stdin()
        owner.line("^there is 7", 20)
        owner.right()
        late = s.app("take", handle)
        error, _ = taken(late)
        assert error, "opened after its owner had freed it"
        user.close_stdin()
        user.line("^still 7", 20)
        end(user, late)


def test_another_pod_does_not_get_it():
    with folder() as path:
        agent = Agent(path)
        pods = [Sidecar(os.path.join(path, n), agent,
                        env={"POD_NAMESPACE": "ns", "POD_NAME": n, "POD_UID": UID + n})
                for n in "12"]
        owner = App("give", 4096, socket=pods[0].socket)
        handle = owner.line("^handle (.*)", 20).group(1)
        thief = App("take", handle, socket=pods[1].socket)
        error, _ = taken(thief)
        assert error, "a process of another pod opened it"
        # What it does not get it cannot have spoiled for those who may.
        friend = App("take", handle, socket=pods[0].socket)
        assert taken(friend) == (0, 1)
        # A name changed in one bit is nobody's.
        forged = handle[:24] + "%x" % (int(handle[24], 16) ^ 1) + handle[25:]
        guess = App("take", forged, socket=pods[0].socket)
        error, _ = taken(guess)
        assert error, "a forged name was opened"
        end(thief, friend, guess, owner)


def given(s, how="give"):
    owner = s.app(how, program=EVENTS)
    return owner, owner.line("^handle (.*)", 20).group(1)


def waiting(s, handle, work=10, *by):
    app = s.app("wait", handle, work, *by, program=EVENTS)
    app.line("^opened 0", 20)
    app.line(f"^query {NOT_READY}")
    app.line(f"^waits {NOT_READY}", 20)
    return app


def went_on(*apps):
    for app in apps:
        app.line("^released", 3)
        app.line("^went on", 20)
        app.right()


def test_an_event_is_done_when_its_recorder_says_so():
    with stack() as s:
        owner, handle = given(s)
        users = [waiting(s, handle) for _ in range(2)]
        owner.close_stdin()
        owner.line("^done")
        owner.right()
        went_on(*users)


def test_workers_that_are_users_of_their_own_share_events():
    """All of the sandbox around each, too."""
    as_root()
    with stack(agent=(*FLAGS, "--set", "sandbox=required")) as s:
        owner, handle = given(s)
        done = waiting(s, handle)
        assert user(s.agent.worker(owner)) != user(s.agent.worker(done))
        owner.close_stdin()
        owner.right()
        went_on(done)
        owner, handle = given(s)
        left = waiting(s, handle)
        kill(s.agent.worker(owner))
        went_on(left)


def test_nobody_waits_for_a_program_that_was_killed():
    with stack() as s:
        owner, handle = given(s)
        users = [waiting(s, handle), waiting(s, handle)]
        kill(owner.pid)
        went_on(*users)


def test_nobody_waits_for_a_worker_that_was_killed():
    with stack() as s:
        owner, handle = given(s)
        user = waiting(s, handle)
        kill(s.agent.worker(owner))
        went_on(user)


def test_nobody_waits_for_a_fault():
    with stack() as s:
        owner, handle = given(s, "fault")
        user = waiting(s, handle)
        owner.close_stdin()
        went_on(user)
        owner.line("^error [1-9]")
        assert owner.process.poll() is None, "it lives"
        kill(owner.pid)


def test_a_full_queue_behind_a_wait():
    """More launches than a driver has room for: the loop takes no more of them, and looks whether the recorder lives."""
    with stack(driver=os.path.join(BUILD, "stack", "libidling-driver.so")) as s:
        for by in (), ("by",):
            owner, handle = given(s)
            user = waiting(s, handle, 3000, *by)
            user.line("^queued")
            time.sleep(0.5)  # as much of it as may be is with the driver
            kill(owner.pid)
            went_on(user)


def test_who_waits_may_go():
    with stack() as s:
        owner, handle = given(s)
        user, killed = (s.app("hold", handle, program=EVENTS) for _ in range(2))
        for app in user, killed:
            app.line(f"^holds {NOT_READY}", 20)
        user.close_stdin()
        user.right()
        kill(killed.pid)
        wait_for(lambda: len(s.agent.sessions()) == 1, 8, "their sessions are over")
        owner.close_stdin()
        owner.line("^done")
        owner.right()


def test_another_pod_does_not_get_an_event():
    with folder() as path:
        agent = Agent(path)
        pods = [Sidecar(os.path.join(path, n), agent,
                        env={"POD_NAMESPACE": "ns", "POD_NAME": n, "POD_UID": UID + n})
                for n in "12"]
        owner = App("give", socket=pods[0].socket, program=EVENTS)
        handle = owner.line("^handle (.*)", 20).group(1)
        forged = handle[:50] + "%x" % (int(handle[50], 16) ^ 1) + handle[51:]
        for words, pod in ((handle, 1), (forged, 0)):
            thief = App("hold", words, socket=pods[pod].socket, program=EVENTS)
            thief.line("^opened [1-9]", 20)
            thief.right()
        friend = App("hold", handle, socket=pods[0].socket, program=EVENTS)
        friend.line("^opened 0", 20)
        end(friend, owner)


def test_a_device_without_stream_memory_operations():
    """Events are done before they are shared, as they were before boards."""
    with stack(driver=os.path.join(BUILD, "stack", "libwordless-driver.so")) as s:
        app = s.app(program=os.path.join(BUILD, "programs", "13", "sharing"))
        app.right()
