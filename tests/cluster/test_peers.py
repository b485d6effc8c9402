# SPDX-License-Identifier: Apache-2.0
"""Agents of the chart lend their GPU to a network of people (docs/PEERS.md), whose directory is on a machine that is no
pod: they enter it, its users compute from there, and a seat of examples/peers computes in a pod."""
import json
import os

import node
from cluster import (BUILD, DEMO, GPUS, PREFIX, ROOT, SPACE, SYSTEM, Skip, apply, container, eventually, execute, get, helm, k, kubectl,
                     pod, pod_spec, ready, revision, upgrade)

RIGHT = "sums are right"
DIRECTORY, PASSWORD, TOKEN = "peers-directory", f"open-{'y' * 24}", f"lab-{'z' * 24}"
GIB, LENT = 1 << 30, 2  # of each GPU's memory
WORKER = f"{node.ADDRESS}:9998"
found = {}


def beside(*command, **more):
    """On the machine beside the node."""
    return node.run("nsenter", "--net=" + node.machine(), *command, **more)


def vcuda(token, *command, **more):
    path = node.path("lab.token")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(token + "\n")
    return beside(os.path.join(BUILD, "bin", "vcuda"), "run", "--agent", WORKER, "--token-file", path, "--", *command, **more)


def entries():
    """What agents say of themselves, by the directory."""
    ask = ("redis-cli", "-h", node.BESIDE, "--no-auth-warning", "-a", PASSWORD, "--json")
    names = json.loads(beside(*ask, "keys", "node:*"))
    return [json.loads(beside(*ask, "hgetall", name)) for name in names]


def test_an_agent_enters_the_networks_directory():
    if node.gpu():
        raise Skip("its GPU's memory would be lent while the other tests measure it")
    found["revision"] = revision()
    node.daemon(DIRECTORY, "nsenter", "--net=" + node.machine(), "redis-server", "--bind", node.BESIDE, "--requirepass", PASSWORD,
                "--save", "", "--dir", node.path(), outside=True)
    eventually(lambda: entries() == [], 10, "the directory serves")
    lab = {"name": "lab", "directory": f"tcp://{node.BESIDE}:6379", "token": TOKEN, "password": PASSWORD, "memory": f"{LENT}GiB"}
    upgrade({"agent": {"hostNetwork": True, "networks": [lab]},
             "auth": {"enabled": True, "token": f"sesame-{'x' * 24}", "namespaces": [SPACE]}}, "daemonset")
    said = eventually(entries, 30, "an agent is in it")
    assert [(one["address"], one["network"], int(one["memory"])) for one in said] == [(WORKER, "lab", GPUS * LENT * GIB)], said


def test_who_has_the_networks_token_computes_from_elsewhere():
    wants()
    out = vcuda(TOKEN, os.path.join(BUILD, "examples", "vectorAdd"))
    assert RIGHT in out and f"{LENT * 1024} MiB" in out, out
    try:
        out = vcuda(f"not-{'z' * 24}", os.path.join(BUILD, "examples", "vectorAdd"))
    except RuntimeError as error:
        out = str(error)
    assert RIGHT not in out and "token" in out, out


def test_a_seat_of_the_examples_computes_with_the_networks_gpu():
    """All of examples/peers/seat.yaml but its image, its addresses and Ray, which that image has."""
    wants()
    seat = json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", os.path.join(ROOT, "examples/peers/seat.yaml")))
    seat["metadata"]["namespace"] = SPACE
    template = seat["spec"]["template"]
    template["metadata"]["annotations"][PREFIX + "server"] = WORKER
    one = template["spec"]["containers"][0]
    start = one["command"][-1]
    assert start.startswith("nvidia-smi -L && exec ray start "), start
    one.update(image=DEMO, command=["sh", "-c", "nvidia-smi -L && cat /etc/peers/token && echo && exec sleep 600"])
    one["resources"]["requests"] = {"cpu": "100m", "memory": "64Mi"}
    for name, value in (("peers-lab", TOKEN), ("peers-ray", "rays-token")):
        k("create", "secret", "generic", name, "--from-literal", "token=" + value)
    apply(seat)
    kubectl("-n", SPACE, "rollout", "status", "deployment/peers-seat", "--timeout=60s")
    said = eventually(lambda: "rays-token" in (logs := k("logs", "deployment/peers-seat", "-c", "seat")) and logs, 20, "it read Ray's token")
    assert "GPU 0" in said, said
    _, out = execute("deployment/peers-seat", "vectorAdd", container="seat")
    assert RIGHT in out and f"{LENT * 1024} MiB" in out, out
    _, out = execute("deployment/peers-seat", "sh", "-c", "env; cat /run/vcuda/* 2>/dev/null", container="seat", check=False)
    assert TOKEN not in out, "the seat's program can read the token"


def test_the_worker_goes_with_its_seat_and_leaves_the_directory():
    wants()
    helm("rollback", "vcuda", str(found["revision"]))
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
    eventually(lambda: entries() == [], 20, "the directory has no entry of it")
    seats = [one for one in get("pods")["items"] if one["metadata"]["labels"].get("app") == "peers-seat"]
    assert len(seats) == 1, seats
    name = seats[0]["metadata"]["name"]
    eventually(lambda: not all(one["ready"] for one in get("pod", name)["status"]["containerStatuses"]) or
               get("pod", name)["status"]["containerStatuses"][0]["restartCount"], 150, "the seat has ended")
    k("delete", "deployment/peers-seat", "secret/peers-lab", "secret/peers-ray", "--wait=false")
    apply(pod("after-peers", pod_spec(container()), {PREFIX + "enabled": "true"}))
    ready("after-peers", 90)
    assert RIGHT in execute("after-peers", "vectorAdd")[1]
    node.end(DIRECTORY)


def wants():
    if "revision" not in found:
        raise Skip("wants the agent in the directory")
