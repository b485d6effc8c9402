# SPDX-License-Identifier: Apache-2.0
"""Named tensors by the chart: ten pods load one file of weights from two agents, which share the chart's Redis."""
import base64
import hashlib
import json
import os
import random
import struct

import node
import python_pod
from cluster import (ROOT, SYSTEM, Skip, agents, annotations, apply, as_it_was, ask_agents, eventually, get, k, kubectl, pod,
                     pod_spec, ready, start, two_agents)

MIB = 1 << 20
FILE_MIB, PARTS, PODS = 256, 16, 10
SLACK = 4 * MIB  # of an agent's memory: a piece more than the file
NAMES = [f"weights-{i}" for i in range(PODS)]
found = {}


def weights(path):
    """A file of weights; the hash of its parts' bytes."""
    draw, digest = random.Random(17), hashlib.sha256()
    size = FILE_MIB * MIB // PARTS
    told = {f"part{i:02}": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [i * size, (i + 1) * size]} for i in range(PARTS)}
    head = json.dumps(told).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        for _ in told:
            part = draw.randbytes(size)
            digest.update(part)
            out.write(part)
    return digest.hexdigest()


def total(key):
    """Of all programs' sessions, as the agents tell it."""
    return sum(session[key] for said in ask_agents("/v1/sessions").values() for session in said["sessions"])


def memory():
    """{agent: bytes of its GPU that tensors have}"""
    return {address: sum(tensor["bytes"] for tensor in said["tensors"])
            for address, said in ask_agents("/v1/tensors").items()}


def test_the_charts_redis_joins_two_agents():
    if node.gpu():
        raise Skip("wants software GPUs: agents on one node would share a real one")
    found["revision"] = two_agents({"store": {"bytes": "2GiB", "redis": {"enabled": True}}})
    one = [p for p in get("pods", space=SYSTEM)["items"] if p["metadata"]["labels"].get("tensor-fusion.ai/component") == "redis"]
    assert len(one) == 1, one
    name, address = one[0]["metadata"]["name"], one[0]["status"]["podIP"]
    words = ("redis-cli", "-h", address, "--no-auth-warning")
    refused = node.run(*node.inside(*words, "keys", "node:*"), check=False)
    assert "NOAUTH" in refused, refused
    password = json.loads(kubectl("-n", SYSTEM, "get", "secret", "vcuda-redis", "-o", "json"))["data"]["password"]
    found["redis"] = (*words, "-a", base64.b64decode(password).decode())
    eventually(lambda: node.run(*node.inside(*found["redis"], "keys", "node:*")).count("node:") == 2, 20, "both agents are in it")
    return name


def test_ten_pods_share_a_copy_of_the_weights_at_each_agent():
    if "redis" not in found:
        raise Skip("wants the two agents")
    folder = node.path("weights")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.safetensors")
    digest, size = weights(path), FILE_MIB * MIB
    apply(*(pod(name, python_pod.dress(pod_spec(), folders=[ROOT, folder]), annotations()) for name in NAMES))
    for name in NAMES:
        ready(name, 120)
    held = [start(name, "python3", os.path.join(ROOT, "tests", "cluster", "load_weights.py"), path) for name in NAMES]
    said = [one.stdout.readline() for one in held]
    assert all(line.startswith("{") for line in said), [line + one.communicate(timeout=20)[0] for line, one in zip(said, held)
                                                        if not line.startswith("{")]
    said = [json.loads(line) for line in said]
    assert {one["digest"] for one in said} == {digest}, said
    assert sum(agents().values()) == PODS and min(agents().values()) >= 1, agents()
    eventually(lambda: total("copies_in_bytes") >= size, 30, "the upload is counted")
    assert total("copies_in_bytes") <= 1.01 * size and total("bytes_received") <= 1.01 * size, \
        (total("copies_in_bytes"), total("bytes_received"))
    assert all(size <= has <= size + SLACK for has in memory().values()), memory()
    wire = total("bytes_received") / size
    for one in held:
        one.stdin.close()
    assert [one.wait(30) for one in held] == [0] * PODS
    took = sorted(one["seconds"] for one in said)
    return f"{wire:.4f} of the file over the wire; after {took[0]:.2f} to {took[-1]:.2f} s"


def test_the_release_is_as_it_was():
    if "revision" not in found:
        raise Skip("nothing was changed")
    k("delete", "pod", *NAMES, "--wait=false", "--ignore-not-found")
    as_it_was(found["revision"])
