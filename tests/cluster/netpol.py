#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enforces NetworkPolicy (networking.k8s.io/v1) on the test node, whose bridge plug-in enforces none.

Asks the API what policies, pods and namespaces there are, and lays down what follows from them as one
table of nftables.  A pod that some policy isolates gets a chain, which lets through what some policy
allows, counts the rest and drops it, as most clusters' networks do.  As everywhere, a pod and its own
node always reach each other, and a connection that was let in stays.

Runs in the node's network namespace (node.py: enforce); IPv4 only, as the node.
"""
import collections
import ipaddress
import subprocess
import sys
import time

TABLE = "vcuda_netpol"
EVERYWHERE = "0.0.0.0/0"
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


# --- what is let through ---

# `block` without those of `but`, and of a protocol (None: any) the ports from first to last (None: all).
Rule = collections.namedtuple("Rule", "block but protocol first last")


def ports_of(entry, pod):
    """[(protocol, first, last)].  Names are of containers of `pod`, None: of whom nothing is known."""
    if not entry.get("ports"):
        return [(None, None, None)]
    found = []
    for port in entry["ports"]:
        protocol, first = port.get("protocol", "TCP").lower(), port.get("port")
        if isinstance(first, str):
            first = pod and number(port, pod)
            if not first:
                continue
        found.append((protocol, first, port.get("endPort", first)))
    return found


def rules(cluster, policy, entry, pod, direction):
    """What one entry of a policy allows to (in) or from (out) a pod."""
    field, target = ("from", pod) if direction == "in" else ("to", None)
    blocks = []  # and whose port a name is: that of whom is connected to
    if not entry.get(field):
        blocks.append((EVERYWHERE, (), target))
    for peer in entry.get(field) or ():
        if "ipBlock" not in peer:
            blocks += [(other["status"]["podIP"], (), target or other) for other in cluster.peers(policy, peer)]
        elif ":" not in peer["ipBlock"]["cidr"]:
            blocks.append((peer["ipBlock"]["cidr"], tuple(peer["ipBlock"].get("except") or ()), target))
    return [Rule(block, but, *ports) for block, but, whose in blocks for ports in ports_of(entry, whose)]


def isolates(policy, direction):
    kinds = policy["spec"].get("policyTypes") or (
        ["Ingress"] + (["Egress"] if policy["spec"].get("egress") else []))
    return {"in": "Ingress", "out": "Egress"}[direction] in kinds


def isolated(cluster, direction):
    """{address of a pod that some policy isolates: the rules of all of them}."""
    found = {}
    for policy in cluster.policies:
        for pod in cluster.chosen(policy) if isolates(policy, direction) else ():
            got = found.setdefault(pod["status"]["podIP"], [])
            for entry in policy["spec"].get("ingress" if direction == "in" else "egress") or ():
                got += rules(cluster, policy, entry, pod, direction)
    return found


def allows(cluster, source, target, port, protocol="tcp"):
    """Whether a connection from one address to another is let through: for tests without a network."""
    def fits(rule, address):
        inside = lambda block: ipaddress.ip_address(address) in ipaddress.ip_network(block, strict=False)
        return (inside(rule.block) and not any(map(inside, rule.but)) and rule.protocol in (None, protocol)
                and (rule.first is None or rule.first <= port <= rule.last))

    return all(owner not in of or any(fits(rule, other) for rule in of[owner]) for of, owner, other in (
        (isolated(cluster, "out"), source, target), (isolated(cluster, "in"), target, source)))


# --- what nftables is told ---

def line(rule, side):
    words = [f"ip {side} {rule.block}"]
    if rule.but:
        words.append(f"ip {side} != {{ {', '.join(rule.but)} }}")
    if rule.first is not None:
        words.append(f"{rule.protocol} dport {rule.first}" + (f"-{rule.last}" if rule.last != rule.first else ""))
    elif rule.protocol:
        words.append(f"meta l4proto {rule.protocol}")
    return " ".join(words) + " return"


def ruleset(cluster):
    """The whole table, to be laid down in one go."""
    text = [f"table inet {TABLE}", f"delete table inet {TABLE}", f"table inet {TABLE} {{"]
    forward = []
    # First whether the one may send, then whether the other may get.
    for direction, own, other in (("out", "saddr", "daddr"), ("in", "daddr", "saddr")):
        for address, allowed in sorted(isolated(cluster, direction).items()):
            text.append(f" chain {direction}_{address} {{")
            text += [f"  {line(rule, other)}" for rule in dict.fromkeys(allowed)] + ["  counter drop", " }"]
            forward.append(f"  ip {own} {address} jump {direction}_{address}")
    text += [" chain forward {", "  type filter hook forward priority filter; policy accept;",
             "  ct state established,related accept", *forward, " }", "}", ""]
    return "\n".join(text)


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
