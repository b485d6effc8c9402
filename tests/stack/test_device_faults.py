# SPDX-License-Identifier: Apache-2.0
"""Faults of the device: sticky in the program that made them, unseen by any other."""
import re
import subprocess

from stack import (ASSERT, ILLEGAL_ADDRESS, MIB, OUT_OF_MEMORY, PROGRAM, TIMEOUT, environment,
                   preloaded, stack)

MISALIGNED = 716


def faults(kind, error, *agent, says=""):
    with stack(agent=agent) as s:
        other = s.app("bystander")
        other.line("^started")
        app = s.app("fault", kind)
        app.line("^launched 0")
        got = app.line(r"error (\d+) at")
        assert int(got[1]) == error, f"error {got[1]}, not {error}"
        app.line("afterwards 0 wrong")
        app.right()
        s.app("sum", 2, 64).right()
        other.close_stdin()
        other.right()
        assert "rounds right" in other.text(), other.text()
        assert says in app.text(), app.text()


def test_illegal_address():
    faults("address", ILLEGAL_ADDRESS)


def test_misaligned_address():
    faults("misaligned", MISALIGNED)


def test_assert():
    faults("assert", ASSERT, says="Assertion `*where == 12345` failed")


def test_assert_is_told_on_the_programs_stderr():
    """File, line and condition, as natively; neither on its stdout nor in the agent's log."""
    with stack() as s:
        got = subprocess.run([PROGRAM, "fault", "assert"], capture_output=True, text=True,
                             timeout=20, env=environment({"VCUDA_SOCKET": s.sidecar.socket,
                                                          "LD_PRELOAD": preloaded()}))
        assert re.search(r"app\.cu:\d+: .*Assertion `\*where == 12345` failed\.", got.stderr), got
        assert got.stderr.count("Assertion") == 1, got.stderr
        assert "Assertion" not in got.stdout, got.stdout
        assert "Assertion" not in s.agent.log(), s.agent.log()


def test_kernel_without_end():
    faults("timeout", TIMEOUT, "--set", "launch_timeout_ms=300")


def test_out_of_memory_and_recovery():
    with stack(agent_env={"VCUDA_SOFTGPU_MEMORY": "512M"}) as s:
        other = s.app("bystander")
        other.line("^started")
        app = s.app("take-all")
        got = app.line(r"error (\d+) after (\d+) blocks")
        assert int(got[1]) == OUT_OF_MEMORY and 4 <= int(got[2]) < 8, got[0]
        app.line("recovered")
        app.right()
        other.close_stdin()
        other.right()


def test_two_programs_share_the_memory():
    """What one holds the other cannot have, and gets once it is freed."""
    with stack(agent_env={"VCUDA_SOFTGPU_MEMORY": "512M"}) as s:
        first = s.app("hold", 300 * MIB)
        first.line("^holding")
        second = s.app("hold", 300 * MIB)
        second.line(r"gave 2 \(cudaErrorMemoryAllocation\)")
        assert second.wait() == 1
        first.close_stdin()
        first.right()
        # One after the other, with nothing between: the wish of the next waits for the worker of
        # the last to be gone.
        for _ in range(5):
            after = s.app("hold", 300 * MIB)
            after.line("^holding")
            after.close_stdin()
            after.right()


def test_memory_limit_of_a_session():
    with stack(agent=("--memory-limit", "256MiB")) as s:
        app = s.app("take-all")
        got = app.line(r"error (\d+) after (\d+) blocks")
        assert int(got[1]) == OUT_OF_MEMORY and int(got[2]) <= 4, got[0]
        app.line("recovered")
        app.right()
