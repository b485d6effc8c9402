# SPDX-License-Identifier: Apache-2.0
"""Memory that processes share: who may have it, and how long it stays."""
import os

from stack import MIB, Agent, App, Sidecar, folder, stack

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
