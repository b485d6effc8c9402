# SPDX-License-Identifier: Apache-2.0
"""Payloads that are coded on their way: how many bytes go over the wire, that what comes is what went,
and who says that none is to be coded."""
import json
import os
import subprocess

from stack import BIN, BUILD, environment, one_line, stack, wait_for

MIB = 1 << 20
PAYLOADS = os.path.join(BUILD, "stack", "payloads")
ALWAYS = ("--compress", "always")
AGENT_ALWAYS = ("--set", "compress=always")


def status(path):
    got = subprocess.run([os.path.join(BIN, "vcuda-client"), "status", "--json", "--socket", path],
                         capture_output=True, text=True, timeout=10, env=environment())
    return json.loads(got.stdout)


def pieces(s):
    """What stripes carried, of sessions that are and were."""
    return status(s.sidecar.socket)["totals"]["pieces"]


def copied(s, *words, env=None, seconds=80):
    """What the stripes carried of a run of `payloads`: (sent, received)."""
    before = pieces(s)
    app = s.app(*words, program=PAYLOADS, env=env)
    app.right(seconds)
    wait_for(lambda: not status(s.sidecar.socket)["channels"], 30, "the channel is gone")
    after = pieces(s)
    return tuple({key: after[way][key] - before[way][key] for key in after[way]}
                 for way in ("sent", "received"))


def ratio(way):
    return way["payload_bytes"] / way["wire_bytes"]


def test_payloads_shrink_both_ways():
    with stack(sidecar=ALWAYS, agent=AGENT_ALWAYS) as s:
        for kind, least, coding in (("bf16", 1.4, "planes2"), ("f32", 1.1, "planes4"), ("tokens", 3, "planes8"),
                                    ("text", 3, "zstd"), ("zeros", 100, "fill"), ("random", 0.98, "raw")):
            for way in copied(s, kind, 32, 1, 1):
                assert way["payload_bytes"] > 16 * MIB, (kind, way)
                assert ratio(way) >= least, (kind, way)
                assert way[coding] == sum(way[name] for name in
                                          ("raw", "fill", "zstd", "planes2", "planes4", "planes8")), (kind, way)


def test_shapes_of_one_byte():
    with stack(sidecar=ALWAYS) as s:
        sent, _ = copied(s, "shapes", 0, 0, 0)
        assert sent["fill"] > 50, sent


def test_off():
    for sidecar, agent, env in ((("--compress", "off"), (), None), (ALWAYS, ("--set", "compress=off"), None),
                                (ALWAYS, AGENT_ALWAYS, {"VCUDA_PERF": "no_zstd"})):
        with stack(sidecar=sidecar, agent=agent) as s:
            for way in copied(s, "zeros", 32, 1, 1, env=env):
                assert way["raw"] and not way["saved_bytes"], way


def test_auto_codes_on_a_slow_wire_only_what_shrinks():
    with stack(scheme="fault+native://{}?rate=20000000") as s:
        sent, received = copied(s, "bf16", 32, 3, 1)
        assert sent["planes2"] + sent["planes4"] + sent["planes8"] > 3 * sent["raw"], sent
        assert ratio(sent) > 1.3, sent
        sent, _ = copied(s, "random", 32, 1, 0)
        assert sent["raw"] == sum(sent[name] for name in
                                  ("raw", "fill", "zstd", "planes2", "planes4", "planes8")), sent


def test_bad_words_are_named():
    one_line([os.path.join(BIN, "vcuda-client"), "probe", "--compress", "sometimes"],
             "'sometimes' is not auto, off or always")
    one_line([os.path.join(BIN, "gpu-agent"), "--set", "compress=sometimes"], "auto, off or always")
