#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart without a cluster: many combinations of values rendered and held against schemas, what
must be refused refused, the generated files up to date, and names that other parts of the project own.
"""
import base64
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
import injected
from chart_readme import readme
from chart_values import KYVERNO, MAP, MATRIX, MONITORING, REFUSED

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/vcuda"
HELM = apiserver.find_binary("helm")
TOOLS = apiserver.CACHE / "go-bin"


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


def values_in(values, path=()):
    for key, value in values.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from values_in(value, (*path, key))


def nested(paths, value):
    """Values of which those at the paths are the value."""
    made = {}
    for path in paths:
        where = made
        for part in path[:-1]:
            where = where.setdefault(part, {})
        where[path[-1]] = value
    return made


def told_of(values):
    """The paths that helm complains of when it gets these values."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        done = template([], [MAP], "-f", file.name)
    told = set()
    for where, what in re.findall(r"at '([^']*)': (.*)", done.stderr):
        missing = re.findall(r"'([^']+)'", what) if what.startswith("missing propert") else []
        told |= {f"{where}/{name}".strip("/") for name in missing} or {where.strip("/")}
    return told, done.stderr


def check_schema(checks):
    """Whatever stands in the place of a value: the complaint names that value and no other.  (helm tells of all
    at once.)  A section that is null is one that somebody meant to switch off."""
    every = dict(values_in(yaml.safe_load((CHART / "values.yaml").read_text())))
    ends = [path for path, value in every.items() if not isinstance(value, dict) or not value]
    for bad in ("!! Bad", {"x!": 1}, -3):
        told, text = told_of(nested(ends, bad))
        for path in ends:
            if path[:2] != ("injector", "env") or not isinstance(bad, str):
                named = any(one == "/".join(path) or one.startswith("/".join(path) + "/") for one in told)
                checks.check(f"{'.'.join(path)}={bad}", not named and f"is not named: {text[-200:]}")
        checks.check(f"all={bad}", {one for one in told if tuple(one.split("/"))[:1] not in {p[:1] for p in ends}})
    for depth in (1, 2, 3):
        sections = [path for path, value in every.items() if isinstance(value, dict) and value and len(path) == depth
                    and path not in (("agent", "resources"), ("agent", "resources", "requests"), ("agent", "resources", "limits"))
                    and "labels" not in path and path[:2] not in (("agent", "cache"), ("injector", "env"))]
        told, text = told_of(nested(sections, None))
        for path in sections:
            checks.check(f"{'.'.join(path)}=null", "/".join(path) not in told and f"is not named: {text[-200:]}")
    for path in (("agent", "resources"), ("injector", "env"), ("injector", "skipNamespaces"), ("networkPolicy", "metricsFrom")):
        told, text = told_of(nested([path], None))
        checks.check(f"{'.'.join(path)}=null", text)


def check_config_keys(checks):
    """agent.config takes what the agent's configuration has."""
    source = (ROOT / "gpu-agent/supervisor/settings/settings.c").read_text()
    known = set(re.findall(r'^\t\{"([a-zA-Z_.]+)",', source, re.M)) | {"library_path", "tenants"}
    libraries = (ROOT / "gpu-agent/generated/libraries.inc").read_text()
    known |= {f"libraries.{key}" for key in re.findall(r'^LIBRARY_ROW\([^"]*"([a-zA-Z_]+)"', libraries, re.M)}
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["agent"]["properties"]["config"]
    taken = set()
    for key, inner in schema["properties"].items():
        taken |= {f"{key}.{name}" for name in inner["properties"]} if "properties" in inner else {key}
    checks.check("keys of agent.config", (known - {"ports"}) ^ taken)


def check_agent(checks):
    """What values make of the agent's pod."""
    def pod(values):
        done = template(values, [MAP], "-s", "templates/agent.yaml")
        return yaml.safe_load(done.stdout)["spec"]

    def cache(values):
        volumes = pod(values)["template"]["spec"]["volumes"]
        return next(volume for volume in volumes if volume["name"] == "cache")

    for values, wanted in (([], {"name": "cache", "emptyDir": {"sizeLimit": "10Gi"}}),
                           (["agent.cache.hostPath.path=/x"], {"name": "cache", "hostPath": {"path": "/x"}}),
                           (["agent.cache.persistentVolumeClaim.claimName=c"],
                            {"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}),
                           (["agent.cache.emptyDir.sizeLimit=1Gi"], {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}})):
        made = cache(values)
        checks.check(f"the cache with {values}", made != wanted and made)
    limits = pod([])["template"]["spec"]["containers"][0]["resources"]["limits"]
    checks.check("a memory limit", "memory" not in limits and limits)
    spread = pod(MATRIX["fields"][0])["template"]["spec"]["topologySpreadConstraints"][0]
    checks.check("topology spread", spread["labelSelector"]["matchLabels"].get("tensor-fusion.ai/component") != "agent" and spread)
    done = template(["commonLabels.team=ml"], [MAP])
    bare = [thing["kind"] for thing in yaml.safe_load_all(done.stdout)
            if thing and thing["metadata"].get("labels", {}).get("team") != "ml"]
    checks.check("commonLabels", bare)
    # The hook gets the very configuration, less the token that is not there yet.
    done = template(["auth.enabled=true", "agent.config.memory_reserve=1Gi"], [MAP])
    configs = [thing["data"]["agent.yaml"] for thing in yaml.safe_load_all(done.stdout)
               if thing and thing["kind"] == "ConfigMap" and "agent.yaml" in thing["data"]]
    texts = [yaml.safe_load(text) for text in configs]
    checks.check("the configuration that is tried", len(texts) != 2 or "token_file" not in texts[0]
                 or {**texts[1], **{key: texts[0][key] for key in ("token_file", "http.token_file")}} != texts[0] and texts)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(configs[-1])
        file.flush()
        agent = f"{os.environ.get('BUILD', 'build')}/bin/gpu-agent"
        tried = run(agent, "--check-config", "--config", file.name)
        checks.check("the agent takes it", tried.returncode and tried.stderr)
        wrong = run(agent, "--check-config", "--config", file.name, "--set", "memory_reserve=lots")
        checks.check("and not a wrong one", (not wrong.returncode or "memory_reserve" not in wrong.stderr) and wrong.stderr)


def check_local(checks):
    """With agent.localSocket the agent listens in that folder too, and each policy gives the sidecar it."""
    values = ["agent.localSocket=/run/vcuda"]
    done = template(values, [MAP])
    checks.check("agent.localSocket", done.returncode and done.stderr)
    things = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    config = next(thing["data"]["agent.yaml"] for thing in things
                  if thing["kind"] == "ConfigMap" and "agent.yaml" in thing["data"])
    listen = yaml.safe_load(config)["listen"]
    spec = next(thing for thing in things if thing["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    volume = next((one for one in spec["volumes"] if one["name"] == "local"), None)
    mount = next((one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "local"), {})
    checks.check("the agent's folder", volume != {"name": "local", "hostPath": {"path": "/run/vcuda", "type": "Directory"}} and volume)
    checks.check("the agent listens in it", not listen.startswith(f",local://{mount.get('mountPath')}/") and listen)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        tried = run(f"{os.environ.get('BUILD', 'build')}/bin/gpu-agent", "--check-config", "--config", file.name)
        checks.check("the agent takes the socket", tried.returncode and tried.stderr)
    done = template(["agent.hostIPC=true"], [MAP])
    things = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    config = next((thing["data"]["agent.yaml"] for thing in things
                   if thing["kind"] == "ConfigMap" and "agent.yaml" in thing["data"]), "{}")
    shared = next(thing for thing in things if thing["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    checks.check("agent.hostIPC", yaml.safe_load(config).get("listen") != ",local://" and config)
    checks.check("the agent's hostIPC", shared.get("hostIPC") is not True or "hostIPC" in spec)
    socket = listen.partition("local://")[2]
    for api in (MAP, KYVERNO[0], KYVERNO[1]):
        text = template(values, [api]).stdout
        checks.check(f"the sidecar's socket by {api}", "VCUDA_LOCAL_SOCKET" not in text or socket not in text)
        checks.check(f"the sidecar's folder by {api}", "tensor-fusion-local" not in text or "/run/vcuda" not in text)
        text = template([], [api]).stdout
        checks.check(f"no folder by {api}", "VCUDA_LOCAL_SOCKET" in text or "DirectoryOrCreate" in text)


def check_tls(checks):
    """The certificate is the agent's, by the CA that pods are told; who asks for one by cert-manager gets that; and
    the sidecar alone has a token of its ServiceAccount."""
    values = ["tls.enabled=true", "tls.issuer=helm", "tls.namespaces={a,b}", "auth.serviceAccount.enabled=true", "auth.serviceAccount.configMap=keys"]
    things = [thing for thing in yaml.safe_load_all(template(values, KYVERNO[:1]).stdout) if thing]
    by_name = {(thing["kind"], thing["metadata"]["name"], thing["metadata"].get("namespace")): thing for thing in things}
    pair = by_name["Secret", "vcuda-tls", "vcuda"]["data"]
    authorities = {by_name["ConfigMap", "vcuda-ca", space]["data"]["ca.crt"] for space in ("a", "b", "vcuda")}
    checks.check("one CA everywhere", len(authorities) != 1 and authorities)
    config = by_name["ConfigMap", "vcuda-agent", "vcuda"]["data"]["agent.yaml"]
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        ca, cert, key, keys, token, tried = (pathlib.Path(folder) / name for name in ("ca", "cert", "key", "keys", "token", "agent.yaml"))
        token.write_text("a-token\n")
        ca.write_text(authorities.pop())
        cert.write_bytes(base64.b64decode(pair["tls.crt"]))
        key.write_bytes(base64.b64decode(pair["tls.key"]))
        keys.write_bytes((ROOT / "tests/fuzz/corpus/jwt/jwks").read_bytes())
        done = run("openssl", "verify", "-CAfile", ca, "-purpose", "sslserver", "-verify_hostname", "vcuda-agent.vcuda.svc", cert)
        checks.check("the certificate", done.returncode and done.stderr)
        for there, here in (("/etc/vcuda/tls/tls.crt", cert), ("/etc/vcuda/tls/tls.key", key), ("/etc/vcuda/keys/jwks", keys),
                            ("/etc/vcuda/tls-ca/ca.crt", ca), ("/etc/vcuda/http/token", token)):
            checks.check(f"{there} is configured", there not in config)
            config = config.replace(there, str(here))
        tried.write_text(config)
        done = run(f"{os.environ.get('BUILD', 'build')}/bin/gpu-agent", "--check-config", "--config", tried)
        checks.check("the agent takes its certificate and keys", done.returncode and done.stderr)
        checks.check("and is not insecure", "insecure" in config)
        before = next(thing["data"]["agent.yaml"] for key, thing in by_name.items() if key[1] == "vcuda-agent-check"
                      and key[0] == "ConfigMap")
        tried.write_text(before)
        done = run(f"{os.environ.get('BUILD', 'build')}/bin/gpu-agent", "--check-config", "--config", tried)
        checks.check("nor does it need them to be tried", done.returncode and done.stderr)
    text = json.dumps(by_name["ClusterPolicy", "vcuda", None] if ("ClusterPolicy", "vcuda", None) in by_name else things)
    checks.check("the sidecar's token", not re.search(r"serviceAccountToken:\\n\s+audience: vcuda-agent", text) and "is not projected")
    checks.check("what the sidecar believes", "/etc/vcuda/token/ca.crt" not in text)
    asked = template(["tls.enabled=true"], [MAP, "cert-manager.io/v1/Certificate"])
    made = {thing["kind"]: thing for thing in yaml.safe_load_all(asked.stdout) if thing}
    checks.check("by cert-manager", made["Certificate"]["spec"]["dnsNames"] != ["vcuda-agent.vcuda.svc"]
                 or made["Issuer"]["spec"]["ca"]["secretName"] != "vcuda-tls-ca")


def check_package(checks):
    """The archive that `make chart` makes is the chart, and only that."""
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        done = run(HELM, "package", CHART, "--destination", folder)
        archive = next(pathlib.Path(folder).glob("*.tgz"), None)
        checks.check("helm package", not archive and done.stderr)
        names = run("tar", "-tzf", archive).stdout.split()
        checks.check("files of the archive", [name for name in names if "/tests/" in name and "/templates/tests/" not in name
                                              or name.endswith(".in")] or "vcuda/files/preload" not in names and names)
        made = run(HELM, "template", "vcuda", archive, "-n", "vcuda", "-a", MAP, "-a", MONITORING)
        checks.check("what the archive makes", made.stdout != template([], [MAP, MONITORING]).stdout and (made.stderr or "differs"))


def check_ipc(checks):
    """hostIPC only where it is asked for, and before native sidecars; hostPID only where the chart says so."""
    for values, version, wanted in (([], "1.34.0", ("'pod'", False)), ([], "1.29.0", ("'pod'", False)),
                                    (["injector.ipcMode=host"], "1.34.0", ("'host'", False)),
                                    (["injector.ipcMode=host", "injector.hostPID=true"], "1.34.0", ("'host'", True)),
                                    (["injector.nativeSidecar=false"], "1.34.0", ("'pod'", False)),
                                    ([], "1.28.0", ("'host'", False))):
        done = template(values, KYVERNO[:1], "--kube-version", version, "-s", "templates/injector-clusterpolicy.yaml")
        rules = next(yaml.safe_load_all(done.stdout))["spec"]["rules"]
        says = {row["name"]: row["variable"]["jmesPath"] for rule in rules for row in rule.get("context", [])}
        made = (says["ipc"].rsplit("||", 1)[-1].strip(), "host &&" in says["hostPID"])
        checks.check(f"IPC with {values} on {version}", made != wanted and made)


def check_domain(checks):
    """The whole name of the agents, so that a pod's ndots and search list do not matter."""
    for values, wanted in (([], "vcuda-agent.vcuda.svc.cluster.local.:9998"),
                           (["service.clusterDomain=k8s.example"], "vcuda-agent.vcuda.svc.k8s.example.:9998"),
                           (["service.clusterDomain="], "vcuda-agent.vcuda.svc:9998")):
        done = template(values, [MAP], "-s", "templates/tests/test-agent.yaml")
        args = yaml.safe_load(done.stdout)["spec"]["containers"][0]["args"]
        checks.check(f"the name with {values}", args[2] != wanted and args)


def check_restarts(checks):
    """Agents start anew when their configuration changes, and only then."""
    sums = []
    for values in ([], ["agent.config.max_sessions=5"], ["injector.shmSize=1Gi"]):
        done = template(values, [MAP], "-s", "templates/agent.yaml")
        sums.append(yaml.safe_load(done.stdout)["spec"]["template"])
    checks.check("a change of configuration", sums[0] == sums[1] and "starts nothing anew")
    checks.check("a change of something else", sums[0] != sums[2] and "starts agents anew")


def check_alerts(checks):
    """Each alert says where to read on, and no single refusal fires one."""
    done = template(["metrics.prometheusRule.runbooks=https://wiki.example/vcuda"], [MAP, MONITORING],
                    "-s", "templates/prometheusrule.yaml")
    pages = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/ALERTS.md").read_text(), re.M | re.S))
    runbooks = set(pages)
    for name, page in pages.items():
        parts = re.findall(r"^\*\*(\w+)\.\*\* \S", page, re.M)
        checks.check(f"the page of {name} has each part", parts != ["Means", "Look", "Do"] and parts)
    rules = yaml.safe_load(done.stdout)["spec"]["groups"][0]["rules"]
    for rule in rules:
        link = f"https://wiki.example/vcuda#{rule['alert'].lower()}"
        checks.check(f"the runbook of {rule['alert']}", rule["annotations"].get("runbook_url") != link and rule["annotations"])
        counted = re.search(r"increase\(vcuda_agent_(handshakes_refused|leases_refused)_total.*> (\d+)", rule["expr"])
        checks.check(f"the threshold of {rule['alert']}", counted and int(counted[2]) < 5 and rule["expr"])
    checks.check("runbooks", runbooks ^ {rule["alert"] for rule in rules})


def check_tokens(checks, folder):
    """The agent takes the token file, and no two namespaces have the same token."""
    agent = pathlib.Path(os.environ.get("BUILD", "build")) / "bin/gpu-agent"
    done = template(["auth.enabled=true", "auth.namespaces={a,b,default}", "auth.limits.a.memory=40Gi",
                     "auth.limits.b.sessions=16", "injector.enabled=false"], [], "-s", "templates/auth-secret.yaml")
    secrets = [thing for thing in yaml.safe_load_all(done.stdout) if thing]
    tokens = [base64.b64decode(s["data"]["token"]).decode() for s in secrets if "token" in s["data"]]
    checks.check("a token for each namespace", len(set(tokens)) != 4 and tokens)
    file = folder / "tokens"
    file.write_bytes(b"".join(base64.b64decode(s["data"]["tokens"]) for s in secrets if "tokens" in s["data"]))
    lines = [line.split() for line in file.read_text().splitlines()]
    checks.check("lines of the tenants", [line[0] for line in lines] != tokens and lines
                 or [line[1:] for line in lines] != [["vcuda/vcuda"], ["a", "40Gi", "0"], ["b", "0", "16"],
                                                     ["default", "0", "0"]] and lines)
    done = run(agent, "--check-config", "--token-file", file)
    checks.check("the agent takes them", done.returncode and done.stderr)


def check_http(checks):
    """With several tenants Prometheus brings the token that the agents ask for; with one nobody does."""
    api = ["--api-versions", "monitoring.coreos.com/v1/PodMonitor"]
    for values, wanted in ((["auth.enabled=true"], True), (["auth.enabled=true", "auth.existing=true"], False), ([], False),
                           (["tls.enabled=true", "auth.serviceAccount.enabled=true", "auth.serviceAccount.configMap=k"], True)):
        done = template([*values, "injector.enabled=false", "metrics.podMonitor.enabled=true"], [], *api)
        by_kind = {}
        for thing in yaml.safe_load_all(done.stdout):
            if thing:
                by_kind.setdefault(thing["kind"], []).append(thing)
        monitor = by_kind["PodMonitor"][0]["spec"]["podMetricsEndpoints"][0].get("authorization")
        secrets = [s for s in by_kind.get("Secret", []) if s["metadata"]["name"].endswith("-http")]
        config = yaml.safe_load(next(c["data"]["agent.yaml"] for c in by_kind["ConfigMap"]
                                     if c["metadata"]["name"] == "vcuda-agent"))
        pod = by_kind["DaemonSet"][0]["spec"]["template"]["spec"]
        mounted = [v["secret"]["secretName"] for v in pod["volumes"] if v["name"] == "http"]
        names = [s["metadata"]["name"] for s in secrets]
        checks.check(f"HTTP's token with {values}", (
            bool(secrets), config.get("http.token_file"), mounted, monitor and monitor["credentials"]["name"]) != (
            wanted, "/etc/vcuda/http/token" if wanted else None, names, names[0] if wanted else None) and [config, monitor, mounted])


def check_names(checks):
    """Names that other parts of the project own."""
    source = "".join(file.read_text() for file in [*sorted((ROOT / "gpu-agent/front").glob("**/*.c")),
                                                       ROOT / "common/latency.c"])
    metrics = set(re.findall(r"\b(vcuda_agent_[a-z_]+)", source))
    metrics |= {f"vcuda_agent_device_memory_{kind}_bytes" for kind in re.findall(r'^\t\t\{"([a-z]+)", "', source, re.M)}
    for file in ("dashboard.json", "alerts.yaml"):
        used = set(re.findall(r"vcuda_agent_[a-z_]+", (CHART / "files" / file).read_text()))
        used = {re.sub("_(bucket|sum|count)$", "", name) for name in used}  # of a histogram
        checks.check(f"metrics of {file}", not used and "none" or used - metrics)
    check_alerts(checks)
    labels = {"gpu", "UUID", "modelName", "state", "reason", "direction", "version", "protocol", "driver"}
    given = set(re.findall(r'([A-Za-z]+)=\\"', source)) | set(re.findall(r'"(state|reason|direction|result)"', source))
    checks.check("labels of metrics.c", labels - given)
    used = set(re.findall(r"by \(([^)]*)\)", (CHART / "files/dashboard.json").read_text()))
    used = {word.strip() for group in used for word in group.split(",")} - {"pod", "node"}
    # What an exporter calls pod is exported_pod where Prometheus has put its own pod beside it.
    used = {word.removeprefix("exported_") for word in used} - {"pod", "namespace"}
    checks.check("labels of dashboard.json", used - given)

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.search(r'VCUDA_VERSION "(.*)"', (ROOT / "common/version.h").read_text())[1]
    checks.check("version", {chart["version"], chart["appVersion"]} != {version} and f"{chart} but version.h: {version}")
    images = set(re.findall(r"image: \S+:(\S+)", chart["annotations"]["artifacthub.io/images"]))
    checks.check("versions of artifacthub.io/images", images != {version} and images)

    known = (ROOT / "docs/AGENT.md").read_text()
    for key in ("driver", "ports.send", "drain_seconds", "cache_dir", "log", "token_file", "insecure"):
        checks.check(f"agent.yaml: {key}", f"`{key}`" not in known and "docs/AGENT.md does not know it")


def check_generated(checks):
    for path, text in generated().items():
        same = path.exists() and path.read_text() == text
        checks.check(path.relative_to(ROOT), not same and "is not what `make policies` writes")
    for name, problem in golden.check_files():
        checks.check(name, problem)


def generated():
    """path: text of every file that is made from the chart."""
    made = {CHART / "README.md": readme(CHART)}
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


def main():
    if sys.argv[1:] == ["--write"]:
        built = pathlib.Path(os.environ.get("BUILD", "build")) / "lib/preload.list"
        (CHART / "files/preload").write_text(built.read_text())
        golden.preload(injected.LIST, injected.preload_list())
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
    with tempfile.TemporaryDirectory(prefix="vcuda-chart-") as folder:
        check_tokens(checks, pathlib.Path(folder))
    check_http(checks)
    check_refusals(checks)
    check_schema(checks)
    check_config_keys(checks)
    check_agent(checks)
    check_local(checks)
    check_tls(checks)
    check_package(checks)
    check_ipc(checks)
    check_domain(checks)
    check_restarts(checks)
    check_names(checks)
    check_generated(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    sys.exit(checks.failed != 0)


if __name__ == "__main__":
    main()
