# SPDX-License-Identifier: Apache-2.0
"""kill -9 and silence of each process of the stack, in the middle of a copy, of a launch and of a
wait: who must notice does, in time, and nobody else does."""
import contextlib
import os
import signal
import socket
import time

from stack import BUILD, LOST, MIB, alive, children, kill, now, stack, wait_for

DEADLINE = 30.0  # s, against hanging: nothing here takes long, but the machine may be busy
SILENCE = 8.0    # s of silence that the stack does not put up with

# Where a process is killed, nobody is told so by waiting: silence would be noticed after an hour.
PATIENT = {"VCUDA_SIDECAR_TIMEOUT": "3600"}


def patient_stack(**more):
    return stack(agent=("--set", "worker_silence=3600"), sidecar=("--ping-timeout", "3600", "--grace", "2"), **more)


def bystander(s):
    app = s.app("bystander")
    app.line("^started")
    return app


def still_right(app):
    app.close_stdin()
    app.right()
    assert "wrong" not in app.text() and "rounds right" in app.text(), app.text()


def received(s, app):
    return sum(session["bytes_received"] for session in s.agent.sessions()
               if session["pid"] == app.pid)


# What an app is killed in the middle of: its words, the line that it says when it is there.
MIDDLES = {
    "copy": (("copy", 256 * MIB), "^copying"),
    "launches": (("launch",), "^launching"),
    "wait": (("wait",), "^launched 0"),
}


def killed_app(middle):
    with patient_stack() as s:
        other = bystander(s)
        free, contexts = s.free(), s.agent.gpu()["memory_context_bytes"]
        words, line = MIDDLES[middle]
        app = s.app(*words, env=PATIENT)
        app.line(line)
        worker = s.agent.worker(app)
        wait_for(lambda: s.free() < free, 5, "the app's memory is in the ledger")
        if middle == "copy":
            wait_for(lambda: received(s, app) > MIB, 10, "the copy is under way")
        kill(app.pid)
        wait_for(lambda: not alive(worker), DEADLINE, "the worker is gone")
        wait_for(lambda: all(x["pid"] != app.pid for x in s.agent.sessions()), DEADLINE,
                 "the session is gone")
        wait_for(lambda: s.free() >= free - max(0, s.agent.gpu()["memory_context_bytes"] - contexts),
                 DEADLINE, "its memory is free again")
        still_right(other)


def test_app_killed_in_a_copy():
    killed_app("copy")


def test_app_killed_between_launches():
    killed_app("launches")


def test_app_killed_in_a_wait_for_a_kernel_without_end():
    killed_app("wait")


def app_gets(app, want=LOST):
    """The app's error is WANT, is sticky, and later calls wait for nothing."""
    got = app.line(r"error (\d+) at", DEADLINE)
    assert int(got[1]) == want, f"error {got[1]}, not {want}"
    got = app.line(r"afterwards (\d+) wrong", DEADLINE)
    assert got[1] == "0", app.text()
    assert app.wait() == 0, app.text()


def killed_worker(words, line):
    with patient_stack() as s:
        other = bystander(s)
        app = s.app(*words, env=PATIENT)
        app.line(line)
        kill(s.agent.worker(app))
        app_gets(app)
        still_right(other)


def test_worker_killed_in_a_copy():
    killed_in_copy("worker")


def killed_in_copy(who):
    """copy says its error and ends: nothing is called afterwards."""
    with patient_stack() as s:
        app = s.app("copy", 256 * MIB, env=PATIENT)
        app.line("^copying")
        worker = s.agent.worker(app)
        wait_for(lambda: received(s, app) > MIB, 10, "the copy is under way")
        kill(worker if who == "worker" else s.sidecar.pid)
        got = app.line(r"error (\d+) at", DEADLINE)
        assert int(got[1]) == LOST, got[0]


def test_worker_killed_in_a_wait():
    killed_worker(*MIDDLES["wait"])


def test_worker_killed_between_launches():
    killed_worker(*MIDDLES["launches"])


def test_worker_killed_and_all_threads_return():
    with patient_stack() as s:
        app = s.app("threads", env=PATIENT)
        app.line("^running")
        kill(s.agent.worker(app))
        got = app.line(r"returned (\d+) at [\d.]+, errors ([\d ]+)", DEADLINE)
        assert got[1] == "6", got[0]
        assert set(got[2].split()) == {str(LOST)}, got[0]
        app.line("afterwards 0 wrong")


def killed_sidecar(words, line):
    with patient_stack() as s:
        app = s.app(*words, env=PATIENT)
        app.line(line)
        worker = s.agent.worker(app)
        kill(s.sidecar.pid)
        app_gets(app)
        wait_for(lambda: not alive(worker), DEADLINE, "the worker is gone")


def test_sidecar_killed_in_a_copy():
    killed_in_copy("sidecar")


def test_sidecar_killed_in_a_wait():
    killed_sidecar(*MIDDLES["wait"])


def test_sidecar_killed_between_calls():
    killed_sidecar(("calls",), "^calling")


def test_sidecar_killed_and_all_threads_return():
    with patient_stack() as s:
        app = s.app("threads", env=PATIENT)
        app.line("^running")
        kill(s.sidecar.pid)
        app.line("returned 6 at", DEADLINE)


IMPATIENT = {"VCUDA_SIDECAR_TIMEOUT": "2"}  # the least; 5 s by default


def stopped_sidecar(words, line, env=IMPATIENT):
    with stack() as s:
        app = s.app(*words, env=env)
        app.line(line)
        kill(s.sidecar.pid, signal.SIGSTOP)
        try:
            app_gets(app)
        finally:
            kill(s.sidecar.pid, signal.SIGCONT)
        wait_for(lambda: not s.agent.sessions(), 5, "the session is gone")
        s.app("sum", 1, 64).right()


def test_sidecar_stopped_in_a_wait():
    stopped_sidecar(*MIDDLES["wait"], env=None)


def test_sidecar_stopped_and_the_agent_gives_its_memory_back():
    with stack(sidecar=("--grace", "2")) as s:
        free = s.free()
        app = s.app("hold", 64 * MIB)
        app.line("^holding")
        wait_for(lambda: s.free() < free, 5, "the memory is in the ledger")
        kill(s.sidecar.pid, signal.SIGSTOP)
        try:
            # 15 s of silence, the grace, 5 s more.
            wait_for(lambda: not s.agent.sessions(), DEADLINE, "the session is gone", every=0.2)
            wait_for(lambda: s.free() == free, DEADLINE, "its memory is free again")
        finally:
            kill(s.sidecar.pid, signal.SIGCONT)


def test_sidecar_stopped_between_launches():
    stopped_sidecar(*MIDDLES["launches"])


def test_sidecar_stopped_while_a_program_polls():
    stopped_sidecar(("poll",), "^polling")


def test_sidecar_killed_while_a_program_polls():
    killed_sidecar(("poll",), "^polling")


def test_sidecar_stopped_while_a_program_pins_memory():
    stopped_sidecar(("pin",), "^pinning")


def test_sidecar_stopped_before_a_program_comes():
    with stack() as s:
        s.app("sum", 1, 64).right()
        kill(s.sidecar.pid, signal.SIGSTOP)
        try:
            app = s.app("count", env=IMPATIENT)
            app.line("vcuda: no GPU .error 802.: the sidecar does not answer; was it stopped", DEADLINE)
            app.right()
        finally:
            kill(s.sidecar.pid, signal.SIGCONT)


def test_sidecar_stopped_with_a_full_queue_before_a_program_comes():
    with stack() as s, contextlib.ExitStack() as crowd:
        kill(s.sidecar.pid, signal.SIGSTOP)
        try:
            with contextlib.suppress(BlockingIOError):
                for _ in range(1000):
                    silent = crowd.enter_context(
                        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                    silent.setblocking(False)
                    silent.connect(s.sidecar.socket)
            app = s.app("count", env=IMPATIENT)
            app.line("vcuda: no GPU .error 802.: .*does not take connections", DEADLINE)
            app.right()
        finally:
            kill(s.sidecar.pid, signal.SIGCONT)


def test_a_program_that_was_stopped_goes_on():
    """It sees no sign of life for longer than it is patient, but it did not look."""
    with stack() as s:
        app = s.app("bystander", env=IMPATIENT)
        app.line("^started")
        for stopped in ([app.pid], [app.pid, s.sidecar.pid]):
            kill(stopped, signal.SIGSTOP)
            time.sleep(3.5)  # how long is what is tried
            kill(stopped, signal.SIGCONT)
        still_right(app)


def test_a_slow_kernel_is_no_stopped_sidecar():
    with stack() as s:
        s.app("linger", 4, env=IMPATIENT).right(30)


def agent_silenced(words, line, number):
    with stack(sidecar=("--grace", "0")) as s:
        app = s.app(*words)
        app.line(line)
        everyone = s.agent.everyone()
        assert len(everyone) >= 3, everyone
        kill(everyone, number)
        try:
            app_gets(app)
        finally:
            kill(everyone, signal.SIGCONT)
            kill(everyone)


def test_agent_killed_in_a_wait():
    agent_silenced(*MIDDLES["wait"], signal.SIGKILL)


def test_agent_killed_between_calls():
    agent_silenced(("calls",), "^calling", signal.SIGKILL)


def test_agent_silent_between_calls():
    agent_silenced(("calls",), "^calling", signal.SIGSTOP)


def test_agent_silent_in_a_wait():
    agent_silenced(*MIDDLES["wait"], signal.SIGSTOP)


def test_agent_silent_between_launches():
    agent_silenced(*MIDDLES["launches"], signal.SIGSTOP)


def test_busy_is_not_silent():
    """Longer than silence may last: a kernel runs, and the wire is full of copies behind it."""
    with stack() as s:
        app = s.app("linger", 9)
        app.right(30)
        assert "lingered" in app.text(), app.text()


def test_long_call_of_the_driver_is_not_silent():
    with stack(driver=os.path.join(BUILD, "stack", "libslow-driver.so")) as s:
        app = s.app("sum", 2, 64)
        began = now()
        app.right(30)
        assert now() - began > SILENCE, "the driver was not slow at all"


def test_app_killed_in_a_long_call_of_the_driver():
    """The worker cannot look at its link, and yet it does not outlast the call (9 s)."""
    with stack(driver=os.path.join(BUILD, "stack", "libslow-driver.so")) as s:
        app = s.app("sum", 2, 64)
        worker = wait_for(lambda: s.agent.worker(app), 5, "the app has a worker")
        time.sleep(1)  # in the call
        kill(app.pid)
        wait_for(lambda: not alive(worker), 5, "the worker is gone")


def test_silence_shorter_than_that_is_forgiven():
    with stack() as s:
        app = s.app("bystander")
        app.line("^started")
        worker = s.agent.worker(app)
        kill(worker, signal.SIGSTOP)
        time.sleep(3)  # how long is what is tried
        kill(worker, signal.SIGCONT)
        app.close_stdin()
        app.right()


def test_supervisor_killed_ends_the_agent():
    with stack() as s:
        app = s.app(*MIDDLES["wait"][0])
        app.line("^launched 0")
        others = s.agent.everyone()[1:]
        kill(s.agent.pid)
        app_gets(app)
        wait_for(lambda: not any(map(alive, others)), 5, "no process of the agent is left")


def test_front_killed_and_the_agent_serves_again():
    with stack() as s:
        front = s.agent.front()
        kill(front)
        wait_for(lambda: children(s.agent.pid, "agent-front") not in ([], [front]), DEADLINE,
                 "another front")
        app = s.app("sum", 1, 64)
        app.line("^started", DEADLINE)
        app.right()


def test_warm_worker_killed_is_replaced():
    with stack() as s:
        front = s.agent.front()
        for _ in range(3):
            for worker in children(s.agent.pid, "agent-worker"):
                kill(worker)
        app = s.app("sum", 2, 64)
        app.right()
        assert s.agent.front() == front, "the front died too"


def test_killed_again_and_again():
    """No session, memory or descriptor is left of twenty apps killed at different moments."""
    with stack() as s:
        s.app("sum", 1, 64).right()
        free = wait_for(lambda: not s.agent.sessions() and s.free(), 5, "no session")

        def descriptors():
            return [len(os.listdir(f"/proc/{pid}/fd"))
                    for pid in (s.sidecar.pid, s.agent.pid, s.agent.front())]

        def steady():
            # The next worker is started, and may have a descriptor more meanwhile.
            looks = [descriptors()]
            for _ in range(4):
                time.sleep(0.05)
                looks.append(descriptors())
            return looks[0] if all(look == looks[0] for look in looks) else None

        before = wait_for(steady, DEADLINE, "descriptors stay the same")
        for i in range(20):
            app = s.app("sum", 1000000, 64)
            time.sleep(0.003 * i)  # the moment is what is tried
            kill(app.pid)
        wait_for(lambda: not s.agent.sessions() and s.free() == free, DEADLINE, "all is free")
        wait_for(lambda: descriptors() == before, DEADLINE, "descriptors are closed")
        s.app("sum", 2, 64).right()
