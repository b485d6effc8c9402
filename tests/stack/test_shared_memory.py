# SPDX-License-Identifier: Apache-2.0
"""Both kinds of shared memory between app and sidecar: POSIX shm (host) and memfd (pod)."""
import os
import signal
import subprocess
import time

from stack import BIN, MIB, OUT_OF_MEMORY, PROGRAM, App, Agent, Sidecar, Skip, folder, kill, stack, wait_for

LABEL = f"t{os.getpid()}"


def names():
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"vcuda-{LABEL}-")]


def maps(pid):
    with open(f"/proc/{pid}/maps") as file:
        return file.read()


def works(mode):
    with stack(sidecar=("--ipc", mode, "--label", LABEL)) as s:
        s.app("sum", 3, 1024).right()
        got = s.app("pinned", 8 * MIB)
        got.line("error 0")
        got.right()
        app = s.app("hold", MIB)
        app.line("^holding")
        text = maps(app.pid)
        assert (f"/memfd:vcuda-{LABEL}" in text) == (mode == "pod"), text
        assert ("/dev/shm/" in text) == (mode == "host"), text
        assert not names(), "it has no name"
        assert s.sidecar.process.poll() is None
        app.close_stdin()
        app.right()
    assert not names(), names()


def test_host_mode():
    works("host")


def test_pod_mode():
    works("pod")


def test_what_lies_on_the_programs_dev_shm_does_not_matter():
    """A volume there is what every guide to PyTorch says; nothing there is what distroless has."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"]).returncode:
        raise Skip("needs to be root, and to mount")
    for mode in "host", "pod":
        with stack(sidecar=("--ipc", mode)) as s:
            for words, line in (("sum", 3, 1024), None), (("pinned", 8 * MIB), "error 0"):
                app = s.app("-m", "sh", "-c", "mount -t tmpfs -o size=4k none /dev/shm && "
                            "exec \"$@\"", "sh", PROGRAM, *words, program="/usr/bin/unshare")
                if line:
                    app.line(line)
                app.right()


def test_host_mode_killed_leaves_no_name():
    with stack(sidecar=("--ipc", "host", "--label", LABEL, "--grace", "1")) as s:
        for i in range(8):
            app = s.app("sum", 1000000, 64)
            if i % 2:
                app.line("^started")
            kill(app.pid)
        wait_for(lambda: not names() and not s.agent.sessions(), 5, "no name, no session is left")
        app = s.app("sum", 1000000, 64)
        app.line("^started")
        kill(s.sidecar.pid)
        app.line("911")
        assert not names(), names()


def small_tmpfs(size, check):
    """A sidecar in host mode and apps where /dev/shm has SIZE bytes."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"]).returncode:
        raise Skip("needs to be root, and to mount")
    with folder() as path:
        agent = Agent(path)
        where = os.path.join(path, "s")
        sidecar = Sidecar(path, agent, socket=where, command=[
            "unshare", "-m", "sh", "-c",
            f"mount -t tmpfs -o size={size} none /dev/shm && exec \"$@\"", "sh",
            os.path.join(BIN, "vcuda-client"), "run", "--agent", agent.address, "--socket", where,
            "--ipc", "host", "--label", LABEL])

        def app(*words, **more):
            return App("-t", sidecar.pid, "-m", "--", PROGRAM, *words, socket=where,
                       program="/usr/bin/nsenter", **more)
        check(app)
        assert sidecar.process.poll() is None, sidecar.log()
        agent.stop()


def test_full_tmpfs_is_an_error_where_a_program_pins_memory():
    def check(app):
        got = app("pinned", 64 * MIB)
        got.line(f"error {OUT_OF_MEMORY}")
        got.right()
        app("sum", 3, 1024).right()
    small_tmpfs(40 * MIB, check)


def test_full_tmpfs_is_an_error_where_a_program_attaches():
    def check(app):
        got = app("count", env={"VCUDA_DEBUG": "1"})
        got.line("shared memory.*No space left")
        assert int(got.line(r"error (\d+) devices 0")[1]) in (2, 802), got.text()
        got.right()
    small_tmpfs(2 * MIB, check)


def test_memory_comes_with_what_a_program_copies():
    """The bytes of its segment that have memory: a program of small copies has the first part."""
    with stack() as s:
        few, many = s.app("sum", 0xffffffff, 256), s.app("sum", 0xffffffff, 8192)
        for app in few, many:
            app.line("^started")
        assert 2 * MIB < few.shared_memory() < 3 * MIB, few.shared_memory()
        assert many.shared_memory() > 12 * MIB, many.shared_memory()
        for app in few, many:
            app.close_stdin()
            app.right()


def test_without_more_memory_large_copies_go_in_small_ones():
    def check(app):
        app("sum", 3, 8192).right()
    small_tmpfs(7 * MIB, check)


def test_an_answer_that_comes_too_late_is_not_the_next_ones():
    """The sidecar is stopped for longer than a program waits for more memory, and the program has patience with it."""
    with stack() as s:
        app = s.app("copy-and-pin", 8 * MIB, env={"VCUDA_SIDECAR_TIMEOUT": "60"})
        app.line("^ready")
        kill(s.sidecar.pid, signal.SIGSTOP)
        app.close_stdin()
        time.sleep(7)  # RESERVE_MS of shim/engine/reserve.c, and more
        kill(s.sidecar.pid, signal.SIGCONT)
        app.right(30)
