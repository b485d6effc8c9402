# SPDX-License-Identifier: Apache-2.0
"""The faults, one function each: what it does to a rig while a program is in some state, and what the
program may get.  A fault heals itself before it returns, unless its row says that the rig is worth nothing
afterwards."""
import os
import resource
import signal
import time
import urllib.error

from rig import GONE, alive, children, kill, wait_for

RIGHT, LOST, NOT_READY, NO_MEMORY, NO_DEVICE = "right", 911, 802, 2, 100


# --- the wire ---

def cut(where):
    def inject(rig, app, rng):
        rig.proxy.cut_in(where) if where else rig.proxy.cut()
    return inject


def cut_often(rig, app, rng):
    for _ in range(6):
        rig.proxy.cut()
        time.sleep(rng.uniform(0.0, 0.15))


def no_road(rig, app, rng):
    rig.proxy.dark = True
    rig.proxy.cut()
    time.sleep(rng.uniform(0.2, 1.0))
    rig.proxy.dark = False


def black_hole(seconds):
    def inject(rig, app, rng):
        rig.proxy.hole = True
        time.sleep(seconds)
        rig.proxy.hole = False
    return inject


def slow_wire(rig, app, rng):
    rig.proxy.rate = 300000
    time.sleep(1.0)
    rig.proxy.rate = 0


def jitter(rig, app, rng):
    rig.proxy.jitter = 0.03
    time.sleep(0.7)
    rig.proxy.jitter = 0


def cut_on_jitter(rig, app, rng):
    rig.proxy.jitter = 0.03
    for _ in range(3):
        time.sleep(rng.uniform(0.05, 0.2))
        rig.proxy.cut()
    rig.proxy.jitter = 0


# --- processes ---

def another_front(rig):
    before = children(rig.agent.pid, "agent-front")
    kill(before)

    def answers():
        front = children(rig.agent.pid, "agent-front")
        try:
            return front and front != before and rig.agent.http("/healthz")
        except (OSError, urllib.error.URLError):
            return False
    wait_for(answers, 15, "another front answers")


def front_killed(rig, app, rng):
    another_front(rig)


def front_killed_and_cut(rig, app, rng):
    rig.proxy.cut()
    another_front(rig)


def stopped(whose, seconds=1.2):
    def inject(rig, app, rng):
        pids = whose(rig, app)
        kill(pids, signal.SIGSTOP)
        time.sleep(seconds)
        kill(pids, signal.SIGCONT)
    return inject


def workers_of(rig, app):
    mine = [s["worker_pid"] for s in rig.agent.sessions() if s["pid"] == app.pid and s["worker_pid"]]
    return mine or [pid for pid in children(rig.agent.pid, "agent-worker") if pid != rig.worker][:1]


def worker_killed(rig, app, rng):
    kill(workers_of(rig, app))


def app_killed(rig, app, rng):
    kill(app.pid)


def supervisor_killed(rig, app, rng):
    others = rig.agent.everyone()[1:]
    kill(rig.agent.pid)
    wait_for(lambda: not any(map(alive, others)), 10, "no process of the agent is left")


def sidecar_killed(rig, app, rng):
    """Another one is started on the same socket, as a kubelet does it."""
    kill(rig.sidecar.pid)
    rig.sidecar.process.wait(10)
    rig.start_sidecar()


# --- resources ---

def filled(where):
    """The file system at WHERE(rig) has no byte left for a while."""
    def inject(rig, app, rng):
        path = os.path.join(where(rig), "filler")
        with open(path, "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError:
                pass
        time.sleep(0.7)
        os.remove(path)
    return inject


def no_descriptors(whose):
    """No descriptor more than there are, for a while."""
    def inject(rig, app, rng):
        pid = whose(rig)
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (taken, before[1]))
        time.sleep(0.5)
        if alive(pid):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    return inject


class Fault:
    """OFTEN: what a program may get in every state but those of ELSE.  ENDS: the rig is of no use then.
    SMALL: needs the small file systems."""

    def __init__(self, inject, often=(RIGHT,), ends=False, small=False, **other):
        self.inject, self.often, self.ends, self.small, self.other = inject, often, ends, small, other

    def allowed(self, state):
        return self.other.get(state, self.often)


MAYBE = (RIGHT, NOT_READY)               # attaching: the agent cannot be reached just then
WAVERS = (RIGHT, NOT_READY, LOST)
SHORT = (RIGHT, NOT_READY, NO_MEMORY)

FAULTS = {
    "cut": Fault(cut(None), attach=MAYBE),
    "cut-frame": Fault(cut("frame"), attach=MAYBE),
    "cut-inside": Fault(cut("inside"), attach=MAYBE),
    "cut-bulk": Fault(cut("bulk"), attach=MAYBE),
    "cut-often": Fault(cut_often, attach=MAYBE),
    "no-road": Fault(no_road, attach=MAYBE),
    "stall": Fault(black_hole(1.0)),
    "black-hole": Fault(black_hole(5.0), attach=MAYBE),
    "slow-wire": Fault(slow_wire),
    "jitter": Fault(jitter),
    "cut-on-jitter": Fault(cut_on_jitter, attach=MAYBE),
    "front-kill": Fault(front_killed, attach=MAYBE),
    "front-kill+cut": Fault(front_killed_and_cut, attach=MAYBE),
    "front-stop": Fault(stopped(lambda rig, app: children(rig.agent.pid, "agent-front"))),
    "worker-kill": Fault(worker_killed, often=(LOST,), attach=WAVERS, ending=WAVERS),
    "worker-stop": Fault(stopped(workers_of)),
    "sidecar-stop": Fault(stopped(lambda rig, app: [rig.sidecar.pid])),
    "app-kill": Fault(app_killed, often=(GONE,), ending=(GONE, RIGHT)),
    "app-stop": Fault(stopped(lambda rig, app: [app.pid])),
    "cache-full": Fault(filled(lambda rig: rig.cache), small=True),
    "shm-full": Fault(filled(lambda rig: f"/proc/{rig.sidecar.pid}/root/dev/shm"), small=True, attach=SHORT,
                      pin=(RIGHT, NO_MEMORY)),
    "sidecar-files": Fault(no_descriptors(lambda rig: rig.sidecar.pid), attach=SHORT, pin=(RIGHT, NO_MEMORY)),
    "front-files": Fault(no_descriptors(lambda rig: rig.agent.front()), attach=SHORT),
    "agent-files": Fault(no_descriptors(lambda rig: rig.agent.pid), attach=SHORT),
    "agent-kill": Fault(supervisor_killed, often=(LOST,), ends=True, attach=WAVERS, ending=WAVERS),
    "sidecar-kill": Fault(sidecar_killed, attach=(*WAVERS, NO_DEVICE)),
}
