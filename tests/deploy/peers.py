#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of people (docs/PEERS.md) in a cluster: what the chart makes of agent.networks, which the agent itself reads,
and that the injection policy's own forms take the annotations of examples/peers."""
import base64
import json
import os
import pathlib
import re
import sys
import tempfile

import yaml

import chart

AGENT = f"{os.environ.get('BUILD', 'build')}/bin/gpu-agent"
EXAMPLES = chart.ROOT / "examples/peers"
PREFIX = "tensor-fusion.ai/"
LAB = {"name": "lab", "directory": "tcp://10.0.0.1:6390", "token": "lab-token", "password": "pass word", "memory": "8GiB", "gpus": [0, "2-3"],
       "sessions": 4, "hours": ["22:00-06:00"]}
BOB = {"name": "bob", "directory": "tcp://redis.example:6391", "user": "bob", "secretName": "bobs", "address": "gpu.example:9998"}
BASE = {"injector": {"enabled": False}, "agent": {"driver": "software"}}
# What is other than in LAB (None: not there), other values, and what the refusal must say.
REFUSED = [
    ({"token": None}, {}, "lab has neither token nor secretName"),
    ({"secretName": "x"}, {}, "of no use with secretName"),
    ({"user": "x", "password": None}, {}, "user wants a password"),
    ({"token": "two words"}, {}, "agent/networks/0/token"),
    ({"name": "Lab"}, {}, "agent/networks/0/name"),
    ({"directory": "redis://x:1"}, {}, "agent/networks/0/directory"),
    ({"directory": None}, {}, "missing property 'directory'"),
    ({"colour": "red"}, {}, "additional properties 'colour' not allowed"),
    ({"sessions": -1}, {}, "agent/networks/0/sessions"),
    ({"address": "a"}, {"agent": {"kind": "Deployment", "replicas": 2}}, "address is one agent's, and there are 2"),
    ({}, {"agent": {"enabled": False}, "injector": {"enabled": True, "server": "a"}}, "there is no GPU to lend"),
    ({}, {"injector": {"enabled": True}}, "ask everybody for a token, injected pods too"),
    ({}, {"agent": {"networks": [LAB, LAB]}}, "there are two of the name lab"),
]


def template(*values, has=(chart.MAP,), more=()):
    with tempfile.TemporaryDirectory(prefix="vcuda-values-") as folder:
        files = []
        for number, one in enumerate(values):
            path = pathlib.Path(folder) / f"{number}.json"
            path.write_text(json.dumps(one))
            files += ["-f", path]
        return chart.template([], list(has), *files, *more)


def objects(*values):
    done = template(*values)
    if done.returncode:
        sys.exit(done.stderr)
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


def find(things, kind, name):
    return next(thing for thing in things if (thing["kind"], thing["metadata"]["name"]) == (kind, name))


def check_with(config, folder, files, words=()):
    """What the agent says of a configuration whose mounted files are FILES, {path in the pod: bytes}."""
    for path, content in files.items():
        here = folder / path.strip("/").replace("/", "_")
        here.write_bytes(content)
        config = config.replace(path, str(here))
    tried = folder / "agent.yaml"
    tried.write_text(config)
    return chart.run(AGENT, "--check-config", "--config", tried, *words)


def check_networks(checks):
    things = objects(BASE, {"agent": {"networks": [LAB, BOB]}})
    config = find(things, "ConfigMap", "vcuda-agent")["data"]["agent.yaml"]
    said = yaml.safe_load(config)
    wanted = [{**{key: value for key, value in one.items() if key not in ("token", "password", "secretName")},
               "token_file": f"/etc/vcuda/networks/{one['name']}.token", "password_file": f"/etc/vcuda/networks/{one['name']}.password"}
              for one in (LAB, BOB)]
    checks.check("networks of the configuration", said["networks"] != wanted and said["networks"])
    checks.check("a network's agent asks for tokens", "insecure" in said)
    checks.check("no secret in the configuration", LAB["token"] in config or LAB["password"] in config)

    # The pod: each Secret's keys become the files that the configuration names.
    pod = find(things, "DaemonSet", "vcuda-agent")["spec"]["template"]["spec"]
    volume = next(one for one in pod["volumes"] if one["name"] == "networks")["projected"]
    container = pod["containers"][0]
    mount = next(one for one in container["volumeMounts"] if one["name"] == "networks")["mountPath"]
    secrets = {thing["metadata"]["name"]: {key: base64.b64decode(text) for key, text in thing["data"].items()}
               for thing in things if thing["kind"] == "Secret"}
    checks.check("of one's own Secret the chart makes none", "bobs" in secrets or len(secrets) != 2)  # lab's, and HTTP's
    secrets["bobs"] = {"token": b"bob-token\n", "password": b"x\n"}
    files = {f"{mount}/{item['path']}": secrets[source["secret"]["name"]][item["key"]]
             for source in volume["sources"] for item in source["secret"]["items"]}
    files["/etc/vcuda/http/token"] = secrets["vcuda-agent-http"]["token"]
    checks.check("lab's Secret", files[f"{mount}/lab.token"] != b"lab-token\n" or files[f"{mount}/lab.password"] != b"pass word\n")
    checks.check("others read the files", volume["defaultMode"] != 0o440 and volume)
    node = next(one for one in container["env"] if one["name"] == "VCUDA_NODE")
    checks.check("the pod's address", node["valueFrom"]["fieldRef"]["fieldPath"] != "status.podIP" and node)
    words = [word.replace("$(VCUDA_NODE)", "10.0.0.2") for word in container["args"][2:]]
    checks.check("its ID", words != ["--set", "store.node=10.0.0.2"] and container["args"])
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        done = check_with(config, pathlib.Path(folder), files, words)
        checks.check("the agent takes its networks", done.returncode and done.stderr)
        done = check_with(config, pathlib.Path(folder), {**files, f"{mount}/bob.token": b"lab-token\n"}, words)
        checks.check("and looks at their tokens", not done.returncode and "one token of two networks was let in")

    # What is tried before an installation has the same networks, and tokens of its own.
    before = find(things, "ConfigMap", "vcuda-agent-check")["data"]
    job = find(things, "Job", "vcuda-agent-check")["spec"]["template"]["spec"]["containers"][0]
    tried = {one["mountPath"]: before[one["subPath"]].encode() for one in job["volumeMounts"] if one["subPath"] != "agent.yaml"}
    checks.check("networks that are tried", yaml.safe_load(before["agent.yaml"])["networks"] != wanted and before)
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        done = check_with(before["agent.yaml"], pathlib.Path(folder), tried)
        checks.check("the agent can try them", done.returncode and done.stderr)
        wrong = check_with(before["agent.yaml"].replace("22:00-06:00", "22-6"), pathlib.Path(folder), tried)
        checks.check("and finds what is wrong", "hours: '22-6' is not" not in wrong.stderr and (wrong.stderr or "it was taken"))
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        (pathlib.Path(folder) / "objects.yaml").write_text(yaml.safe_dump_all(things, width=10000))
        checks.check("the chart's objects", chart.kubeconform(pathlib.Path(folder)))

    mine = objects(BASE, {"agent": {"networks": [LAB], "config": {"store": {"node": "mine"}}}})
    args = find(mine, "DaemonSet", "vcuda-agent")["spec"]["template"]["spec"]["containers"][0]["args"]
    checks.check("one's own store.node", "--set" in args and args)
    plain = objects(BASE)
    checks.check("without networks", "etworks" in json.dumps([thing for thing in plain if thing["kind"] != "NetworkPolicy"]))
    checks.check("and without tokens", not yaml.safe_load(find(plain, "ConfigMap", "vcuda-agent")["data"]["agent.yaml"]).get("insecure"))
    open_ports = {port["port"] for rule in find(things, "NetworkPolicy", "vcuda-agent")["spec"]["egress"] for port in rule["ports"]}
    checks.check("the directories' ports", open_ports != {6390, 6391, 53, "recv"} and open_ports)


def check_refusals(checks):
    for other, values, text in REFUSED:
        one = {key: value for key, value in {**LAB, **other}.items() if value is not None}
        done = template(BASE, {"agent": {"networks": [one]}}, values)
        checks.check(f"refusal {other} {values}", not done.returncode and "it was let in"
                     or text not in done.stderr and done.stderr.strip()[-300:])
    done = template(BASE, {"agent": {"networks": [LAB]}, "injector": {"enabled": True}, "auth": {"enabled": True}})
    checks.check("pods and networks, with tokens for both", done.returncode and done.stderr)


def policy_forms():
    """{annotation: the form that the policy wants}: the chart's own."""
    done = template({"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {
        "words": '{{ include "vcuda.inject.words" . | fromYamlArray | toJson | b64enc }}'}}]}, more=("-s", "templates/extra-objects.yaml"))
    rows = json.loads(base64.b64decode(yaml.safe_load(done.stdout)["data"]["words"]))
    return {PREFIX + row["key"]: row["form"] for row in rows}


def check_examples(checks):
    """Each manifest fits the schemas, and its pods are ones that the policy injects as they want it."""
    forms = policy_forms()
    checks.check("forms of the policy", len(forms) < 15 and forms)
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        for path in EXAMPLES.glob("*.yaml"):
            (pathlib.Path(folder) / path.name).write_text(path.read_text())
        checks.check("manifests", chart.kubeconform(pathlib.Path(folder)))
    templates = {path.name: thing["spec"]["template"] for path in EXAMPLES.glob("*.yaml")
                 for thing in yaml.safe_load_all(path.read_text()) if "template" in thing.get("spec", {})}
    checks.check("examples with pods", set(templates) != {"job.yaml", "seat.yaml"} and set(templates))
    for name, pod in templates.items():
        notes = {key: text for key, text in pod["metadata"]["annotations"].items() if key.startswith(PREFIX)}
        checks.check(f"{name} is injected", notes.get(PREFIX + "enabled") != "true" and notes)
        for key, text in notes.items():
            checks.check(f"{name}: {key}", key not in forms and "the policy does not know it"
                         or not re.fullmatch(forms.get(key, ""), text) and f"'{text}' is not {forms[key]}")
        there = {one["name"] for one in pod["spec"]["containers"]}
        wanted = set(notes.get(PREFIX + "inject-container", "").split(",")) - {""}
        checks.check(f"{name}: containers", wanted - there)
    seat = templates["seat.yaml"]["spec"]
    mounts = {one["name"]: one["mountPath"] for one in seat["containers"][0]["volumeMounts"]}
    env = {one["name"]: one["value"] for one in seat["containers"][0]["env"]}
    checks.check("the seat's token of Ray", os.path.dirname(env["RAY_AUTH_TOKEN_PATH"]) != mounts["ray-token"] and env)
    checks.check("the seat's volumes", {one["name"] for one in seat["volumes"]} ^ set(mounts))


def main():
    checks = chart.Checks()
    check_networks(checks)
    check_refusals(checks)
    check_examples(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
