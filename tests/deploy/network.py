#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who reaches whom by the chart's network policy, for several values.

The chart's own objects are put into an imaginary cluster, and netpol.py, which enforces policies on the
real node (tests/cluster/test_network.py), says what it would let through.
"""
import pathlib
import sys

import yaml

import chart

sys.path.append(str(pathlib.Path(__file__).parents[1] / "cluster"))
import netpol  # noqa: E402

CLIENT = {"tensor-fusion.ai/component": "client"}
NAMESPACES = {"vcuda": {}, "a": {}, "b": {"gpu": "yes"}, "monitoring": {}}
# who: (namespace, labels, address)
PODS = {"injected in a": ("a", CLIENT, "10.0.0.1"), "injected in b": ("b", CLIENT, "10.0.0.2"),
        "plain in a": ("a", {"app": "x"}, "10.0.0.3"), "plain in vcuda": ("vcuda", {}, "10.0.0.4"),
        "prometheus": ("monitoring", {"app.kubernetes.io/name": "prometheus"}, "10.0.0.5"),
        "plain in monitoring": ("monitoring", {"app.kubernetes.io/name": "grafana"}, "10.0.0.6")}
MACHINE, AGENT, HELM_TEST, REDIS, OTHER_AGENT = "192.0.2.9", "10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11"
# values: {who: the agent's ports that it reaches}; nobody else reaches any.
SESSIONS, HTTP = {9997, 9998}, {9999}
EVERY = SESSIONS | HTTP
INGRESS = [
    ([], {"injected in a": SESSIONS, "injected in b": SESSIONS, "helm test": SESSIONS, "prometheus": HTTP}),
    (["networkPolicy.namespaces={a}"], {"injected in a": SESSIONS, "helm test": SESSIONS, "prometheus": HTTP}),
    (["networkPolicy.namespaceSelector.matchLabels.gpu=yes", "networkPolicy.metricsFrom=null"],
     {"injected in b": SESSIONS, "helm test": SESSIONS}),
    (["networkPolicy.namespaces={a}", "networkPolicy.namespaceSelector.matchLabels.gpu=yes",
      "networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24",
      "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=monitoring"],
     {"injected in a": SESSIONS, "injected in b": SESSIONS, "helm test": SESSIONS, "machine": SESSIONS,
      "prometheus": HTTP, "plain in monitoring": HTTP}),
    (["networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24", "networkPolicy.from[0].ipBlock.except={192.0.2.8/29}",
      "networkPolicy.from[1].podSelector.matchLabels.app=x", "networkPolicy.metricsFrom=null"],
     {"injected in a": SESSIONS, "injected in b": SESSIONS, "helm test": SESSIONS}),
    (["networkPolicy.enabled=false"], {who: EVERY for who in (*PODS, "helm test", "machine")}),
    (["agent.ports.send=7", "agent.ports.recv=8", "agent.ports.control=9"],
     {"injected in a": {7, 8}, "injected in b": {7, 8}, "helm test": {7, 8}, "prometheus": {9}}),
]
# values: who is reached by the agent, at port 5
EGRESS = [
    ([], set()),
    (["networkPolicy.egress[0].to[0].ipBlock.cidr=192.0.2.0/24"], {"machine"}),
    (["networkPolicy.egress[0].to[0].podSelector.matchLabels.app=x"], set()),
    (["networkPolicy.egress[0].to[0].podSelector.matchLabels.app=x",
      "networkPolicy.egress[0].to[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=a"], {"plain in a"}),
    (["networkPolicy.egress[0].ports[0].port=5"], {*PODS, "helm test", "machine"}),
    (["networkPolicy.egress[0].ports[0].port=6"], set()),
]


def pod(space, labels, address, spec=None):
    return {"metadata": {"namespace": space, "labels": labels}, "spec": spec or {"containers": []},
            "status": {"podIP": address, "phase": "Running"}}


def cluster(values):
    done = chart.template(values, [chart.MAP])
    if done.returncode:
        sys.exit(done.stderr)
    objects = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    pods = [pod(*one) for one in PODS.values()]
    for thing in objects:
        if thing["kind"] == "DaemonSet":
            template = thing["spec"]["template"]
            for address in AGENT, OTHER_AGENT:
                pods.append(pod("vcuda", template["metadata"]["labels"], address, template["spec"]))
        if thing["kind"] == "Deployment":
            template = thing["spec"]["template"]
            pods.append(pod("vcuda", template["metadata"]["labels"], REDIS, template["spec"]))
        if thing["kind"] == "Pod":
            pods.append(pod("vcuda", thing["metadata"]["labels"], HELM_TEST, thing["spec"]))
    assert len(pods) == len(PODS) + 3 + ("store.redis.enabled=true" in values)
    return netpol.Cluster([thing for thing in objects if thing["kind"] == "NetworkPolicy"], pods,
                          [{"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}
                           for name, labels in NAMESPACES.items()])


def index(checks):
    """The index of named tensors: the chart's is the agents' alone, another one's port is opened, and so is DNS."""
    made = cluster(["store.bytes=1GiB", "store.redis.enabled=true"])
    for who, address in {**{who: one[2] for who, one in PODS.items()}, "machine": MACHINE}.items():
        checks.check(f"redis: {who}", netpol.allows(made, address, REDIS, 6379) and "reaches it")
        checks.check(f"redis: to {who}", netpol.allows(made, REDIS, address, 6379) and "is reached by it")
        checks.check(f"redis: the agent to {who}", netpol.allows(made, AGENT, address, 6379) and "is reached")
    checks.check("redis: the agent", not netpol.allows(made, AGENT, REDIS, 6379) and "does not reach it")
    checks.check("redis: the agent, another port", netpol.allows(made, AGENT, REDIS, 6380) and "reaches it")
    checks.check("redis: the agent, DNS", not netpol.allows(made, AGENT, MACHINE, 53) and "does not reach it")
    made = cluster(["store.bytes=1GiB", "store.registry=tcp://redis.example:6380"])
    for port, right in ((6380, True), (53, True), (6379, False), (443, False)):
        checks.check(f"a Redis of theirs: {port}", netpol.allows(made, AGENT, MACHINE, port) != right and f"not {right}")


def peers(checks):
    """Agents reach each other where commands go, and the cluster's DNS; none of both with agent.peers=false."""
    for values, right in (([], True), (["agent.ports.recv=8"], True), (["agent.peers=false"], False)):
        made = cluster(values)
        port = 8 if values == ["agent.ports.recv=8"] else 9998
        for other in (port, 9997, 9999):
            checks.check(f"{values}: agent to agent, {other}",
                         netpol.allows(made, OTHER_AGENT, AGENT, other) != (right and other == port) and "it is not so")
        checks.check(f"{values}: DNS", netpol.allows(made, AGENT, MACHINE, 53) != right and f"not {right}")


def nccl(checks):
    """Ranks at two agents find each other at ports that nobody knows before; nobody else gets there."""
    for values, right in ((["agent.config.nccl.allowed=true"], True), (["agent.config.nccl.allowed=true", "agent.peers=false"], True),
                          (["agent.config.nccl.allowed=false"], False), (["agent.config.nccl.wait=30m"], False)):
        made = cluster(values)
        for port in 5, 40000:
            checks.check(f"{values}: agent to agent, {port}", netpol.allows(made, OTHER_AGENT, AGENT, port) != right and f"not {right}")
            for who, address in {**{who: one[2] for who, one in PODS.items()}, "machine": MACHINE}.items():
                checks.check(f"{values}: {who} to the agent, {port}", netpol.allows(made, address, AGENT, port) and "reaches it")
                checks.check(f"{values}: the agent to {who}, {port}", netpol.allows(made, AGENT, address, port) and "is reached")


def light(checks):
    """QUIC where agents listen so; whom sessions are not for it is not for either."""
    for values, port in (([], None), (["agent.config.listen=light://"], 9997), (["agent.config.listen=\\,light://", "agent.ports.send=7"], 7),
                         (["agent.config.listen=native://"], None)):
        made = cluster(values)
        for who, address in {**{who: one[2] for who, one in PODS.items()}, "helm test": HELM_TEST, "machine": MACHINE}.items():
            injected = who == "helm test" or who.startswith("injected")
            for asked in (7, 9997, 9998):
                right = injected and asked == port
                checks.check(f"{values}: {who}, UDP {asked}", netpol.allows(made, address, AGENT, asked, "udp") != right and f"not {right}")


def main():
    checks = chart.Checks()
    others = {**{who: one[2] for who, one in PODS.items()}, "helm test": HELM_TEST, "machine": MACHINE}
    for values, wanted in INGRESS:
        made = cluster(values)
        for who, address in others.items():
            seen = {port for port in (*EVERY, 7, 8, 9) if netpol.allows(made, address, AGENT, port)}
            # Without a policy any port is open; those of the agent are meant.
            seen = seen if "networkPolicy.enabled=false" not in values else seen & EVERY
            right = wanted.get(who, set())
            checks.check(f"{values}: {who}", seen != right and f"reaches {sorted(seen)}, not {sorted(right)}")
    for values, wanted in EGRESS:
        made = cluster(values)
        seen = {who for who, address in others.items() if netpol.allows(made, AGENT, address, 5)}
        checks.check(f"{values}: the agent", seen != wanted and f"reaches {sorted(seen)}, not {sorted(wanted)}")
    index(checks)
    peers(checks)
    nccl(checks)
    light(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
