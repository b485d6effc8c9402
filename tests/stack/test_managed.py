# SPDX-License-Identifier: Apache-2.0
"""Managed memory: only pages that somebody needs travel, and a program's crash stays its own."""
import json
import os
import signal
import subprocess
import sys

from stack import environment, preloaded, stack

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {"userfaultfd": {}, "SIGSEGV": {"VCUDA_PERF": "no_userfaultfd"}}


def run(s, *words, **env):
    return subprocess.run([sys.executable, os.path.join(HERE, "managed.py"), *words],
                          env=environment({"VCUDA_SOCKET": s.sidecar.socket,
                                           "LD_PRELOAD": preloaded(), **env}),
                          capture_output=True, text=True, timeout=30)


def test_one_of_a_thousand_pages_moves_less_than_a_hundredth():
    with stack() as s:
        for way, env in WAYS.items():
            path = os.path.join(s.folder, f"{way}.json")
            got = run(s, "sparse", path, VCUDA_STATS="1", **env)
            assert got.returncode == 0, (way, got.stderr[-500:])
            with open(path) as file:
                cost = json.load(file)
            moved = cost["bytes_sent"] + cost["bytes_received"]
            # 20 pages come, and go back; two more are looked at.
            assert 20 * 4096 < moved < 20000 * 4096 / 100, (way, moved)
            assert cost["copies"]["host_to_device"]["bytes"] == 20 * 4096, (way, cost["copies"])
            assert cost["copies"]["device_to_host"]["bytes"] == 22 * 4096, (way, cost["copies"])


def test_python_tells_of_its_own_crash():
    with stack() as s:
        for way, env in WAYS.items():
            for when in ("before", "after"):
                got = run(s, "crash", when, **env)
                assert got.stdout == "used\n", (way, when, got.stderr[-500:])
                assert got.returncode == -signal.SIGSEGV, (way, when, got.returncode)
                assert "Fatal Python error: Segmentation fault" in got.stderr, (way, when)
                assert "string_at" in got.stderr, (way, when, got.stderr[-500:])
