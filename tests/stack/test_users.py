# SPDX-License-Identifier: Apache-2.0
"""worker_users: each session's worker is a user of its own, also after a reload and for what is kept of compiled
kernels; and where that cannot be the agent says why and does not start."""
import os
import signal

from stack import BIN, Skip, alive, children, folder, kill, one_line, stack, wait_for
from test_compiled import Caching, landlock
from test_sandbox import confined, reachable

FIRST, LAST = 200000, 200011
FLAGS = ("--set", f"worker_users={FIRST}-{LAST}", "--max-sessions", "8")
AGENT = os.path.join(BIN, "gpu-agent")


def as_root():
    if os.geteuid():
        raise Skip("started as an ordinary user")
    if not reachable(BIN):
        raise Skip(f"other users cannot reach {BIN}")


def status(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file)


def user(pid):
    """Its one user, which is its one group too, and nothing else."""
    got = status(pid)
    uids, gids = set(got["Uid"].split()), set(got["Gid"].split())
    assert len(uids) == 1 and uids == gids, got
    assert int(got["CapPrm"], 16) == int(got["CapEff"], 16) == 0, got
    return int(uids.pop())


def test_sessions_that_run_at_once_are_different_users():
    as_root()
    with stack(agent=FLAGS) as s:
        apps = [s.app("bystander") for _ in range(4)]
        for app in apps:
            app.line("^started", 60)
        workers = [s.agent.worker(app) for app in apps]
        users = {user(worker) for worker in workers}
        assert len(users) == 4 and users <= set(range(FIRST, LAST + 1)), users
        # Those that wait for a session too, once they have begun: until then they are the supervisor's user.
        def waiting():
            idle = set(children(s.agent.pid, "agent-worker")) - set(workers)
            return [worker for worker in idle if set(status(worker)["Uid"].split()) != {"0"}]
        wait_for(waiting, 30, "a worker waits for the next session, and is a user of its own")
        assert user(waiting()[0]) in set(range(FIRST, LAST + 1)) - users
        assert "a user of its own" in s.agent.http("/readyz?verbose")
        kill(workers[0])  # the supervisor reaps and kills what is another user's
        wait_for(lambda: len(s.agent.sessions()) == 3, 30, "its session is over")
        kill(apps[1].pid)
        wait_for(lambda: not alive(workers[1]), 30, "the worker of a killed program is gone")
        # More sessions than there are users: they are given out again.
        for _ in range(2 * (LAST - FIRST)):
            s.app("sum", 1, 1024).right(60)
        for app in apps[2:]:
            app.close_stdin()
            app.right(60)
        # The kernel ends them with the supervisor, though they are not its user.
        left = children(s.agent.pid, "agent-worker")
        assert left
        kill(s.agent.pid)
        wait_for(lambda: not any(map(alive, left)), 30, "the workers end with their agent")


def test_a_reload_knows_who_is_taken():
    as_root()
    with stack(agent=FLAGS) as s:
        app = s.app("bystander")
        app.line("^started", 60)
        before = user(s.agent.worker(app))
        os.utime(AGENT)  # as if it were another one
        kill(s.agent.pid, signal.SIGHUP)
        wait_for(lambda: "event=agent.reloaded" in s.agent.log(), 60, "the reload")
        wait_for(lambda: s.agent.read_ports() and s.agent.is_ready, 60, "it is ready again")
        others = [s.app("bystander") for _ in range(3)]
        for other in others:
            other.line("^started", 60)
        assert user(s.agent.worker(app)) == before
        assert before not in {user(s.agent.worker(other)) for other in others}
        for one in (app, *others):
            one.close_stdin()
            one.right(60)


def test_a_tenants_code_reaches_nothing_as_a_user_of_its_own():
    as_root()
    confined(*FLAGS, "--sandbox", "required", text=", a user of its own")


def test_what_is_kept_of_compiled_kernels_is_the_next_users():
    as_root()
    landlock()
    with folder() as path:
        os.chmod(path, 0o711)
        c = Caching(path, *FLAGS)
        assert c.session("blue") == ["miss"]
        for _ in range(3):
            assert c.session("blue") == ["hit"]
        assert c.session("red") == ["miss"]
    with folder() as path:  # which nobody else may pass
        c = Caching(path, *FLAGS)
        assert c.session("blue") == ["off"]
        assert "event=compiled.off" in c.agent.log() and f"folder={path} " in c.agent.log(), c.agent.log()


def test_what_is_wrong_is_said():
    command = [AGENT, "--driver", "software", "--insecure", "--check-config", "--max-sessions", "8"]
    for users in ("0-5", "9-5", "7", "x", "1-", "1-99999999999", "5-9 ", "-5"):
        one_line([*command, "--set", f"worker_users={users}"], "worker_users", "two numbers like")
    one_line([*command, "--set", "worker_users=1000-1007"], "worker_users: 1000-1007", "max_sessions", "(9)")
    one_line([*command, *FLAGS, "--set", "nccl.allowed=true"], "worker_users", "nccl.allowed")
    one_line([*command, *FLAGS, "--sandbox", "off"], "worker_users", "sandbox")
    if os.geteuid() == 0 and reachable(BIN):
        one_line(["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", *command, *FLAGS],
                 "worker_users", "lacks: root")
        one_line(["setpriv", "--bounding-set=-kill", *command, *FLAGS], "worker_users", "lacks: KILL")
