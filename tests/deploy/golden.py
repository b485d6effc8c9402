#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kyverno test` over deploy/kyverno/tests, where golden files show whole pods as injection makes them.

    golden.py            # runs it, and looks at what its exit status does not tell
    golden.py --write    # makes golden files and test files of the policies as they are now

The two engines share the golden files, since both must make the same pod.  Writing fails where they
do not, or where a pod is not what injected.py works out on its own.
"""
import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import injection
from injected import P, annotations

ROOT = pathlib.Path(__file__).parents[2]
PODS = ROOT / "tests/deploy/pods"
TESTS = ROOT / "deploy/kyverno/tests"
UP = "../" * 4  # from the folder of a test file to ROOT
TEMPLATE = "tensor-fusion-test/tensor-fusion-test-on-cpu-node-kyverno"
# What a reader wants to see: the shapes of pods/ that differ in what injection does.
SHAPES = ["one-container", "three-containers", "init-with-cuda", "own-preload", "own-preload-from",
          "restricted", "host-network-dns", "limits", "gpu-limits", "preload-file", "plain-sidecar",
          "exclude-container", "service-mesh", "by-label",
          "host-network", "bad-vram-limit", "unknown-container", "volume-name-taken",
          "guaranteed", "evictable", "namespace-wide", "host-ipc",
          "unknown-annotation", "limit-below-request", "mig-slice", "other-words",
          "not-annotated", "opted-out", "opted-out-namespace", "already-injected"]
ENGINES = {"mutatingpolicy": ["policy: vcuda-inject", "isMutatingPolicy: true"],
           "clusterpolicy": ["policy: vcuda-inject", "rule: pod-native"]}
REFUSES = {"mutatingpolicy": ["policy: vcuda-refuse", "isValidatingPolicy: true"],
           "clusterpolicy": ["policy: vcuda-inject", "rule: refuse"]}


def shapes():
    return [injection.read_case(PODS / f"{name}.yaml") for name in SHAPES]


def place(case):
    return f"{case.namespace}/{case.name}"


def namespaces():
    return [{"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}
            for name, labels in injection.NAMESPACES.items()]


def result(lines, resources, outcome, *more, kind="Pod"):
    lines = [*lines, f"kind: {kind}", *more, f"result: {outcome}", "resources:"]
    return ["  - " + lines[0], *("    " + line for line in lines[1:]), *(f"      - {r}" for r in resources)]


def test_file(engine):
    """The text of an engine's kyverno-test.yaml."""
    cases = shapes()
    injected = [case for case in cases if case.expect == "injected"]
    refused = [case for case in cases if case.expect.startswith("refused: ")]
    untouched = [case for case in cases if case.expect == "untouched"]
    lines = ["# SPDX-License-Identifier: Apache-2.0", "#",
             "# Made by `make golden` from the second lines of tests/deploy/pods.",
             "apiVersion: cli.kyverno.io/v1alpha1", "kind: Test", "metadata:", f"  name: {engine}",
             "policies:", f"  - ../../{engine}.yaml", "variables: ../namespaces.yaml", "resources:"]
    lines += [f"  - {UP}tests/deploy/pods/{case.name}.yaml" for case in cases]
    lines += [f"  - {UP}tests/deploy/seed/annotated.yaml", "results:"]
    for case in injected:
        who = ENGINES[engine]
        if annotations(case.pod).get(P + "native-sidecar") == "false":
            who = [line.replace("pod-native", "pod-plain") for line in who]
        if case.namespace == "wide":  # what that namespace wants is a policy of its own where CEL is
            who = [line.replace("vcuda-inject", "vcuda-inject-namespace") if "isMutatingPolicy: true" in who else line
                   for line in who]
        lines += [f"  # {title(case)}"]
        lines += result(who, [place(case)], "pass", f"patchedResources: ../patched/{case.name}.yaml",
                        "failOnMissingResources: true")
    lines += ["  # What is injected is not refused."]
    lines += result(REFUSES[engine], [place(case) for case in injected], "skip")
    lines += ["  # Refused with a sentence."]
    lines += result(REFUSES[engine], [place(case) for case in refused], "fail")
    lines += ["  # Not touched."]
    lines += result(ENGINES[engine], [place(case) for case in untouched], "skip")
    lines += ["  # A Deployment neither, but the pods that its template makes."]
    lines += result(ENGINES[engine], [TEMPLATE], "skip", kind="Deployment")
    return "\n".join(lines) + "\n"


def title(case):
    return (PODS / f"{case.name}.yaml").read_text().split("\n", 1)[0].removeprefix("# ")


def test_files():
    """path: text of what is made without Kyverno."""
    told = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "metadata": {"name": "namespaces"},
            "namespaceSelector": namespaces()}
    made = {TESTS / f"{engine}/kyverno-test.yaml": test_file(engine) for engine in ENGINES}
    made[TESTS / "namespaces.yaml"] = ("# SPDX-License-Identifier: Apache-2.0\n#\n"
                                       "# The namespaces of the pods, made by `make golden`.\n" + dump(told))
    return made


def named_first(thing):
    """For readers: name, key and kind in front, the rest by the alphabet."""
    if isinstance(thing, dict):
        order = ["apiVersion", "kind", "metadata", "name", "image", "op"]
        keys = sorted(thing, key=lambda key: (order.index(key) if key in order else len(order), key))
        return {key: named_first(thing[key]) for key in keys}
    return [named_first(item) for item in thing] if isinstance(thing, list) else thing


class Dumper(yaml.SafeDumper):
    """Short lists and maps in one line, lists indented: as the rest of the repository."""

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)

    def represent_sequence(self, tag, sequence, flow_style=None):
        return super().represent_sequence(tag, sequence, len(str(sequence)) < 80 and not deep(sequence))

    def represent_mapping(self, tag, mapping, flow_style=None):
        return super().represent_mapping(tag, mapping, len(str(mapping)) < 80 and not deep(mapping))


def deep(thing):
    """Whether it holds what is no word or number, and so needs lines of its own."""
    return any(isinstance(item, (dict, list)) for item in (thing.values() if isinstance(thing, dict) else thing))


def dump(thing):
    return yaml.dump(named_first(thing), Dumper=Dumper, sort_keys=False, width=94)


def problem_of(case, golden):
    """What injected.py says against a golden pod; None if nothing."""
    try:
        injection.judge(case, golden, case.pod, False)
    except (AssertionError, KeyError, IndexError, TypeError) as problem:
        return f"{type(problem).__name__} {problem}"
    return None


def check_files():
    """name, problem of every file that can be checked without Kyverno's CLI."""
    for path, text in test_files().items():
        same = path.exists() and path.read_text() == text
        yield path.relative_to(ROOT), not same and "is not what `make golden` writes"
    injected = [case for case in shapes() if case.expect == "injected"]
    there = {path.stem for path in (TESTS / "patched").glob("*.yaml")}
    yield "golden files", there != {case.name for case in injected} and f"there are {sorted(there)}"
    for case in injected:
        if case.name in there:
            golden = yaml.safe_load((TESTS / f"patched/{case.name}.yaml").read_text())
            yield f"golden {case.name}", problem_of(case, golden)


def mutated(engine, folder):
    """name: the pod that an engine makes of each shape."""
    made = folder / f"{engine}.yaml"
    args = [injection.KYVERNO, "apply", str(ROOT / f"deploy/kyverno/{engine}.yaml"),
            "-f", str(TESTS / "namespaces.yaml"), "-o", str(made)]
    for name in SHAPES:
        args += ["-r", str(PODS / f"{name}.yaml")]
    told = subprocess.run(args, capture_output=True, text=True, timeout=300)
    if not made.exists():
        sys.exit(f"{engine}: {told.stdout}{told.stderr}")
    return {pod["metadata"]["name"]: pod for pod in yaml.safe_load_all(made.read_text()) if pod}


def preload(old, new):
    """The list of libraries of all golden files, for `make policies`, which needs no Kyverno."""
    for path in (TESTS / "patched").glob("*.yaml"):
        path.write_text(path.read_text().replace(old, new))


def write():
    for path, text in test_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with tempfile.TemporaryDirectory(prefix="vcuda-golden-") as folder:
        made = {engine: mutated(engine, pathlib.Path(folder)) for engine in ENGINES}
    patched = {}
    for case in shapes():
        if case.expect != "injected":
            continue
        pods = [made[engine].get(case.name) for engine in ENGINES]
        if pods[0] != pods[1]:
            sys.exit(f"{case.name}: the engines do not agree:\n{dump(pods[0])}\n{dump(pods[1])}")
        problem = problem_of(case, copy.deepcopy(pods[0]))
        if problem:
            sys.exit(f"{case.name}: {problem}")
        patched[f"{case.name}.yaml"] = f"# {title(case)}\n" + dump(pods[0])
    shutil.rmtree(TESTS / "patched", ignore_errors=True)
    (TESTS / "patched").mkdir()
    for name, text in patched.items():
        (TESTS / "patched" / name).write_text(text)
    print(f"{len(patched)} golden files")


def kyverno_test(folder):
    """Exit status, and the rows of every test file by its name."""
    done = subprocess.run([injection.KYVERNO, "test", str(folder), "--require-tests", "--detailed-results",
                           "-o", "json"], capture_output=True, text=True, timeout=300)
    names = re.findall(r"^Loading test .*?([a-z]+)/kyverno-test.yaml", done.stdout, re.M)
    tables = [json.loads(text) for text in re.findall(r"^\[\n.*?^\]$", done.stdout, re.M | re.S)]
    if len(names) != len(ENGINES) or len(tables) != len(names):
        sys.exit(f"kyverno test: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode, dict(zip(names, tables))


def check_rows(rows):
    """What `kyverno test` lets pass: a policy that does not look at a pod at all."""
    failed = [f"{row['RESOURCE']}: {row['REASON']} {row['Message'][:2000]}" for row in rows if row["RESULT"] != "Pass"]
    patched, refused = set(), {}
    for row in rows:
        pod = row["RESOURCE"].split("Pod/")[-1]
        if row["REASON"] == "Ok" and "refuse" in row["POLICY"] + row["RULE"]:
            refused[pod] = row["Message"]
        elif row["REASON"] == "Ok":
            patched.add(pod)
    for case in shapes():
        told, wanted = refused.get(place(case), ""), case.expect.removeprefix("refused: ")
        if case.expect == "injected" and place(case) not in patched:
            failed.append(f"{case.name}: the policy did not look at it")
        if case.expect != wanted and wanted not in told:
            failed.append(f"{case.name}: not refused with '{wanted}' but '{told}'")
    return failed


def main():
    if sys.argv[1:] == ["--write"]:
        write()
        return
    failed = [f"{name}: {problem}" for name, problem in check_files() if problem]
    status, tables = kyverno_test(TESTS)
    for engine, rows in tables.items():
        failed += [f"{engine} {problem}" for problem in check_rows(rows)]
    if status and not failed:
        failed.append(f"kyverno test ended with {status}")
    # A golden file with one wrong word must fail in both.
    with tempfile.TemporaryDirectory(prefix="vcuda-golden-") as folder:
        folder = pathlib.Path(folder)
        for part in ("deploy/kyverno", "tests/deploy/pods", "tests/deploy/seed"):
            shutil.copytree(ROOT / part, folder / part)
        golden = folder / "deploy/kyverno/tests/patched/one-container.yaml"
        golden.write_text(golden.read_text().replace("cpu: 50m", "cpu: 51m"))
        status, tables = kyverno_test(golden.parents[1])
        for engine, rows in tables.items():
            wrong = [row["RESOURCE"] for row in rows if row["RESULT"] != "Pass"]
            if not status or wrong != ["v1/Pod/default/one-container"]:
                failed.append(f"{engine}: a wrong golden file gives status {status}, failures {wrong}")
    for problem in failed:
        print(f"FAIL {problem}")
    print(f"kyverno test: {len(SHAPES)} shapes in {len(tables)} engines, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
