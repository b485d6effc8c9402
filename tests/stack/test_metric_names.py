# SPDX-License-Identifier: Apache-2.0
"""Alerts and the board ask for what a running agent and a running sidecar say, and for nothing else."""
import json
import os
import re

from stack import MIB, ROOT, stack, wait_for
from test_latency import client
from test_tls import secured

FILES = os.path.join(ROOT, "deploy", "helm", "vcuda", "files")
# Only there where NVML is: tests/nvml/meter.py shows these.
BY_NVML = {f"vcuda_agent_device_{name}" for name in
           ("utilization_ratio", "memory_utilization_ratio", "memory_in_use_bytes", "power_watts", "temperature_celsius")}
NAME = r"\b(?:vcuda|process)_[a-z_]+"


def expressions():
    """(file, expression) of each alert and each panel."""
    with open(os.path.join(FILES, "alerts.yaml")) as file:
        for expression in re.findall(r"^ +expr: (.*(?:\n {10,}\S.*)*)", file.read(), re.M):
            yield "alerts.yaml", expression
    with open(os.path.join(FILES, "dashboard.json")) as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield "dashboard.json", target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield "dashboard.json", variable["query"]


def said(text):
    """{name: its labels} of what stands in a page of metrics."""
    found = {}
    for name, labels in re.findall(rf"^({NAME})(?:{{(.*?)}})? \S+$", text, re.M):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def test_every_metric_of_alerts_and_board_is_exported_with_its_labels():
    with stack(agent=("--set", "store.bytes=64MiB")) as s:
        app = s.app("hold", 16 * MIB)
        app.line("^holding", 20)
        wait_for(lambda: s.agent.gpu()["memory_used_bytes"], 5, "the agent's figures")
        wait_for(lambda: "vcuda_agent_tensors" in s.agent.http("/metrics"), 10, "the store's figures")
        exported = said(s.agent.http("/metrics"))
        exported.update(said(client(s, "metrics")))
        declared = set(re.findall(rf"^# TYPE ({NAME}) ", s.agent.http("/metrics"), re.M))
        app.close_stdin()
        app.right()
    with secured() as (_, _, agent):  # what is said of certificates only
        exported.update(said(agent.http("/metrics")))
    asked = [(file, name, expression) for file, expression in expressions() for name in re.findall(NAME, expression)]
    assert {file for file, *_ in asked} == {"alerts.yaml", "dashboard.json"} and len(asked) > 40, len(asked)
    for file, name, expression in asked:
        # A tenant without a share has no sample; the family is there.
        assert name in exported or name in BY_NVML or name in declared, f"{file}: nobody exports {name}"
    # Prometheus adds these, and renames what a target has too.
    added = {"pod", "namespace", "node", "instance", "job", "exported_pod", "exported_namespace"}
    for file, name, expression in asked:
        for label in re.findall(rf"{name}{{([^}}]*)}}", expression):
            used = set(re.findall(r"(\w+) ?(?:=~|!~|!=|=)", label)) - added
            assert used <= exported.get(name, used), f"{file}: {name} has no label {used - exported[name]}"
