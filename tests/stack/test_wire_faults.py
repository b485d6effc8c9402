# SPDX-License-Identifier: Apache-2.0
"""Networks that are slow, break and fall silent: right numbers or a sticky error, never a hang."""
import os

from test_stripes import stripes_of
from stack import BIN, BUILD, LOST, now, one_line, stack, wait_for

FAULT = "fault+native://{}?"


def test_slow_wire_right_numbers():
    with stack(scheme=FAULT + "delay=2ms") as s:
        began = now()
        app = s.app("sum", 10, 1024)
        app.right(30)
        assert "10 rounds right" in app.text(), app.text()
        assert now() - began > 10 * 2 * 0.002, "the wire was not slow at all"


def test_wire_of_a_rate_right_numbers_over_stripes():
    rate = 50_000_000
    with stack(scheme=FAULT + f"rate={rate}", sidecar=("--compress", "off")) as s:
        began = now()
        app = s.app("sum", 0xffffffff, 4096)
        wait_for(lambda: stripes_of(s.sidecar.socket) == 4, 30, "the stripes are open")
        app.close_stdin()
        app.right(60)
        moved = channel_bytes(s.agent)
        assert moved > 4 << 20, moved
        assert moved < (now() - began + 0.2) * rate, "no slow wire"


def channel_bytes(agent):
    """What the agent got in all: of sessions that are gone, too."""
    return sum(int(float(line.split()[-1])) for line in agent.http("/metrics").splitlines()
               if line.startswith("vcuda_agent_bytes_total{") and "received" in line)


def breaks(plan, words=("calls",), within=0.5):
    with stack(scheme=FAULT + plan, sidecar=("--grace", "0")) as s:
        app = s.app(*words, env={"VCUDA_DEBUG": "1"})
        got = app.line(r"error (\d+) at|gave (\d+) ", within + 15)
        assert int(got[1] or got[2]) == LOST, got[0]
        if got[1]:
            app.line("afterwards 0 wrong, slowest 0", 10)
        app.wait()
        told = [line for _, line in app.lines if "session lost" in line]
        assert len(told) == 1, app.text()
        assert s.sidecar.process.poll() is None, "the sidecar goes on"
        wait_for(lambda: not s.agent.sessions(), 5, "no session is left")


def test_cut_between_frames():
    for frames in (5, 60, 301):
        breaks(f"cut-after={frames}")


def test_cut_in_a_frame():
    breaks("cut-after=60&truncate=7")


def test_cut_in_a_large_copy():
    breaks("cut-after-bytes=5000000", ("sum", 100, 1024))


def test_silence_in_a_call():
    breaks("stall-after=60", within=8)


def test_wrong_plan_is_named():
    one_line([os.path.join(BIN, "vcuda-client"), "probe", "--agent",
              "fault+native://127.0.0.1:9998?speed=3"], "speed")


def test_programs_of_other_kinds_on_a_slow_wire():
    with stack(scheme=FAULT + "delay=500us") as s:
        for program in ("streams", "host-functions", "async-memory", "pinned-memory", "copies-2d"):
            s.app(program=os.path.join(BUILD, "programs", "13", program)).right(30)
