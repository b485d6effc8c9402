#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enforces NetworkPolicy (networking.k8s.io/v1) on the test node, whose bridge plug-in enforces none.

Asks the API what policies, pods and namespaces there are, and lays down what follows from them as one
table of nftables.  A pod that some policy isolates gets a chain, which lets through what some policy
allows, counts the rest and drops it, as most clusters' networks do.  As everywhere, a pod and its own
node always reach each other, and a connection that was let in stays.

Runs in the node's network namespace (node.py: enforce); IPv4 only, as the node.
"""
import ipaddress
import subprocess
import sys
import time

TABLE = "vcuda_netpol"
PERIOD = 0.25  # seconds between two looks
PLACES = {"policies": "/apis/networking.k8s.io/v1/networkpolicies", "pods": "/api/v1/pods",
          "namespaces": "/api/v1/namespaces"}


# --- who is meant ---

def selects(selector, labels):
    """A LabelSelector: the empty one selects everything."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], term.get("values") or ()
        if not {"In": key in labels and labels[key] in values,
                "NotIn": key not in labels or labels[key] not in values,
                "Exists": key in labels, "DoesNotExist": key not in labels}[term["operator"]]:
            return False
    return True


class Cluster:
    """Of what the API says, what counts here.  Pods of the node's own network are no pods to a policy."""

    def __init__(self, policies, pods, namespaces):
        self.policies = policies
        self.namespaces = {n["metadata"]["name"]: n["metadata"].get("labels") or {} for n in namespaces}
        self.pods = [pod for pod in pods
                     if pod.get("status", {}).get("podIP") and not pod["spec"].get("hostNetwork")
                     and pod["status"].get("phase") not in ("Succeeded", "Failed")]

    def chosen(self, policy):
        space, selector = policy["metadata"]["namespace"], policy["spec"].get("podSelector") or {}
        return [pod for pod in self.pods if pod["metadata"]["namespace"] == space
                and selects(selector, pod["metadata"].get("labels") or {})]

    def peers(self, policy, peer):
        """The pods that a NetworkPolicyPeer without ipBlock means."""
        space, own = peer.get("namespaceSelector"), policy["metadata"]["namespace"]
        for pod in self.pods:
            name = pod["metadata"]["namespace"]
            inside = name == own if space is None else selects(space, self.namespaces.get(name, {}))
            if inside and selects(peer.get("podSelector") or {}, pod["metadata"].get("labels") or {}):
                yield pod


def number(port, pod):
    """The number of a port that may be a name of one of the pod's containers; None: it has no such."""
    if isinstance(port["port"], int):
        return port["port"]
    for container in pod["spec"]["containers"] + (pod["spec"].get("initContainers") or []):
        for one in container.get("ports") or ():
            if (one.get("name"), one.get("protocol", "TCP")) == (port["port"], port.get("protocol", "TCP")):
                return one["containerPort"]
    return None


# --- what nftables is told ---

def matches_of_ports(ports, pod):
    """One match for each port; [""]: every port.  Names are those of `pod`, None: of nobody known."""
    if not ports:
        return [""]
    found = []
    for port in ports:
        protocol = port.get("protocol", "TCP").lower()
        if "port" not in port:
            found.append(f"meta l4proto {protocol}")
            continue
        first = port["port"] if pod is None and isinstance(port["port"], int) else pod and number(port, pod)
        if first:
            last = port.get("endPort", first)
            found.append(f"{protocol} dport {first}" + (f"-{last}" if last != first else ""))
    return found


def rules(cluster, policy, entry, pod, direction):
    """The rules that let through what one entry of a policy allows to (in) or from (out) a pod."""
    side, field = (("saddr", "from"), ("daddr", "to"))[direction == "out"]
    # A named port is one of whoever is connected to.
    target = pod if direction == "in" else None
    if not entry.get(field):
        yield from matches_of_ports(entry.get("ports"), target)
    for peer in entry.get(field) or ():
        if "ipBlock" in peer:
            block = peer["ipBlock"]
            if ipaddress.ip_network(block["cidr"], strict=False).version != 4:
                continue
            but = [one for one in block.get("except") or () if ":" not in one]
            where = f"ip {side} {block['cidr']}" + (f" ip {side} != {{ {', '.join(but)} }}" if but else "")
            for match in matches_of_ports(entry.get("ports"), target):
                yield f"{where} {match}"
            continue
        for other in cluster.peers(policy, peer):
            for match in matches_of_ports(entry.get("ports"), target or other):
                yield f"ip {side} {other['status']['podIP']} {match}"


def isolates(policy, direction):
    kinds = policy["spec"].get("policyTypes") or (
        ["Ingress"] + (["Egress"] if policy["spec"].get("egress") else []))
    return {"in": "Ingress", "out": "Egress"}[direction] in kinds


def chains(cluster, direction):
    """{pod's address: the lines of its chain}, of pods that some policy isolates."""
    found = {}
    for policy in cluster.policies:
        if not isolates(policy, direction):
            continue
        spec = policy["spec"]
        for pod in cluster.chosen(policy):
            lines = found.setdefault(pod["status"]["podIP"], [])
            for entry in spec.get("ingress" if direction == "in" else "egress") or ():
                for rule in rules(cluster, policy, entry, pod, direction):
                    lines.append(" ".join(f"{rule} return".split()))
    return found


def ruleset(cluster):
    """The whole table, to be laid down in one go."""
    made = {direction: chains(cluster, direction) for direction in ("out", "in")}
    text = [f"table inet {TABLE}", f"delete table inet {TABLE}", f"table inet {TABLE} {{"]
    for direction in made:
        for address, lines in sorted(made[direction].items()):
            text.append(f" chain {direction}_{address} {{")
            text += [f"  {line}" for line in dict.fromkeys(lines)] + ["  counter drop", " }"]
    text += [" chain forward {", "  type filter hook forward priority filter; policy accept;",
             "  ct state established,related accept"]
    # First whether the one may send, then whether the other may get.
    for direction, side in (("out", "saddr"), ("in", "daddr")):
        for address in sorted(made[direction]):
            text.append(f"  ip {side} {address} jump {direction}_{address}")
    return "\n".join(text + [" }", "}", ""])


def main():
    from cluster import Api  # at work it runs beside the API; the rest needs none

    api, laid = Api(), None
    while True:
        try:
            seen = Cluster(**{what: api.ask(place)["items"] for what, place in PLACES.items()})
        except OSError as error:  # the rules stay as they are
            print(f"netpol.py: {error}", flush=True)
            time.sleep(1)
            continue
        text = ruleset(seen)
        if text != laid:
            done = subprocess.run(["nft", "-f", "-"], input=text, text=True, capture_output=True)
            print(text if not done.returncode else f"netpol.py: nft: {done.stderr}\n{text}", flush=True)
            laid = text if not done.returncode else None
        time.sleep(PERIOD)


if __name__ == "__main__":
    sys.exit(main())
