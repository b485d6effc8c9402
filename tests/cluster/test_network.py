# SPDX-License-Identifier: Apache-2.0
"""Who reaches agents, and whom they reach, where the network enforces policies (netpol.py).

Every refusal is seen together with its opposite: the same connection before the policies were
enforced, of a pod that is meant to be let in, or after the policy allowed it.
"""
import concurrent.futures
import json
import os
import re
import sys
import time

import node
from cluster import (CHART, ROOT, SPACE, SYSTEM, agent, annotations, apply, container, eventually, execute, get, helm,
                     k, kubectl, pod, pod_spec, process, ready, revision, soon)

RIGHT = "sums are right"
SESSIONS, HTTP = (9997, 9998), 9999
PART = "tensor-fusion.ai/component"
MONITORING, CLOSED = "monitoring", "closed"
found = {}  # how the release was
SCRAPE = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())"
CONNECT = """import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()
    print("open")
except OSError as error:
    print(type(error).__name__)
"""


def connect(where, address, port):
    """What becomes of a connection out of a pod's network (its process) or a namespace's (its path)."""
    net = f"/proc/{where}/ns/net" if isinstance(where, int) else where
    return node.run("nsenter", "--net=" + net, sys.executable, "-c", CONNECT, address, port).strip()


def reaches(where, ports):
    """{port of the agent: what became of it}, asked at the same time."""
    address = agent()[1]
    with concurrent.futures.ThreadPoolExecutor(len(ports)) as pool:
        return dict(zip(ports, pool.map(lambda port: connect(where, address, port), ports)))


def every(answer, ports):
    return {port: answer for port in ports}


def dropped(address, direction="in"):
    """How many packets were dropped of those to (in) or from (out) a pod."""
    chain = node.run(*node.inside("nft", "list", "chain", "inet", "vcuda_netpol", f"{direction}_{address}"))
    return int(re.search(r"packets (\d+) bytes \d+ drop", chain).group(1))


def policy(**values):
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", values={"networkPolicy": values})


def listener(name, **more):
    return pod(name, pod_spec(container(image=node.BUSYBOX, command=["httpd", "-f", "-p", "8000"])), **more)


def space(name, **labels):
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    eventually(lambda: kubectl("-n", name, "get", "sa", "default"), 30, "the namespace's account")


def event_of(name, where):
    found = [e["message"] for e in get("events", space=where)["items"]
             if e["involvedObject"]["name"] == name and "Startup probe failed" in e["message"]]
    return found[0] if found else None


def test_while_nothing_enforces_policies_everybody_gets_in():
    found["revision"] = revision()
    space(MONITORING)
    space(CLOSED)
    apply(listener("stranger"), listener("prometheus", space=MONITORING,
                                         labels={"app.kubernetes.io/name": "prometheus"}),
          listener("curious", space=MONITORING), pod("computes", wanted=annotations()))
    for name, where in (("stranger", SPACE), ("prometheus", MONITORING), ("curious", MONITORING),
                        ("computes", SPACE)):
        ready(name, space=where)
    policies = get("networkpolicies", space=SYSTEM)["items"]
    assert [p["metadata"]["name"] for p in policies] == ["vcuda-agent"], policies
    everything = (*SESSIONS, HTTP)
    for name, where in (("stranger", SPACE), ("curious", MONITORING)):
        seen = reaches(process(name, "app", where), everything)
        assert seen == every("open", everything), (name, seen)
    server = process(agent()[0], "gpu-agent", SYSTEM)
    assert connect(server, get("pod", "stranger")["status"]["podIP"], 8000) == "open"


def test_injected_pods_compute_where_policies_are_enforced():
    node.enforce()
    eventually(lambda: reaches(process("stranger", "app"), [9998]) != every("open", [9998]), 10,
               "the policy holds")
    assert RIGHT in execute("computes", "vectorAdd")[1]
    assert "Succeeded" in helm("test", "vcuda", "--timeout", "60s")
    apply(pod("later", wanted=annotations()))  # and one that comes now
    ready("later")
    assert RIGHT in execute("later", "vectorAdd")[1]


def test_others_are_kept_out_by_the_policy_and_a_label_lets_them_in():
    address, everything = agent()[1], (*SESSIONS, HTTP)
    before, where = dropped(address), process("stranger", "app")
    seen = reaches(where, everything)
    assert seen == every("TimeoutError", everything), seen
    assert dropped(address) >= before + len(everything), "something else dropped them"
    k("label", "pod", "stranger", f"{PART}=client")
    eventually(lambda: reaches(where, SESSIONS) == every("open", SESSIONS), 20, "the label is seen")
    assert connect(where, address, HTTP) == "TimeoutError", "sessions are no reason to read metrics"
    k("label", "pod", "stranger", PART + "-")
    eventually(lambda: connect(where, address, 9998) == "TimeoutError", 20, "the label is gone")


def test_metrics_are_for_prometheus_alone():
    address = agent()[1]
    prometheus = process("prometheus", "app", MONITORING)
    page = node.run("nsenter", f"--net=/proc/{prometheus}/ns/net", sys.executable, "-c", SCRAPE,
                    f"http://{address}:{HTTP}/metrics")
    assert "vcuda_agent_sessions" in page, page[:300]
    assert reaches(prometheus, SESSIONS) == every("TimeoutError", SESSIONS), "metrics are not sessions"
    curious = process("curious", "app", MONITORING)
    assert connect(curious, address, HTTP) == "TimeoutError"
    policy(metricsFrom=[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}])
    eventually(lambda: connect(curious, address, HTTP) == "open", 20, "the namespace is let in")
    assert connect(process("stranger", "app"), address, HTTP) == "TimeoutError"


def test_a_program_that_is_kept_out_is_told_so():
    """Its pod ran already: the label that let it in is gone."""
    k("label", "pod", "computes", PART + "-")
    where, address = process("computes", "app"), agent()[1]
    eventually(lambda: connect(where, address, 9998) == "TimeoutError", 20, "the label is gone")
    began = time.monotonic()
    status, out = execute("computes", "vectorAdd", check=False)
    took = time.monotonic() - began
    assert status and RIGHT not in out and "system not yet initialized" in out, out
    soon(took, 15, "a program that is kept out")
    log = k("logs", "computes", "-c", "vcuda-client")
    assert "no answer" in log and "network policy" in log, log[-800:]
    k("label", "pod", "computes", f"{PART}=client")
    eventually(lambda: RIGHT in execute("computes", "vectorAdd", check=False)[1], 30, "it is let in again")
    return f"told after {took:.1f} s"


def test_only_the_namespaces_that_are_named_get_in():
    policy(namespaces=[SPACE])
    eventually(lambda: CLOSED not in json.dumps(get("networkpolicies", space=SYSTEM)) and
               SPACE in json.dumps(get("networkpolicies", space=SYSTEM)["items"][0]["spec"]), 10, "the policy")
    apply(pod("refused", wanted=annotations(), space=CLOSED))
    began = time.monotonic()
    message = eventually(lambda: event_of("refused", CLOSED), 40, "an event that says why")
    took = time.monotonic() - began
    assert "no answer" in message and "network policy" in message, message
    assert RIGHT in execute("computes", "vectorAdd")[1]
    assert "Succeeded" in helm("test", "vcuda", "--timeout", "60s")
    policy(namespaces=[SPACE], namespaceSelector={"matchLabels": {"gpu": "yes"}})
    kubectl("label", "namespace", CLOSED, "gpu=yes")
    ready("refused", 60, CLOSED)
    assert RIGHT in execute("refused", "vectorAdd", space=CLOSED)[1]
    return f"event after {took:.1f} s"


def test_an_agent_opens_no_connection():
    name, address = agent()
    server, stranger = process(name, "gpu-agent", SYSTEM), get("pod", "stranger")["status"]["podIP"]
    before = dropped(address, "out")
    assert connect(server, stranger, 8000) == "TimeoutError"
    assert dropped(address, "out") > before
    policy(egress=[{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}],
                    "ports": [{"port": 8000}]}])
    eventually(lambda: connect(server, stranger, 8000) == "open", 20, "egress is allowed")
    other = get("pod", "curious", MONITORING)["status"]["podIP"]
    assert connect(server, other, 8000) == "TimeoutError"
    policy(egress=[])
    eventually(lambda: connect(server, stranger, 8000) == "TimeoutError", 20, "egress is not allowed")


def test_a_namespace_that_lets_nothing_out_computes_by_the_policy_of_the_docs():
    nothing = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
               "metadata": {"name": "nothing", "namespace": CLOSED},
               "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}
    apply(nothing)
    where, address = process("refused", "app", CLOSED), agent()[1]
    eventually(lambda: connect(where, address, 9998) == "TimeoutError", 20, "nothing gets out")
    with open(os.path.join(ROOT, "docs", "KUBERNETES.md")) as file:
        text = re.search(r"\n((    .*\n)*    kind: NetworkPolicy\n(    .*\n)+)", file.read()).group(1)
    kubectl("apply", "-n", CLOSED, "-f", "-",
            text=re.sub("^    ", "", text, flags=re.M).replace("metadata.name: vcuda", f"metadata.name: {SYSTEM}"))
    eventually(lambda: connect(where, address, 9998) == "open", 20, "the way to the agents is open")
    assert connect(where, get("pod", "stranger")["status"]["podIP"], 8000) == "TimeoutError"
    eventually(lambda: RIGHT in execute("refused", "vectorAdd", check=False, space=CLOSED)[1], 30,
               "it computes")


def test_a_machine_that_is_no_pod_is_let_in_by_its_address():
    """So are pods on the network of another node."""
    there = node.machine()
    seen = reaches(there, SESSIONS)
    assert seen == every("TimeoutError", SESSIONS), seen
    policy(**{"from": [{"ipBlock": {"cidr": node.BESIDE + "/32"}}]})
    eventually(lambda: reaches(there, SESSIONS) == every("open", SESSIONS), 20, "the address is let in")
    assert connect(there, agent()[1], HTTP) == "TimeoutError"


def test_without_the_policy_everybody_gets_in_again():
    name, _ = agent()
    where, everything = process("stranger", "app"), (*SESSIONS, HTTP)
    assert reaches(where, everything) == every("TimeoutError", everything)
    try:
        helm("rollback", "vcuda", str(found["revision"]))
        policy(enabled=False)
        eventually(lambda: reaches(where, everything) == every("open", everything), 20, "no policy is left")
        # Kubelet asked all the time, from the node.
        status = get("pod", name, SYSTEM)["status"]["containerStatuses"][0]
        assert status["restartCount"] == 0 and status["ready"], status
    finally:
        node.lift()
        helm("rollback", "vcuda", str(found["revision"]))
        for which in (MONITORING, CLOSED):
            kubectl("delete", "namespace", which, "--wait=false")
        k("delete", "pod", "stranger", "computes", "later", "--wait=false")
