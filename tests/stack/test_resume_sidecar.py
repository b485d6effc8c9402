# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the sidecar under a running program, and another one on the same socket: within the grace
the program sees only time; beyond it, it is told."""
import contextlib
import os
import random
import signal
import time

from proxy import Proxy
from stack import BUILD, MIB, App, Sidecar, alive, descendants, kill, now, soon, stack, stat_of, wait_for
from test_front import another_front

OUTLAST = os.path.join(BUILD, "stack", "outlast")
# How often a sidecar is killed in the long test.
KILLS = int(os.environ.get("VCUDA_TEST_KILLS", "10"))


class Succession:
    """A stack whose sidecars follow each other on one socket."""

    def __init__(self, s, *flags):
        self.s, self.flags, self.restarts = s, flags, 0

    def app(self, *words, **more):
        app = self.s.app(*words, program=OUTLAST, **more)
        app.line("^started", 20)
        return app

    def another(self):
        before = self.s.sidecar
        before.process.wait(10)
        self.restarts += 1
        self.s.sidecar = Sidecar(os.path.join(self.s.folder, f"after-{self.restarts}"), self.s.address,
                                 *self.flags, socket=before.socket)

    def kill(self, programs=1, number=signal.SIGKILL):
        """Once more, and all programs go on."""
        kill(self.s.sidecar.pid, number)
        self.another()
        self.goes_on(programs)

    def goes_on(self, programs=1):
        wait_for(lambda: self.s.sidecar.log().count("event=channel.resumed") >= programs, 20,
                 "the sessions go on")


@contextlib.contextmanager
def succession(*flags, **more):
    with stack(sidecar=flags, **more) as s:
        yield Succession(s, *flags)
        wait_for(lambda: not s.agent.sessions(), 5, "the sessions ended with their programs")


def done(app, text):
    app.close_stdin()
    app.right(30)
    assert text in app.text(), app.text()


def test_launches():
    with succession() as chain:
        app = chain.app("tally", 1)
        chain.kill()
        done(app, "launches right")


def test_four_threads():
    with succession() as chain:
        app = chain.app("tally", 4)
        chain.kill()
        done(app, "launches right")


def in_a_copy(line):
    with succession() as chain:
        app = chain.app("copies", 256 * MIB)
        app.line(f"^{line}")
        time.sleep(0.03)  # in the middle of it
        chain.kill()
        done(app, "copies right")


def test_in_a_copy_to_the_device():
    in_a_copy("there")


def test_in_a_copy_from_the_device():
    in_a_copy("back")


def test_pinned_memory():
    with succession() as chain:
        app = chain.app("pins")
        chain.kill()
        chain.kill()
        done(app, "rounds right")


def test_while_a_synchronisation_waits():
    with succession() as chain:
        app = chain.app("waits", 3000)
        chain.kill()
        done(app, "waited")


def test_while_an_event_is_asked_about():
    with succession() as chain:
        app = chain.app("asks", 3000)
        chain.kill()
        done(app, "waited")


def test_an_idle_program():
    with succession() as chain:
        app = chain.app("rests")
        chain.kill()
        done(app, "rested")


def test_a_program_that_forks():
    with succession() as chain:
        app = chain.app("forks")
        kill(chain.s.sidecar.pid)
        time.sleep(0.2)  # children are made meanwhile
        chain.another()
        chain.goes_on()
        done(app, "forks right")


def test_two_programs():
    with succession() as chain:
        apps = [chain.app("tally", 2), chain.app("copies", 4 * MIB)]
        chain.kill(2)
        for app in apps:
            done(app, "right")


def test_in_posix_memory():
    with succession("--ipc", "host") as chain:
        apps = [chain.app("tally", 1), chain.app("pins")]
        chain.kill(2)
        for app in apps:
            done(app, "right")


def test_killed_before_it_took_over():
    """Twice in a row: the second one at any point of its beginning."""
    with succession() as chain:
        app = chain.app("tally", 2)
        for ms in (0, 2, 5, 10, 20, 40):
            kill(chain.s.sidecar.pid)
            chain.another()
            time.sleep(ms / 1000)  # the moment is what is tried
        chain.kill()
        done(app, "launches right")


def test_sidecar_and_wire_at_once():
    with succession(between=Proxy) as chain:
        app = chain.app("tally", 2)
        chain.s.between.cut()
        chain.kill()
        chain.s.between.cut()
        wait_for(lambda: chain.s.sidecar.log().count("event=channel.resumed") >= 2, 20, "it goes on")
        done(app, "launches right")


def test_sidecar_and_front_at_once():
    with succession() as chain:
        app = chain.app("tally", 2)
        kill(chain.s.sidecar.pid)
        another_front(chain.s)
        chain.another()
        chain.goes_on()
        done(app, "launches right")


def test_told_to_stop_and_started_again():
    with succession() as chain:
        app = chain.app("tally", 2)
        chain.kill(number=signal.SIGTERM)
        done(app, "launches right")


def test_again_and_again():
    """Under load, at any moment; the moments' seed is printed where it fails."""
    signal.alarm(60 + 3 * KILLS)
    seed = int(os.environ.get("VCUDA_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
    moments = random.Random(seed)
    print(f"    seed {seed}")
    with succession() as chain:
        apps = [chain.app("tally", 3), chain.app("copies", 8 * MIB), chain.app("pins")]
        for _ in range(KILLS):
            time.sleep(moments.random() / 5)
            chain.kill(len(apps))
        for app in apps:
            done(app, "right")


def test_beyond_the_grace():
    with stack(sidecar=("--grace", "1")) as s:
        app = s.app("threads")
        app.line("^running", 20)
        worker = s.agent.worker(app)
        kill(s.sidecar.pid)
        began = now()
        got = app.line("returned 6 at .* errors ([0-9 ]+)", 20)
        assert set(got[1].split()) == {"911"}, got[0]
        assert now() - began > 0.9, "not before the grace is over"
        soon(began, 4, "after a grace of 1 s")
        wait_for(lambda: not alive(worker) and not s.agent.sessions(), 12, "the agent has its memory back")


def test_without_grace():
    with stack(sidecar=("--grace", "0")) as s:
        app = s.app("threads")
        app.line("^running", 20)
        kill(s.sidecar.pid)
        began = now()
        app.line("returned 6 at", 20)
        soon(began, 3, "without grace")


def test_drained_and_told_to_stop():
    """That is the end, and said at once."""
    with stack() as s:
        app = s.app("threads")
        app.line("^running", 20)
        os.system(f"{BUILD}/bin/vcuda-client drain --socket {s.sidecar.socket}")
        began = now()
        s.sidecar.stop()
        app.line("returned 6 at", 20)
        soon(began, 4, "the end of a sidecar that is told to stop")


def sidecars(under):
    return [pid for pid in descendants(under) if (stat_of(pid) or ("",))[0] == "vcuda-client"]


def started_again(start):
    """A sidecar that was started for the program, by whoever did that."""
    with stack() as s:
        app = start(s)
        app.line("^started", 20)
        for times in (1, 2):
            before = wait_for(lambda: [pid for pid in sidecars(os.getpid()) if pid != s.sidecar.pid], 20,
                              "a sidecar of its own")
            kill(before)
            # One that is killed before it has the session resumes nothing.
            wait_for(lambda times=times: f'resumes_total{{result="resumed"}} {times}' in s.agent.http("/metrics"), 25,
                     "it goes on with another one")
        done(app, "launches right")
        for pid in set(sidecars(os.getpid())) - {s.sidecar.pid}:
            kill(pid)


def test_of_vcuda_run():
    started_again(lambda s: App("run", "--agent", s.agent.address, "--", OUTLAST, "tally", "1",
                                program=os.path.join(BUILD, "bin", "vcuda"), preload=False))


def test_of_the_program_itself():
    started_again(lambda s: App("tally", 1, program=OUTLAST, env={"REMOTE_GPU_ADDRESS": s.agent.address,
                                                                  "XDG_RUNTIME_DIR": s.folder}))
