#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart without a cluster: many combinations of values rendered and held against schemas, what
must be refused refused, the generated files up to date, and names that other parts of the project own.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

import apiserver
import golden

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/vcuda"
HELM = apiserver.find_binary("helm")
TOOLS = apiserver.CACHE / "go-bin"
MAP = "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"
KYVERNO = ["kyverno.io/v1/ClusterPolicy", "policies.kyverno.io/v1/MutatingPolicy"]
MONITORING = "monitoring.coreos.com/v1"

# name: (values, what the cluster has, kinds that must be there, kinds that must not)
MATRIX = {
    "plain": ([], [], ["DaemonSet", "Service", "NetworkPolicy", "Pod"],
              ["Deployment", "Secret", "MutatingAdmissionPolicy", "ClusterPolicy", "PodMonitor", "Role", "ClusterRole"]),
    "map": ([], [MAP], ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"], []),
    "old kyverno": ([], KYVERNO[:1], ["ClusterPolicy"], ["MutatingPolicy"]),
    "new kyverno": ([], KYVERNO, ["MutatingPolicy", "ValidatingPolicy"], ["ClusterPolicy"]),
    "kyverno and map": ([], [MAP, *KYVERNO], ["MutatingPolicy"], ["MutatingAdmissionPolicy", "ClusterPolicy"]),
    "engine by hand": (["injector.engine=clusterpolicy"], [MAP, *KYVERNO], ["ClusterPolicy"], ["MutatingPolicy"]),
    "software": (["agent.driver=software"], [], ["DaemonSet"], []),
    "deployment": (["agent.kind=Deployment", "agent.replicas=3"], [], ["Deployment", "PodDisruptionBudget"], ["DaemonSet"]),
    "one replica": (["agent.kind=Deployment"], [], ["Deployment"], ["PodDisruptionBudget"]),
    "seed": (["agent.kind=Deployment", "agent.hostNetwork=true", "agent.gpus.resource=nvidia.com/gpu",
              "agent.nodeSelector.kubernetes\\.io/hostname=gpu-1"], [], ["Deployment"], []),
    "monitoring": ([], [MONITORING], ["PodMonitor", "PrometheusRule"], []),
    "monitoring off": (["metrics.podMonitor.enabled=false", "metrics.prometheusRule.enabled=false"], [MONITORING],
                       [], ["PodMonitor", "PrometheusRule"]),
    "monitoring on": (["metrics.podMonitor.enabled=true", "metrics.prometheusRule.enabled=true",
                       "metrics.dashboard.enabled=true"], [], ["PodMonitor", "PrometheusRule"], []),
    "token": (["auth.enabled=true", "auth.token=abc", "auth.namespaces={a,b}"], [MAP], ["Secret"], []),
    "token of theirs": (["auth.enabled=true", "auth.existing=true"], [MAP], [], ["Secret"]),
    "injector only": (["agent.enabled=false", "injector.server=10.0.0.1:9998"], [MAP], ["MutatingAdmissionPolicy"],
                      ["DaemonSet", "Service", "ServiceAccount", "NetworkPolicy", "ConfigMap"]),
    "agent only": (["injector.enabled=false"], [MAP, *KYVERNO], ["DaemonSet"],
                   ["MutatingAdmissionPolicy", "ClusterPolicy", "MutatingPolicy"]),
    "network": (["networkPolicy.namespaces={a,b}", "networkPolicy.namespaceSelector.matchLabels.gpu=yes",
                 "networkPolicy.egress[0].to[0].namespaceSelector.matchLabels.a=b",
                 "networkPolicy.from[0].podSelector.matchLabels.a=b"], [], ["NetworkPolicy"], []),
    "network of nobody's": (["networkPolicy.enabled=false"], [], ["DaemonSet"], ["NetworkPolicy"]),
    "everything": (["fullnameOverride=gpus", "image.registry=registry.example/x/", "image.tag=v9", "image.pullSecrets={one,two}",
                    "agent.image.suffix=-cuda13", "agent.priorityClassName=system-node-critical", "agent.runtimeClassName=",
                    "agent.config.memory_reserve=1Gi", "agent.podLabels.team=ml", "agent.serviceAccount.create=false",
                    "injector.ipcMode=pod", "injector.preloadMode=both", "injector.nvidiaSmi=false", "injector.readinessProbe=false",
                    "injector.env.TRITON_LIBCUDA_PATH=null", "injector.resources.cpuLimit=2", "service.clusterDomain=cluster.local",
                    "networkPolicy.from[0].ipBlock.cidr=192.0.2.0/24", "injector.failurePolicy=Ignore",
                    "extraObjects[0].apiVersion=v1", "extraObjects[0].kind=ConfigMap",
                    "extraObjects[0].metadata.name=more"], [MAP, MONITORING], ["ConfigMap"], []),
}
# values, what the cluster has, what the refusal must say
REFUSED = [
    (["injector.engine=mutatingpolicy"], [], "needs Kyverno 1.17"),
    (["injector.engine=clusterpolicy"], [], "needs Kyverno"),
    (["injector.engine=map"], [], "needs MutatingAdmissionPolicy"),
    (["injector.engine=webhook"], [], "injector/engine"),
    (["agent.enabled=false"], [], "injector.server: name an agent"),
    (["agent.enabled=false", "injector.enabled=false"], [], "nothing to install"),
    (["agent.ports.send=9998"], [], "three different ports"),
    (["agent.replicas=2"], [], "set agent.kind to Deployment"),
    (["agent.config.driver=software"], [], "the chart sets this key itself"),
    (["auth.token=x"], [], "auth.enabled is false"),
    (["auth.enabled=true", "auth.existing=true", "auth.token=x"], [], "auth.token is of no use"),
    (["auth.enabled=true", "auth.existing=true", "auth.namespaces={a}"], [], "auth.namespaces is of no use"),
    (["agent.kinds=DaemonSet"], [], "additional properties 'kinds' not allowed"),
    (["injector.env.LD_LIBRARY_PATH=/x"], [], "LD_LIBRARY_PATH"),
    (["injector.shmSize=big"], [], "injector/shmSize"),
    (["agent.driver=amd"], [], "agent/driver"),
    (["injector.server=a b"], [], "injector/server"),
    (["networkPolicy.namespaces={a}", "agent.hostNetwork=true"], [], "cannot hold with agent.hostNetwork"),
    (["networkPolicy.namespaces={a}", "networkPolicy.enabled=false"], [], "every namespace would reach"),
    (["networkPolicy.from[0].namespaceselector.matchLabels.a=b"], [], "'namespaceselector' not allowed"),
    (["networkPolicy.from[0].ipBlock.cidr=192.0.2.1"], [], "ipBlock/cidr"),
]


def run(*args, **more):
    return subprocess.run([str(arg) for arg in args], capture_output=True, text=True, timeout=120, **more)


def template(values, has, *more):
    args = [HELM, "template", "vcuda", CHART, "-n", "vcuda", *more]
    for value in values:
        args += ["--set", value]
    for one in has:
        args += ["-a", one]
    return run(*args)


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, problem):
        if problem:
            self.failed += 1
            print(f"FAIL {name}: {problem}")
        else:
            self.passed += 1


def kubeconform(folder):
    done = run(TOOLS / "kubeconform", "-strict", "-output", "json", "-schema-location",
               str(TOOLS / "schemas") + "/{{.ResourceKind}}{{.KindSuffix}}.json", *folder.glob("*.yaml"))
    bad = [f"{pathlib.Path(r['filename']).name} {r['kind']}/{r['name']}: {r['msg']}"
           for r in json.loads(done.stdout)["resources"] if r["status"] != "statusValid"]
    return bad[:5] or (done.returncode and done.stderr)


def check_matrix(checks, folder):
    for name, (values, has, there, gone) in MATRIX.items():
        done = template(values, has)
        if done.returncode:
            checks.check(f"template {name}", done.stderr.strip()[-400:])
            continue
        objects = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
        kinds = {thing["kind"] for thing in objects}
        missing, surplus = set(there) - kinds, set(gone) & kinds
        names = [(thing["kind"], thing["metadata"]["name"], thing["metadata"].get("namespace")) for thing in objects]
        checks.check(f"template {name}", (missing and f"no {missing}") or (surplus and f"there is {surplus}")
                     or (len(set(names)) < len(names) and f"twice: {names}"))
        # kubeconform knows neither anchors nor the beta form of what is v1 elsewhere.
        (folder / f"{name.replace(' ', '-')}.yaml").write_text(yaml.safe_dump_all(objects, width=10000))
    checks.check("kubeconform", kubeconform(folder))


def check_refusals(checks):
    for values, has, text in REFUSED:
        done = template(values, has)
        checks.check(f"refusal {values}", not done.returncode and "it was let in"
                     or text not in done.stderr and done.stderr.strip()[-300:])
    done = template(["injector.nativeSidecar=true"], [MAP], "--kube-version", "1.28.0")
    checks.check("refusal native sidecar on 1.28", "1.29" not in done.stderr and done.stderr + "let in")
    done = template([], KYVERNO[:1], "--kube-version", "1.28.0", "-s", "templates/injector-clusterpolicy.yaml")
    checks.check("plain sidecar on 1.28", done.stderr or "restartPolicy: Always" in done.stdout and "it is native")


def check_restarts(checks):
    """Agents start anew when their configuration changes, and only then."""
    sums = []
    for values in ([], ["agent.config.max_sessions=5"], ["injector.shmSize=1Gi"]):
        done = template(values, [], "-s", "templates/agent.yaml")
        sums.append(yaml.safe_load(done.stdout)["spec"]["template"])
    checks.check("a change of configuration", sums[0] == sums[1] and "starts nothing anew")
    checks.check("a change of something else", sums[0] != sums[2] and "starts agents anew")


def check_names(checks):
    """Names that other parts of the project own."""
    source = (ROOT / "gpu-agent/metrics.c").read_text()
    metrics = set(re.findall(r'"(vcuda_agent_[a-z_]+)"', source))
    metrics |= set(re.findall(r'"(vcuda_agent_info)\{', source))
    metrics |= {f"vcuda_agent_device_memory_{kind}_bytes" for kind in re.findall(r'^\t\t\{"([a-z]+)", "', source, re.M)}
    for file in ("dashboard.json", "alerts.yaml"):
        used = set(re.findall(r"vcuda_agent_[a-z_]+", (CHART / "files" / file).read_text()))
        checks.check(f"metrics of {file}", not used and "none" or used - metrics)
    labels = {"gpu", "UUID", "modelName", "state", "reason", "direction", "version", "protocol", "driver"}
    given = set(re.findall(r'([A-Za-z]+)=\\"', source)) | set(re.findall(r'"(state|reason|direction)"', source))
    checks.check("labels of metrics.c", labels - given)
    used = set(re.findall(r"by \(([^)]*)\)", (CHART / "files/dashboard.json").read_text()))
    used = {word.strip() for group in used for word in group.split(",")} - {"pod", "node"}
    checks.check("labels of dashboard.json", used - given)

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'VCUDA_VERSION "(.*)"', (ROOT / "common/version.h").read_text())[1]
    checks.check("version", {chart["version"], chart["appVersion"]} != {version} and f"{chart} but version.h: {version}")
    images = set(re.findall(r"image: \S+:(\S+)", chart["annotations"]["artifacthub.io/images"]))
    checks.check("versions of artifacthub.io/images", images != {version} and images)

    built = pathlib.Path(os.environ.get("BUILD", "build")) / "lib/preload.list"
    same = built.exists() and built.read_text() == (CHART / "files/preload").read_text()
    checks.check("files/preload", not same and f"is not {built}: make policies")

    known = (ROOT / "docs/AGENT.md").read_text()
    for key in ("driver", "ports.send", "drain_seconds", "cache_dir", "log", "token_file"):
        checks.check(f"agent.yaml: {key}", f"`{key}`" not in known and "docs/AGENT.md does not know it")


def check_generated(checks):
    for path, text in generated().items():
        same = path.exists() and path.read_text() == text
        checks.check(path.relative_to(ROOT), not same and "is not what `make policies` writes")
    for name, problem in golden.check_files():
        checks.check(name, problem)


def generated():
    """path: text of every file that is made from the chart."""
    made = {CHART / "README.md": readme()}
    for engine, has in {"clusterpolicy": KYVERNO[0], "mutatingpolicy": KYVERNO[1],
                        "mutatingadmissionpolicy": MAP.replace("v1beta1", "v1")}.items():
        short = "map" if engine.startswith("mutatinga") else engine
        done = template([], [has], "-s", f"templates/injector-{short}.yaml")
        if done.returncode:
            sys.exit(done.stderr)
        lines = [line for line in done.stdout.splitlines()
                 if not re.match(r"\s+(helm.sh/chart|app.kubernetes.io/(managed-by|instance)): ", line)]
        lines = [line for line in lines if not line.startswith("# Source: ")]
        made[ROOT / f"deploy/kyverno/{engine}.yaml"] = (
            "# SPDX-License-Identifier: Apache-2.0\n#\n# Made from deploy/helm/vcuda by `make policies`, for agents that were"
            " installed as `helm -n vcuda\n# install vcuda`: other places are in VCUDA_AGENT and `server`.\n"
            + "\n".join(lines) + "\n")
    return made


def readme():
    """The chart's README: README.md.in with a table of all values."""
    rows, path, comment = [], [], None
    lines = (CHART / "values.yaml").read_text().splitlines()
    values = yaml.safe_load("\n".join(lines))
    covered = None  # a map whose comment speaks for what is in it
    for line in lines:
        told = re.match(r"\s*# -- (.*)", line)
        key = re.match(r"(\s*)([A-Za-z]+):", line)
        if told:
            comment = told[1]
        elif key:
            path = [*path[:len(key[1]) // 2], key[2]]
            value = values
            for part in path:
                value = value[part] if isinstance(value, dict) else None
            inside = covered and path[:len(covered)] == covered and path != covered
            if comment:
                covered = path if isinstance(value, (dict, list)) and value else covered
                shown = json.dumps(value)
                if isinstance(value, (dict, list)) and len(shown) > 40:
                    shown = "see values.yaml"
                rows.append(f"| `{'.'.join(path)}` | `{shown}` | {comment} |")
            elif not isinstance(value, dict) and not inside:
                sys.exit(f"values.yaml: {'.'.join(path)} has no comment")
            comment = None
    text = (CHART / "README.md.in").read_text()
    return text.replace("@VALUES@", "\n".join(["| value | default | |", "|---|---|---|", *rows]))


def main():
    if sys.argv[1:] == ["--write"]:
        built = pathlib.Path(os.environ.get("BUILD", "build")) / "lib/preload.list"
        (CHART / "files/preload").write_text(built.read_text())
        golden.preload(golden.injection.LIST, golden.injection.preload_list())
        for path, text in generated().items():
            path.write_text(text)
        return
    checks = Checks()
    done = run(HELM, "lint", "--strict", CHART)
    checks.check("helm lint", done.returncode and done.stdout)
    done = run(TOOLS / "helm-unittest", "--strict", CHART)
    checks.check("helm unittest", done.returncode and done.stdout + done.stderr)
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        check_matrix(checks, pathlib.Path(folder))
    check_refusals(checks)
    check_restarts(checks)
    check_names(checks)
    check_generated(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
