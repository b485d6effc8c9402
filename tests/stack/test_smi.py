# SPDX-License-Identifier: Apache-2.0
"""vcuda smi: what a person sees, through a session and from the agent's control port."""
import os
import re
import subprocess

from stack import BIN, MIB, environment, one_line, stack, wait_for

VCUDA = os.path.join(BIN, "vcuda")
HELD = 48 * MIB


def smi(*words, **env):
    got = subprocess.run([VCUDA, "smi", *words], capture_output=True, text=True, timeout=20,
                         env=environment(env))
    assert got.returncode == 0 and not got.stderr, got.stderr
    return got.stdout


def test_gpus_and_processes_through_a_session_and_from_the_agent():
    with stack() as s:
        app = s.app("hold", HELD)
        app.line("^holding", 20)
        wait_for(lambda: s.agent.gpu()["memory_used_bytes"] >= HELD, 5, "the agent's figures")
        control = f"127.0.0.1:{s.agent.ports['control']}"

        table = smi(VCUDA_SOCKET=s.sidecar.socket)
        assert "vcuda software GPU" in table and re.search(r"CUDA Version: 1\d\.\d", table), table
        assert re.search(rf"N/A +{app.pid} +app ", table), table
        assert {len(line) for line in table.splitlines() if line.startswith(("|", "+"))} == {91}, table

        version = re.search(r"Driver Version: (\d+\.\d+\.\d+)", table).group(1)

        table = smi("--agent", control)
        assert f"Driver Version: {version} " in table, table
        line = next(line for line in table.splitlines() if f" {app.pid} " in line)
        assert re.search(rf"0 +{app.pid} +app .* (\d+) MiB", line), table
        assert int(re.search(r"(\d+) MiB", line).group(1)) >= HELD // MIB, table
        used, total = re.search(r"(\d+) MiB / +(\d+) MiB", table).groups()
        assert HELD // MIB <= int(used) < int(total), table

        one = smi("-L", VCUDA_SOCKET=s.sidecar.socket)
        assert re.fullmatch(r"GPU 0: vcuda software GPU \(UUID: GPU-[0-9a-f-]{36}\)\n", one), one
        assert one == smi("-L", "--agent", control)
        app.close_stdin()
        app.right()
        wait_for(lambda: "no process" in smi("--agent", control), 5, "the process is gone")


def test_what_the_gpus_are_to_each_other():
    with stack(agent_env={"VCUDA_SOFTGPU_DEVICES": "3"}) as s:
        lines = smi("topo", VCUDA_SOCKET=s.sidecar.socket).splitlines()
        assert lines[0].split() == ["GPU0", "GPU1", "GPU2"], lines
        # The software GPU has no NVML: it is known that they reach each other, not how.
        assert [line.split() for line in lines[1:4]] == [
            [f"GPU{i}", *("X" if i == j else "P2P" for j in range(3))] for i in range(3)], lines
        for letter, cell in zip("rwnap", ("OK", "OK", "N/A", "OK", "N/A")):
            lines = smi("topo", "-p2p", letter, VCUDA_SOCKET=s.sidecar.socket).splitlines()
            assert lines[1].split() == ["GPU0", "X", cell, cell], lines
        one_line([VCUDA, "smi", "topo", "-p2p", "x"], "-p2p", status=2)
        one_line([VCUDA, "smi", "topo", "-p2p"], "-p2p", status=2)
        one_line([VCUDA, "smi", "topo", "x"], "'x'", status=2)


def test_says_in_one_line_why_there_is_no_table():
    one_line([VCUDA, "smi"], "smi", "no GPU", status=1, env={"VCUDA_SOCKET": "/tmp/no-such-socket"})
    one_line([VCUDA, "smi", "--agent", "127.0.0.1:1"], "127.0.0.1:1", "refused", status=1)
    one_line([VCUDA, "smi", "--agent", "no port:x"], "smi", status=1)
    one_line([VCUDA, "smi", "-x"], "-x", status=2)
