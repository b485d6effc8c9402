# SPDX-License-Identifier: Apache-2.0
"""An agent that is told to end (SIGTERM: a pod that is replaced, systemctl stop): programs have the drain's time,
and what takes longer is told so at once, and not after the grace of a cut wire."""
import signal
import urllib.error

from stack import LOST, NOT_READY, alive, stack, wait_for

GRACE = 600  # s: nobody waits that long in this test


def drains(s):
    try:
        s.agent.http("/readyz")
    except urllib.error.HTTPError as error:
        return error.code == 503 and b"draining" in error.read()
    return False


def test_a_program_has_the_drains_time_and_nobody_else_comes_in():
    with stack(agent=("--drain", "600")) as s:
        app = s.app("bystander")
        app.line("^started", 30)
        s.agent.process.send_signal(signal.SIGTERM)
        wait_for(lambda: drains(s), 30, "the agent drains")
        late = s.app("sum", 1, 1024)
        assert late.wait(60) != 0
        assert f"error {NOT_READY}" in late.text(), late.text()
        assert alive(app.pid)
        app.close_stdin()
        app.right(60)
        assert s.agent.process.wait(60) == 0


def test_what_takes_longer_is_told_and_does_not_wait_for_another_agent():
    with stack(agent=("--drain", "1", "--set", f"grace={GRACE}"), sidecar=("--grace", str(GRACE))) as s:
        app = s.app("bystander")
        app.line("^started", 30)
        s.agent.process.send_signal(signal.SIGTERM)
        app.line(f" gave {LOST} ", 60)
        assert app.wait(60) != 0
        assert s.agent.process.wait(60) == 0
        assert "event=drain.stop" in s.agent.log()
        wait_for(lambda: "the agent ended" in s.sidecar.log(), 30, "the sidecar says why: " + s.sidecar.log())
