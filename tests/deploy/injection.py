#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the injection policies make of the pods in pods/, with a real engine.

    injection.py map                          # a real kube-apiserver evaluates the policy
    injection.py mutatingpolicy clusterpolicy # Kyverno's engine does, through its CLI

Each pod's second line says what must become of it: injected, untouched, refused with a text, or refused
by the server (after injection, with the server's own sentence; Kyverno's CLI has no server and injects).
A line more may say what the user is warned of, without which nobody may be warned, or the class of its QoS,
which a server tells.
What "injected" means is worked out from the pod alone (injected.py), and everything else in the
pod must be as it was.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import yaml

import apiserver
from injected import CHART, P, annotations, bare, check_injected, same

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parents[1] / "deploy/kyverno/tests/patched"
HELM = apiserver.find_binary("helm")
KYVERNO = apiserver.find_binary("kyverno-cli")
NEEDS = {"map": "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy",
         "mutatingpolicy": "policies.kyverno.io/v1/MutatingPolicy",
         "clusterpolicy": "kyverno.io/v1/ClusterPolicy"}
NAMESPACES = {"default": {}, "restricted": {"pod-security.kubernetes.io/enforce": "restricted"},
              "baseline": {"pod-security.kubernetes.io/enforce": "baseline"},
              "disabled": {P + "injection": "disabled"}, "wide": {P + "injection": "enabled"}}


def render(engine, *more):
    text = subprocess.run([HELM, "template", "vcuda", str(CHART), "-n", "vcuda", "-a", NEEDS[engine],
                           "-s", f"templates/injector-{engine}.yaml", *more],
                          check=True, capture_output=True, text=True).stdout
    return [document for document in yaml.safe_load_all(text) if document]


class Case:
    def __init__(self, pod, expect, warns=None, qos=None):
        self.pod, self.expect, self.warns, self.qos = pod, expect, warns, qos
        self.warned = ""  # what was said beside the answer
        self.name = pod["metadata"]["name"]
        self.namespace = pod["metadata"].get("namespace", "default")


def read_case(path):
    text = path.read_text()
    says = dict(re.findall(r"^# (expect|warns|qos): (.*)$", text, re.M))
    case = Case(yaml.safe_load(text), says["expect"], says.get("warns"), says.get("qos"))
    if case.name != path.stem:
        raise SystemExit(f"{path}: the pod is called {case.name}")
    return case


def value_cases(only_quoted):
    """The pod of the guide with each value of odd.yaml.  All engines hold values against the same forms; what
    differs is how they quote, so that one which needs a quarter of a second for a pod gets only those."""
    odd = yaml.safe_load((HERE / "odd.yaml").read_text())
    for key, values in odd.items():
        for kind, expect in (("takes", "injected"), ("refuses", f"refused: {key} takes ")):
            for number, value in enumerate(values[kind]):
                if only_quoted and number and re.fullmatch(r"[-A-Za-z0-9.:/@]*", value):
                    continue
                yield Case({"apiVersion": "v1", "kind": "Pod",
                            "metadata": {"name": f"{key}-{kind}-{number}",
                                         "annotations": {P + "enabled": "true", P + key: value}},
                            "spec": {"containers": [{"name": "app", "image": "debian:12"}]}}, expect)


def large_cases():
    """Pods near the limits of what an API server takes: 256 KiB of annotations, 1.5 MB in all."""
    def pod(name, annotations, containers=({},)):
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "annotations": {P + "enabled": "true", **annotations}},
                "spec": {"containers": [{"name": f"c{i}", "image": "debian:12", **more}
                                        for i, more in enumerate(containers)]}}

    env = [{"name": f"VARIABLE_{i}", "value": "x" * 100} for i in range(500)]
    yield Case(pod("large-note", {"example.com/note": "x" * 250000}), "injected")
    yield Case(pod("large-server", {P + "server": "a," * 120000}), "refused: server takes ")
    yield Case(pod("large-names", {P + "inject-container": "a," * 120000}), "refused: ")
    yield Case(pod("large-spaces", {P + "exclude-container": " " * 250000}), "refused: ")
    yield Case(pod("large-environment", {}, [{"env": env}] * 8), "injected")
    yield Case(pod("many-containers", {}, [{"env": env[:5]}] * 60), "injected")


def golden(case):
    """The pod of its golden file (golden.py); None if it has none."""
    path = GOLDEN / f"{case.name}.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else None


def judge(case, outcome, raw, server, file=None):
    """outcome: the pod that came back, or the text of a refusal.  file: what its golden file says."""
    refusal = outcome if isinstance(outcome, str) else None
    expect = case.expect
    if expect.startswith("refused by the server: "):
        expect = "refused: " + expect[23:] if server else "injected"
    if expect.startswith("refused: "):
        if refusal is None or expect.removeprefix("refused: ") not in refusal:
            raise AssertionError(f"not refused with '{expect[9:]}' but {refusal or 'let in'}")
    elif refusal is not None:
        raise AssertionError(f"refused: {refusal}")
    elif expect == "untouched":
        same("the pod", bare(outcome), bare(raw))
    else:
        check_injected(raw, outcome)
        if server and case.qos:
            same("its QoS", outcome["status"]["qosClass"], case.qos)
    if (case.warns or "") not in case.warned or bool(case.warned) != bool(case.warns):
        raise AssertionError(f"warned of '{case.warned}', not of '{case.warns}'")
    if file:
        same("its golden file", bare(outcome), bare(file))


def by_apiserver(cases):
    """Yields case, outcome, raw, file: what came back of the pod; what comes back of it, and of its golden
    file, without the policy."""
    with apiserver.Apiserver() as api:
        for name, labels in NAMESPACES.items():
            if name != "default":
                api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

        def ask(pod):
            try:
                return api.create(pod, dry_run=True, namespace=case.namespace)
            except apiserver.Refused as problem:
                return str(problem)

        # The same pods in a cluster without the policy: what defaults alone make of them.
        plain, files = {}, {}
        for case in cases:
            plain[case.name] = ask(case.pod)
            files[case.name] = golden(case) and ask(golden(case))
        for thing in render("map"):
            api.create(thing)
        first = next(case for case in cases if case.name == "one-container")
        deadline = time.monotonic() + 30
        # Five policies, which a server reads one after the other: a pod for each.
        probes = [(space, {**notes, **more}) for space, notes in (("default", {"enabled": "true"}), ("wide", {}))
                  for more in ({}, {"ipc-mode": "none"})] + [("default", {"enabled": "true", "gpupool": "a"})]

        def in_force(space, notes):
            nonlocal case
            case = Case({**first.pod, "metadata": {"name": "probe", "namespace": space,
                                                   "annotations": {P + key: value for key, value in notes.items()}}}, "")
            outcome = ask(case.pod)
            if "gpupool" in notes:
                return api.warnings
            return isinstance(outcome, str) if "ipc-mode" in notes else P + "status" in str(outcome)

        while not all(in_force(*probe) for probe in probes):
            if time.monotonic() > deadline:
                raise SystemExit(f"the policies do nothing after 30 s: {ask(case.pod)}")
            time.sleep(0.2)
        for case in cases:
            raw = plain[case.name] if isinstance(plain[case.name], dict) else case.pod
            outcome = ask(case.pod)
            case.warned = " ".join(warning for warning in api.warnings if P in warning)
            yield case, outcome, raw, files[case.name]
        case = first
        times = {}
        for what in ("injected", "untouched"):
            pod = copy.deepcopy(first.pod)
            if what == "untouched":
                del pod["metadata"]["annotations"]
            samples = []
            for _ in range(15):
                start = time.monotonic()
                ask(pod)
                samples.append(time.monotonic() - start)
            times[what] = sorted(samples)[len(samples) // 2] * 1000
        print(f"admission: {times['injected']:.0f} ms with injection, {times['untouched']:.0f} ms without (medians)")
        # With failurePolicy: Ignore a mistake is refused all the same.
        bad = next((case for case in cases if case.name == "bad-vram-limit"), None)
        if bad:
            for thing in render("map"):
                api.delete(thing)
            for thing in render("map", "--set", "injector.failurePolicy=Ignore", "--set", "fullnameOverride=second"):
                api.create(thing)
            case, deadline = bad, time.monotonic() + 30
            while "'second-refuse'" not in str(ask(bad.pod)) and time.monotonic() < deadline:
                time.sleep(0.2)
            told = str(ask(bad.pod))
            yield bad, told if "'second-refuse'" in told else "let in by the second policy", bad.pod, None


def by_kyverno(engine, cases, *more):
    """The same from Kyverno's CLI, asked for all pods at once.  more: what helm is told."""
    with tempfile.TemporaryDirectory(prefix="vcuda-kyverno-") as folder:
        folder = pathlib.Path(folder)
        (folder / "pods").mkdir()
        (folder / "made").mkdir()
        (folder / "policy.yaml").write_text(yaml.safe_dump_all(render(engine, *more), width=10000))
        (folder / "values.yaml").write_text(yaml.safe_dump({
            "apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "metadata": {"name": "values"},
            "namespaceSelector": [{"name": name, "labels": labels} for name, labels in NAMESPACES.items()]}))
        (folder / "pods/namespaces.yaml").write_text(yaml.safe_dump_all(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in NAMESPACES.items()))
        pods = {}
        for case in cases:
            pods[case.name] = copy.deepcopy(case.pod)
            pods[case.name]["metadata"]["namespace"] = case.namespace
            (folder / f"pods/{case.name}.yaml").write_text(json.dumps(pods[case.name], ensure_ascii=False))
        told = subprocess.run([KYVERNO, "apply", str(folder / "policy.yaml"), "-r", str(folder / "pods"),
                               "-f", str(folder / "values.yaml"), "-o", str(folder / "made") + "/"],
                              capture_output=True, text=True, timeout=600)
        text = told.stdout + told.stderr
        if "Policies Skipped" in text or "pass: " not in text:
            raise SystemExit(f"{engine}: {text[:2000]}")
        said = re.findall(r"policy (\S+) -> resource \S+/Pod/(\S+) failed:\s*\n?\s*1 - (.*)", text)
        refused = {name: what for policy, name, what in said if not policy.endswith("-notice")}
        warned = {name: what for policy, name, what in said if policy.endswith("-notice")}
        broken = dict(re.findall(r"error while applying mutate policy \S+ -> resource \S+/Pod/(\S+)\s*\n(.*)", text))
        for case in cases:
            made = folder / f"made/{case.name}-mutated.yaml"
            case.warned = warned.get(case.name, "")
            if case.name in refused:
                outcome = refused[case.name]
            elif case.name in broken:
                outcome = f"an error of the policy: {broken[case.name]}"
            else:
                documents = yaml.safe_load_all(made.read_text()) if made.exists() else []
                outcome = ([d for d in documents if d and d["kind"] == "Pod"] or [pods[case.name]])[-1]
            yield case, outcome, pods[case.name], golden(case)


def old_cluster_by_kyverno(pods):
    """Before native sidecars auto is host, but where that would be refused; and hostPID is nobody's."""
    wanted = {"one-container": "host", "baseline": "pod", "restricted": "pod", "user-namespace": "pod", "own-sysctls": "pod",
              "own-host-ipc": "pod", "host-ipc": "host"}
    cases = [case for case in pods if case.name in wanted]
    for case, outcome, _, _ in by_kyverno("clusterpolicy", cases, "--kube-version", "1.28.0"):
        if isinstance(outcome, str):
            raise AssertionError(f"{case.name}: {outcome}")
        own = case.pod["spec"].get("hostIPC", False)
        same(f"{case.name} in an old cluster", (annotations(outcome)[P + "ipc-mode"], outcome["spec"]["hostIPC"],
                                                outcome["spec"]["hostPID"]),
             (wanted[case.name], own or wanted[case.name] == "host", False))
        same(f"the sidecar of {case.name}", outcome["spec"]["containers"][-1]["name"], "vcuda-client")
    same("pods for an old cluster", len(cases), len(wanted))


def seed_by_kyverno():
    """The seed's own policy on the seed's own Deployment: what it adds must be there."""
    seed = HERE / "seed"
    template = yaml.safe_load((seed / "annotated.yaml").read_text())["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"].update(name="seed", namespace="tensor-fusion-test")
    with tempfile.TemporaryDirectory(prefix="vcuda-kyverno-") as folder:
        folder = pathlib.Path(folder)
        (folder / "pod.yaml").write_text(yaml.safe_dump(pod))
        told = subprocess.run([KYVERNO, "apply", str(seed / "policy.yaml"), "-r", str(folder / "pod.yaml"),
                               "-o", str(folder / "done.yaml")], capture_output=True, text=True, timeout=120)
        if not (folder / "done.yaml").exists():
            raise AssertionError(told.stdout + told.stderr)
        made = next(d for d in yaml.safe_load_all((folder / "done.yaml").read_text()) if d)["spec"]
    containers = {container["name"]: container for container in made["containers"]}
    env = {entry["name"]: entry["value"] for entry in containers["app"]["env"]}
    same("the seed's LD_PRELOAD", env["LD_PRELOAD"], "/lib/vcuda/libutilities.so:/lib/vcuda/libvcuda.so")
    same("the seed's containers", set(containers), {"app", "vcuda-client"})
    same("the seed's init containers", [c["name"] for c in made["initContainers"]], ["copy-runtime-libs"])
    same("the seed's IPC", (made["hostIPC"], made["hostPID"]), (True, True))


def main():
    engines = [arg for arg in sys.argv[1:] if arg in NEEDS]
    only = [arg for arg in sys.argv[1:] if arg not in NEEDS]
    pods = [read_case(path) for path in sorted((HERE / "pods").glob("*.yaml"))]
    passed = failed = 0
    for engine in engines:
        cases = [*pods, *value_cases(engine != "map"), *large_cases()]
        cases = [case for case in cases if not only or case.name in only or case.name == "one-container"]
        outcomes = by_apiserver(cases) if engine == "map" else by_kyverno(engine, cases)
        for case, outcome, raw, file in outcomes:
            try:
                judge(case, outcome, raw, engine == "map", file)
                passed += 1
            except (AssertionError, KeyError, IndexError, TypeError) as problem:
                failed += 1
                print(f"FAIL {engine} {case.name}: {type(problem).__name__} {problem}")
    if "clusterpolicy" in engines and not only:
        seed_by_kyverno()
        old_cluster_by_kyverno(pods)
        passed += 2
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or not passed)


if __name__ == "__main__":
    main()
