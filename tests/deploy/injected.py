# SPDX-License-Identifier: Apache-2.0
"""What an injected pod must be, worked out from the pod alone (expected()), and the comparison of a pod with that."""
import copy
import pathlib
import re

import yaml

CHART = pathlib.Path(__file__).parents[2] / "deploy/helm/vcuda"
P = "tensor-fusion.ai/"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
# The sidecar's memory by shm-size: 128Mi more.
LIMITS = {"256Mi": "384Mi", "1Gi": "1152Mi", "40000000": "174217728", "99999999999999": "100000134217727",
          "40Mi": "168Mi", "51200Ki": "178Mi", "2G": "2134217728", "99Ti": "103809152Mi", "99999Gi": "102399104Mi"}
SERVER = "vcuda-agent.vcuda.svc.cluster.local.:9998"
EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
         **{unit + "i": 1024.0 ** power for power, unit in enumerate("KMGT", 1)}}
OURS = {"tensor-fusion-libs", "tensor-fusion-shm", "tensor-fusion-token"}


def preload_list():
    """What LD_PRELOAD says, of the chart as it is now."""
    return ":".join("/lib/vcuda/" + name for name in (CHART / "files/preload").read_text().split())


LIST = preload_list()


def annotations(pod):
    return pod["metadata"].get("annotations") or {}


def tidy(thing):
    """Without what says nothing: empty lists and maps, and what a server adds to metadata."""
    if isinstance(thing, dict):
        kept = {key: tidy(value) for key, value in thing.items()}
        return {key: value for key, value in kept.items() if value not in ({}, [], None, "")}
    if isinstance(thing, list):
        return [tidy(item) for item in thing]
    return thing


def bare(pod):
    """Of a pod that a server gave back, what its author can say."""
    pod = copy.deepcopy(pod)
    pod.pop("status", None)
    for key in ("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "namespace"):
        pod["metadata"].pop(key, None)
    for key in ("hostIPC", "hostPID"):
        if pod["spec"].get(key) is False:
            del pod["spec"][key]
    return tidy(pod)


def expected_container(raw, chosen, init, mode):
    """The container as it must be; raw is left alone."""
    raw = copy.deepcopy(raw)
    if not chosen:
        return raw
    env = raw.setdefault("env", [])
    if not init and mode in ("env", "both"):
        own = [entry for entry in env if entry["name"] == "LD_PRELOAD"]
        if not own:
            env.append({"name": "LD_PRELOAD", "value": LIST})
        elif "/libvcuda.so" in own[-1].get("value", ""):
            pass
        elif "valueFrom" in own[-1]:
            own[-1]["name"] = "VCUDA_OWN_PRELOAD"
            env.append({"name": "LD_PRELOAD", "value": LIST + ":$(VCUDA_OWN_PRELOAD)"})
        else:
            own[-1]["value"] = LIST + (":" + own[-1]["value"] if own[-1].get("value") else "")
    for name, value in sorted(VALUES["injector"]["env"].items()):
        if not any(entry["name"] == name for entry in env):
            env.append({"name": name, "value": value})
    for kind in ("limits", "requests"):
        for name in VALUES["injector"]["dropResources"]:
            raw.get("resources", {}).get(kind, {}).pop(name, None)
    mounts = raw.setdefault("volumeMounts", [])
    before = [mount["mountPath"].rstrip("/") for mount in mounts]
    mounts.append({"name": "tensor-fusion-libs", "mountPath": "/lib/vcuda", "readOnly": True})
    mounts.append({"name": "tensor-fusion-shm", "mountPath": "/run/tensor-fusion"})
    if not any("/usr/local/bin/nvidia-smi/".startswith(path + "/") for path in before):
        mounts.append({"name": "tensor-fusion-libs", "mountPath": "/usr/local/bin/nvidia-smi",
                       "subPath": "nvidia-smi", "readOnly": True})
    if mode in ("file", "both") or init and mode == "env":
        mounts.append({"name": "tensor-fusion-libs", "mountPath": "/etc/ld.so.preload",
                       "subPath": "ld.so.preload", "readOnly": True})
    return raw


def expected(raw):
    """The pod as it must be, but for the containers and volumes that injection adds."""
    pod = copy.deepcopy(raw)
    spec, says = pod["spec"], lambda key, default: annotations(raw).get(P + key, default)
    wanted = [name.strip() for name in says("inject-container", "").split(",") if name.strip()]
    unwanted = [name.strip() for name in says("exclude-container", "").split(",")]
    native = says("native-sidecar", "true") == "true"
    mode = says("preload-mode", "env")
    ipc = says("ipc-mode", "pod")

    def chosen(container):
        name = container["name"]
        return name not in unwanted and (
            name in wanted or not wanted and name not in VALUES["injector"]["skipContainers"])

    spec["containers"] = [expected_container(c, chosen(c), False, mode) for c in spec["containers"]]
    spec["initContainers"] = [expected_container(c, native and chosen(c), True, mode)
                              for c in spec.get("initContainers", [])]
    if ipc == "host":
        spec["hostIPC"] = True
    marks = pod["metadata"].setdefault("annotations", {})
    if not any(P + "enabled" in (raw["metadata"].get(kind) or {}) for kind in ("annotations", "labels")):
        marks[P + "enabled"] = "true"  # its namespace says so
    marks.update({P + "status": "injected", P + "injected-version": VERSION, P + "ipc-mode": ipc})
    theirs = marks.get(EVICT, "").replace(" ", "")
    marks[EVICT] = ",".join([name for name in theirs.split(",") if name] + ["tensor-fusion-libs", "tensor-fusion-shm"])
    marks.setdefault("kubectl.kubernetes.io/default-container", raw["spec"]["containers"][0]["name"])
    pod["metadata"].setdefault("labels", {})[P + "component"] = "client"
    return pod, ipc, native


def same(what, got, want):
    if got != want:
        raise AssertionError(f"{what}:\n    got  {got}\n    want {want}")


def in_millicores(resources):
    """A server writes 1.5 as 1500m."""
    cpu = resources.get("cpu")
    if cpu is None or cpu.endswith("m"):
        return resources
    return {**resources, "cpu": f"{float(cpu) * 1000:.0f}m"}


def amount(text):
    """What a quantity says, as a number."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()
    return float(number) * UNITS.get(unit, 1)


def expected_resources(raw):
    """Limits and requests, of both injected containers."""
    says = lambda key, default: annotations(raw).get(P + "sidecar-" + key, default)
    usual = LIMITS[annotations(raw).get(P + "shm-size", "256Mi")]
    limits = {"memory": says("memory-limit", max(usual, says("memory-request", "1"), key=amount))}
    requests = {"memory": says("memory-request", min("64Mi", limits["memory"], key=amount))}
    if says("cpu-limit", ""):
        limits["cpu"] = says("cpu-limit", "")
    requests["cpu"] = says("cpu-request", min("50m", limits.get("cpu", "50m"), key=amount))
    return {"limits": in_millicores(limits), "requests": in_millicores(requests)}


def check_resources(raw, container):
    got = {kind: in_millicores(container["resources"][kind]) for kind in ("limits", "requests")}
    same(f"resources of {container['name']}", got, expected_resources(raw))
    for name, limit in got["limits"].items():
        if amount(limit) < amount(got["requests"][name]):
            raise AssertionError(f"{container['name']}: its limit of {name} is below its request: {got}")


def check_sidecar(raw, sidecar, ipc, native):
    says = lambda key, default: annotations(raw).get(P + key, default)
    env = {entry["name"]: entry.get("value", "") for entry in sidecar["env"]}
    fields = {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"]
              for entry in sidecar["env"] if "valueFrom" in entry}
    secret = says("auth-secret", "")
    same("the sidecar's environment", {**env, **fields}, {
        "VCUDA_AGENT": says("server", SERVER), "VCUDA_IPC": ipc,
        "VCUDA_SOCKET": "/run/tensor-fusion/vcuda.sock",
        "VCUDA_VRAM_LIMIT": says("vram-limit", ""), "VCUDA_GPU_COUNT": says("gpu-count", ""),
        "VCUDA_GPU_SPREAD": says("gpu-spread", ""),
        "VCUDA_UPLOAD_CACHE": says("upload-cache", "false"),
        "VCUDA_PRIORITY": says("priority", ""), "VCUDA_PROTOCOL": says("protocol", "auto"),
        "VCUDA_COMPRESS": says("compress", "auto"),
        "VCUDA_SHM_SIZE": says("shm-size", "256Mi"), "VCUDA_GRACE": says("grace", "30"),
        "VCUDA_LOG_LEVEL": says("log-level", "info"),
        "VCUDA_TOKEN_FILE": "/etc/vcuda/token/token" if secret else "",
        "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_UID": "metadata.uid"})
    same("the sidecar's form", sidecar.get("restartPolicy"), "Always" if native else None)
    same("the sidecar's image", sidecar["image"], says("client-image", f"ghcr.io/vcuda/client:{VERSION}"))
    for key in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "exec" not in sidecar[key]:
            raise AssertionError(f"the sidecar's {key}")
    same("preStop", sidecar["lifecycle"]["preStop"]["exec"]["command"][1], "drain")


def check_restricted(container):
    security = container["securityContext"]
    same(f"{container['name']}: privileges",
         [security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"], security["runAsNonRoot"],
          security["runAsUser"], security["capabilities"], security["seccompProfile"]],
         [False, True, True, 65532, {"drop": ["ALL"]}, {"type": "RuntimeDefault"}])


def check_injected(raw, got):
    want, ipc, native = expected(raw)
    got = copy.deepcopy(got)
    spec = got["spec"]
    inits = spec.get("initContainers", [])
    install = inits.pop(0)
    same("the first init container", install["name"], "tensor-fusion-init")
    same("its arguments", install["args"], ["install", "/opt/vcuda", "/target"])
    sidecar = inits.pop(0) if native else spec["containers"].pop()
    same("the sidecar", sidecar["name"], "vcuda-client")
    check_sidecar(raw, sidecar, ipc, native)
    for container in (install, sidecar):
        check_restricted(container)
        check_resources(raw, container)
    added = [volume for volume in spec["volumes"] if volume["name"] in OURS]
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] not in OURS]
    same("volumes", {volume["name"] for volume in added}, OURS)
    secret = next(volume["secret"] for volume in added if "secret" in volume)
    same("the token's secret", (secret["secretName"], secret["optional"]),
         (annotations(raw).get(P + "auth-secret", "vcuda-token"), P + "auth-secret" not in annotations(raw)))
    got, want = bare(got), bare(want)
    for part in ("metadata", "spec"):
        for key in sorted(set(got[part]) | set(want[part])):
            same(f"{part}.{key}", got[part].get(key), want[part].get(key))
