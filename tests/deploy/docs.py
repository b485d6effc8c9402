#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say of the chart: every `--set` is accepted, every value that is named exists, the
tables of annotations are those of the injector, and the sidecar takes what annotations may say."""
import json
import os
import re
import subprocess
import sys

import yaml

import chart

# AGENT.md has the --set of gpu-agent itself.
PAGES = [chart.ROOT / "README.md", chart.CHART / "README.md.in",
         *(page for page in sorted((chart.ROOT / "docs").glob("*.md")) if page.name != "AGENT.md")]
GUIDE = (chart.ROOT / "docs/KUBERNETES.md").read_text()
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())
PREFIX = "tensor-fusion.ai/"
# Set by injection, or on namespaces and nodes: no annotations of users.
OURS = {"status", "injected-version", "component", "injection", "gpu"}
# Annotation: the environment of the sidecar that it becomes.
REACHES = {"vram-limit": "VCUDA_VRAM_LIMIT", "gpu-count": "VCUDA_GPU_COUNT", "gpu-spread": "VCUDA_GPU_SPREAD",
           "upload-cache": "VCUDA_UPLOAD_CACHE", "priority": "VCUDA_PRIORITY", "protocol": "VCUDA_PROTOCOL", "compress": "VCUDA_COMPRESS",
           "shm-size": "VCUDA_SHM_SIZE",
           "grace": "VCUDA_GRACE", "log-level": "VCUDA_LOG_LEVEL", "server": "VCUDA_AGENT", "ipc-mode": "VCUDA_IPC"}


def sets(line):
    """The values that a command line gives to helm."""
    found = re.findall(r"--set[ =](?:'([^']*)'|([^\s`]+))", line)
    return [(quoted or bare).rstrip(").,;").replace("$REGISTRY", "registry.example/x") for quoted, bare in found]


def check_commands(checks):
    seen = 0
    for page in PAGES:
        for line in page.read_text().replace("\\\n", " ").splitlines():
            values = sets(line)
            # The agent has a --set of its own.
            if not values or line.strip().startswith("gpu-agent "):
                continue
            seen += 1
            done = chart.template(values, [chart.MAP])
            checks.check(f"{page.name}: {' '.join(values)}", done.returncode and done.stderr.strip()[-300:])
    checks.check("commands with --set in the documents", seen < 5 and f"only {seen} were found")


def in_schema(path):
    """Whether values.schema.json knows a value; below an open map, such as agent.config, anything goes."""
    where = SCHEMA
    for part in path.split("."):
        if part not in where.get("properties", {}):
            return "properties" not in where
        where = where["properties"][part]
    return True


def check_values(checks):
    roots = "|".join(name for name in SCHEMA["properties"] if name != "extraObjects")
    named = re.findall(rf"`((?:{roots})\.[A-Za-z.]*[A-Za-z_])(?:(?:=|: )([^`\s]*))?`", GUIDE)
    checks.check("values in KUBERNETES.md", len(named) < 20 and f"only {len(named)} were found")
    for path, value in sorted(set(named)):
        if path == "agent.yaml":
            continue
        checks.check(f"KUBERNETES.md: {path}", not in_schema(path) and "values.schema.json does not know it")
        if value and in_schema(path):
            also = ["auth.enabled=true"] if path.startswith("auth.") else []
            done = chart.template([f"{path}={value}", *also], [chart.MAP])
            checks.check(f"KUBERNETES.md: {path}={value}", done.returncode and done.stderr.strip()[-300:])


def table(head):
    """The names in the first column of the table whose head line has this text."""
    lines = GUIDE[GUIDE.index(head):].split("\n\n", 1)[0].splitlines()[2:]
    return [name for line in lines for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])]


def check_annotations(checks):
    enforced, passed = table("| annotation | takes |"), table("| annotation | passed through")
    made = "".join((chart.ROOT / f"deploy/kyverno/{engine}.yaml").read_text()
                   for engine in ("mutatingadmissionpolicy", "mutatingpolicy", "clusterpolicy"))
    known = set(re.findall(PREFIX + r"([a-z-]+)", made)) - OURS
    checks.check("annotations of the table", set(enforced) != known and f"differ: {sorted(set(enforced) ^ known)}")
    checks.check("annotations passed through", set(passed) & known)
    checks.check("annotations twice", len(set(enforced + passed)) != len(enforced + passed))
    odd = yaml.safe_load((chart.ROOT / "tests/deploy/odd.yaml").read_text())
    untried = set(enforced) - set(odd) - {"enabled", "exclude-container"}
    checks.check("annotations of odd.yaml", untried)


def check_sidecar(checks):
    """The sidecar reads its environment before it does anything."""
    odd = yaml.safe_load((chart.ROOT / "tests/deploy/odd.yaml").read_text())
    program = f"{os.environ.get('BUILD', 'build')}/bin/vcuda-client"
    for key, name in REACHES.items():
        for value in odd[key]["takes"]:
            env = {"VCUDA_SOCKET": "/nonexistent/vcuda.sock", name: value}
            done = subprocess.run([program, "status"], env=env, capture_output=True, text=True, timeout=10)
            checks.check(f"the sidecar with {key} {value}", f"${name}" in done.stderr and done.stderr.strip())
    done = subprocess.run([program, "status"], env={"VCUDA_GPU_COUNT": "17"}, capture_output=True, text=True, timeout=10)
    checks.check("the sidecar with 17 GPUs", "$VCUDA_GPU_COUNT" not in done.stderr and "takes them, annotations may say so")


def main():
    checks = chart.Checks()
    check_commands(checks)
    check_values(checks)
    check_annotations(checks)
    check_sidecar(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
