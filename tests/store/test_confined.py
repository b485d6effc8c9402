# SPDX-License-Identifier: Apache-2.0
"""The store is kept in as workers are: no capability, files by a list, few system calls, a user of its own where that is
configured; what holds is exported, also of a store that took over from one that died. What it is refused by its files and
before its driver is open: tests/stack/test_sandbox.py."""
import contextlib
import os
import re
import signal

from stack import BIN, Skip, kill, one_line
from tensors import store_of, tensors, wait_for
from test_sandbox import kernel_has_all, reachable
from test_users import status, user

AGENT = os.path.join(BIN, "gpu-agent")
USER = 300001


def isolation(agent):
    metrics = agent.http("/metrics")
    parts = dict(re.findall(r'^vcuda_agent_store_sandbox\{part="(\w+)"\} ([01])$', metrics, re.M))
    return re.search(r'^vcuda_agent_store_isolation\{mode="(.*)"\} 1$', metrics, re.M).group(1), parts


@contextlib.contextmanager
def used(*flags):
    """A stack whose store has a sealed tensor, and the program that has it."""
    if not kernel_has_all():
        raise Skip("this kernel's Landlock or seccomp lacks something")
    with tensors(*flags) as s:
        one = s.program()
        one("a = vcuda.create('a', 'u8', (4096,)); fill(a, 7); a.seal()")
        yield s, one
        assert one("every(vcuda.get('a'))") == 7
        one.end()


def test_it_has_no_capability_and_two_filters():
    with used() as (s, _):
        got = status(store_of(s.agent))
        assert int(got["CapPrm"], 16) == int(got["CapEff"], 16) == int(got["CapBnd"], 16) == 0, got
        assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2" and int(got["Seccomp_filters"]) >= 2, got
        assert isolation(s.agent) == ("landlock+seccomp", dict.fromkeys(
            ("hidden", "capabilities", "landlock", "seccomp"), "1"))
        page = s.agent.http("/readyz?verbose")
        assert "[+] sandbox of the store: hidden, capabilities, landlock, seccomp\n" in page, page


def test_as_a_user_of_its_own_it_takes_over_what_another_left():
    if os.geteuid() or not reachable(BIN):
        raise Skip("not root, or other users cannot reach the agent")
    with used("--set", f"store.user={USER}", "--sandbox", "required") as (s, one):
        first = store_of(s.agent)
        assert user(first) == USER
        kill(first, signal.SIGKILL)
        wait_for(lambda: "vcuda_agent_store_restarts_total 1\n" in s.agent.http("/metrics"), 30, "another store")
        assert user(store_of(s.agent)) == USER
        assert one("every(vcuda.get('a'))") == 7
        one("b = vcuda.create('b', 'u8', (4096,)); fill(b, 8); b.seal()")
        assert "a user of its own" in s.agent.http("/readyz?verbose")


def test_switched_off_it_says_so():
    with tensors("--sandbox", "off") as s:
        one = s.program()
        one("a = vcuda.create('a', 'u8', (16,))")
        assert isolation(s.agent)[0] == "none"
        assert "[ ] sandbox of the store: switched off" in s.agent.http("/readyz?verbose")
        one.end()


def test_what_is_wrong_is_said():
    command = [AGENT, "--driver", "software", "--insecure", "--check-config"]
    for wrong in ("x", "-1", "99999999999"):
        one_line([*command, "--set", f"store.user={wrong}"], "store.user", "a user's number")
    if os.geteuid():
        one_line([*command, "--set", "store.user=300001"], "store.user", "lacks: root")
        return
    one_line([*command, "--set", "store.user=200001", "--set", "worker_users=200000-202000"],
             "store.user: 200001 is one of worker_users")
    one_line([*command, "--set", "store.user=300001", "--sandbox", "off"], "store.user", "sandbox")
    if reachable(BIN):
        one_line(["setpriv", "--bounding-set=-kill", *command, "--set", "store.user=300001"], "store.user", "lacks: KILL")
