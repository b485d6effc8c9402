# SPDX-License-Identifier: Apache-2.0
"""Two agents with a GPU each: a pod that has both, and a job whose pods have one each and reduce by NCCL."""
import json
import os
import re

import node
import node_process
import python_pod
from cluster import (BUILD, ROOT, SPACE, Skip, agents, annotations, apply, as_it_was, ask_agents, eventually, execute, get, k,
                     kubectl, pod, proofs, put_program, ready, start, two_agents, upgrade, why)

JOB = os.path.join(ROOT, "examples", "peers", "job.yaml")
TORCH = os.path.join(node_process.CACHE, "torch-2.11.0")
LOSSES = "losses [-116.875, "  # of one process with the whole batch (examples/peers/model.py)
found = {}


def test_two_agents_have_a_gpu_each():
    if node.gpu():
        raise Skip("wants software GPUs: agents on one node would share a real one")
    found["revision"] = two_agents({"agent": {"config": {"nccl": {"allowed": True}}}})


def two():
    if "revision" not in found:
        raise Skip("wants the two agents")


def test_a_pod_that_wants_two_gpus_gets_one_of_each_agent():
    two()
    apply(pod("both", wanted=annotations(gpu_count="2", gpu_spread="if-needed")))
    ready("both")
    _, out = execute("both", "nvidia-smi", "-L")
    assert len(set(re.findall(r"UUID: (GPU-\S+?)\)", out))) == 2, out
    put_program("both", os.path.join(BUILD, "stack", "direct"), "/tmp/direct")
    copies = start("both", "/tmp/direct", "go-on")
    said = [copies.stdout.readline(), copies.stdout.readline()]
    assert said == ["running\n", "copied\n"], said + [copies.communicate(timeout=20)[0]]
    assert sorted(agents().values()) == [1, 1], agents()
    rest = copies.communicate(timeout=20)[0]
    assert copies.returncode == 0 and re.search("^[1-9][0-9]* right, 0 wrong", rest, re.M), rest
    execute("both", "/tmp/direct", "copies", seconds=120)
    k("delete", "pod", "both", "--wait=false")


def test_without_gpu_spread_it_is_told_that_no_agent_has_two():
    two()
    apply(pod("alone", wanted=annotations(gpu_count="2")))
    said = eventually(lambda: [e["message"] for e in get("events")["items"] if e["involvedObject"]["name"] == "alone"
                               and "Startup probe failed" in e["message"]], 40, "an event that says why")[0]
    assert "2" in said and "GPU" in said, said
    k("delete", "pod", "alone", "--wait=false")


def test_the_indexed_job_of_the_examples_reduces_by_nccl_over_both_agents():
    two()
    if not os.path.exists(os.path.join(TORCH, ".complete")):
        raise Skip("wants PyTorch: tests/torch/install.sh ~/.cache/vcuda 2.11.0")
    text = kubectl("create", "--dry-run=client", "-o", "json", "-f", JOB)  # one behind the other
    service, end = json.JSONDecoder().raw_decode(text)
    job = json.loads(text[end:])
    service["metadata"]["namespace"] = job["metadata"]["namespace"] = SPACE
    name = job["metadata"]["name"]
    python_pod.dress(job["spec"]["template"]["spec"], TORCH, at=[("/srv", os.path.join(ROOT, "examples", "peers"))])
    apply(service, job)
    try:
        over_both_agents(name)
    finally:
        k("delete", "job,service", name, "--wait=false")


def over_both_agents(name):
    met = {}  # pods that each agent had

    def over():
        for address, said in ask_agents("/v1/sessions").items():
            met.setdefault(address, set()).update(session["pod"] for session in said["sessions"])
        return {one["type"] for one in get("job", name)["status"].get("conditions", [])} & {"Complete", "Failed"}

    ended = eventually(over, 300, "the job ends")
    logs = {one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]:
            k("logs", one["metadata"]["name"], "-c", "train", check=False)
            for one in get("pods")["items"] if one["metadata"]["labels"].get("job-name") == name}
    assert "Complete" in ended, (ended, logs, why("job/" + name))
    assert LOSSES in logs["0"], logs
    assert [len(pods) for pods in met.values()] == [1, 1] and len(set.union(*met.values())) == 2, met


def test_over_tls_agents_copy_to_each_other_too():
    """They show each other the certificate that the chart's Job made, under one name."""
    two()
    upgrade(proofs())
    apply(pod("secret", wanted=annotations(gpu_count="2", gpu_spread="always")))
    ready("secret", 90)
    put_program("secret", os.path.join(BUILD, "stack", "direct"), "/tmp/direct")
    execute("secret", "/tmp/direct", "copies", seconds=120)
    said = json.loads(execute("secret", "/lib/vcuda/vcuda-client", "status", "--json", container="vcuda-client")[1])
    assert said["totals"]["attached"] and not said["totals"]["relayed_bytes"], said["totals"]
    k("delete", "pod", "secret", "--wait=false")


def test_the_release_is_as_it_was():
    two()
    as_it_was(found["revision"])
