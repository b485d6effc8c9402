#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes node on this machine, for tests: node.py up | down | env.

Everything (etcd, control plane, containerd, kubelet, CoreDNS, pods) runs in one network namespace
without a way out; its addresses are of the benchmarking range.  The API is reached from outside at
127.0.0.1:PORT through a unix socket.  Images come out of archives, never from a registry.  State is in
one folder; processes are ended by recorded pid and start time, so that a stranger is never hit.
On a machine with an NVIDIA GPU, pods of the RuntimeClass `nvidia` get it by NVIDIA's container runtime.
README.md says what this needs and why the flags are as they are.
"""
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time

from node_process import ADDRESS, API_SERVICE, BESIDE, BIN, BRIDGE, BUSYBOX, CNI, DNS_SERVICE, \
    NAMESPACE, NODE, PAUSE, PODS, PORT, SERVICES, STATE, SYSCTLS, daemon, end, environment, inside, kubectl, \
    listens, path, recorded, run, wait_for, works, write

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "images"))
from archive import image_config, layer_of, write_archive  # noqa: E402

# --- keys ---

def keys():
    if os.path.exists(path("pki", "done")):
        return
    os.makedirs(path("pki"), exist_ok=True)
    pki = lambda name: path("pki", name)

    def key(name):
        run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pki(name + ".key"))

    def certificate(name, subject, names=""):
        key(name)
        request = run("openssl", "req", "-new", "-key", pki(name + ".key"), "-subj", subject)
        write(f"pki/{name}.ext", "keyUsage=digitalSignature,keyEncipherment\n"
              "extendedKeyUsage=serverAuth,clientAuth\n" + (f"subjectAltName={names}\n" if names else ""))
        run("openssl", "x509", "-req", "-CA", pki("ca.crt"), "-CAkey", pki("ca.key"), "-CAcreateserial",
            "-days", "3650", "-extfile", pki(name + ".ext"), "-out", pki(name + ".crt"), text=request)

    key("ca")
    run("openssl", "req", "-x509", "-new", "-key", pki("ca.key"), "-subj", "/CN=test-ca", "-days", "3650",
        "-out", pki("ca.crt"), "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
        "keyUsage=critical,digitalSignature,keyCertSign")
    certificate("apiserver", "/CN=kube-apiserver",
                f"IP:127.0.0.1,IP:{ADDRESS},IP:{API_SERVICE},DNS:localhost,DNS:kubernetes,"
                "DNS:kubernetes.default,DNS:kubernetes.default.svc")
    certificate("kubelet-serving", f"/O=system:nodes/CN=system:node:{NODE}", f"IP:{ADDRESS},DNS:{NODE}")
    certificate("to-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet")
    certificate("front-proxy", "/CN=front-proxy-client")
    run("openssl", "genrsa", "-out", pki("accounts.key"), "2048")
    run("openssl", "rsa", "-in", pki("accounts.key"), "-pubout", "-out", pki("accounts.pub"))
    for user, subject in (("admin", "/O=system:masters/CN=admin"),
                          ("controller-manager", "/CN=system:kube-controller-manager"),
                          ("scheduler", "/CN=system:kube-scheduler"),
                          ("proxy", "/CN=system:kube-proxy"),
                          ("kubelet", f"/O=system:nodes/CN=system:node:{NODE}")):
        certificate(user, subject)
        write(f"config/{user}", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{PORT}",
                                                      "certificate-authority": pki("ca.crt")}}],
            "users": [{"name": user, "user": {"client-certificate": pki(user + ".crt"),
                                              "client-key": pki(user + ".key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}]}))
    write("pki/done", "")


# --- the parts, in the order of starting ---

def network():
    if not os.path.exists(f"/run/netns/{NAMESPACE}"):
        run("ip", "netns", "add", NAMESPACE)
    run(*inside("ip", "link", "set", "lo", "up"))
    run(*inside("ip", "link", "add", BRIDGE, "type", "bridge"), check=False)
    run(*inside("ip", "addr", "replace", f"{ADDRESS}/24", "dev", BRIDGE))
    run(*inside("ip", "link", "set", BRIDGE, "up"))
    run(*inside("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"))


def gpu():
    """Whether the node has one to give: a driver, and `build.sh nvidia` was run."""
    return os.path.exists("/dev/nvidiactl") and os.path.exists(os.path.join(BIN, "nvidia-container-runtime"))


def nvidia_runtime():
    """What the GPU Operator would do for the runtime: which files and devices containers get."""
    if not gpu() or os.path.exists(path("cdi", "nvidia.yaml")):
        return
    os.makedirs(path("cdi"), exist_ok=True)
    run("nvidia-ctk", "cdi", "generate", "--output", path("cdi", "nvidia.yaml"), "--nvidia-cdi-hook-path",
        os.path.join(BIN, "nvidia-cdi-hook"))
    write("config-home/nvidia-container-runtime/config.toml", f"""[nvidia-container-runtime]
mode = "cdi"
runtimes = ["runc"]
[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
spec-dirs = ["{path('cdi')}"]
""")


RUNTIME = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%s]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%s.options]
SystemdCgroup = false
BinaryName = "%s"
"""

def containerd():
    config = write("containerd.toml", f"""version = 2
root = "{path('containerd', 'root')}"
state = "{path('containerd', 'state')}"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs",
	"io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "{path('containerd.sock')}"
[plugins."io.containerd.internal.v1.opt"]
path = "{path('containerd', 'opt')}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
{RUNTIME % ("runc", "runc", "runc")}
{RUNTIME % ("nvidia", "nvidia", os.path.join(BIN, "nvidia-container-runtime")) if gpu() else ""}
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI}"
conf_dir = "{path('cni')}"
""")
    write("cni/10-test.conflist", json.dumps({
        "cniVersion": "1.0.0", "name": "vcuda-test", "plugins": [
            {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": False, "hairpinMode": True,
             "ipam": {"type": "host-local", "dataDir": path("cni-addresses"),
                      "ranges": [[{"subnet": "198.18.0.0/24", "gateway": ADDRESS,
                                   "rangeEnd": "198.18.0.250"}]],
                      "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": True}}]}))
    daemon("containerd", "containerd", "--config", config)
    wait_for(lambda: works("ctr", "-a", path("containerd.sock"), "version"), 30, "containerd")


def control_plane():
    pki, config = lambda name: path("pki", name), lambda name: path("config", name)
    etcd = "http://127.0.0.1:2379"
    daemon("etcd", "etcd", "--name", "test", "--data-dir", path("etcd"), "--listen-client-urls",
           etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", "http://127.0.0.1:2380",
           "--initial-advertise-peer-urls", "http://127.0.0.1:2380", "--initial-cluster",
           "test=http://127.0.0.1:2380")
    wait_for(lambda: listens("127.0.0.1", 2379), 30, "etcd")
    daemon("kube-apiserver", "kube-apiserver", f"--etcd-servers={etcd}", "--bind-address=0.0.0.0",
           f"--secure-port={PORT}", f"--advertise-address={ADDRESS}",
           f"--service-cluster-ip-range={SERVICES}", f"--client-ca-file={pki('ca.crt')}",
           f"--tls-cert-file={pki('apiserver.crt')}", f"--tls-private-key-file={pki('apiserver.key')}",
           f"--kubelet-client-certificate={pki('to-kubelet.crt')}",
           f"--kubelet-client-key={pki('to-kubelet.key')}",
           f"--kubelet-certificate-authority={pki('ca.crt')}",
           "--kubelet-preferred-address-types=InternalIP",
           "--service-account-issuer=https://kubernetes.default.svc",
           f"--service-account-key-file={pki('accounts.pub')}",
           f"--service-account-signing-key-file={pki('accounts.key')}",
           "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
           "--allow-privileged=true", "--enable-aggregator-routing=true",
           f"--requestheader-client-ca-file={pki('ca.crt')}",
           "--requestheader-allowed-names=front-proxy-client",
           "--requestheader-username-headers=X-Remote-User",
           "--requestheader-group-headers=X-Remote-Group",
           "--requestheader-extra-headers-prefix=X-Remote-Extra-",
           f"--proxy-client-cert-file={pki('front-proxy.crt')}",
           f"--proxy-client-key-file={pki('front-proxy.key')}",
           "--feature-gates=MutatingAdmissionPolicy=true",
           "--runtime-config=admissionregistration.k8s.io/v1beta1=true")
    wait_for(lambda: works(*inside(*kubectl("get", "--raw", "/readyz"))), 90, "kube-apiserver")
    daemon("kube-controller-manager", "kube-controller-manager",
           f"--kubeconfig={config('controller-manager')}", "--bind-address=127.0.0.1",
           "--leader-elect=false", f"--service-account-private-key-file={pki('accounts.key')}",
           f"--root-ca-file={pki('ca.crt')}", "--use-service-account-credentials=true",
           f"--cluster-signing-cert-file={pki('ca.crt')}",
           f"--cluster-signing-key-file={pki('ca.key')}")
    daemon("kube-scheduler", "kube-scheduler", f"--kubeconfig={config('scheduler')}",
           "--bind-address=127.0.0.1", "--leader-elect=false")
    # The door: 127.0.0.1:PORT of the machine -> unix socket -> the same of the namespace.
    daemon("door-inside", "socat", f"UNIX-LISTEN:{path('run', 'api.sock')},fork,unlink-early",
           f"TCP:127.0.0.1:{PORT}")
    daemon("door-outside", "socat", f"TCP-LISTEN:{PORT},bind=127.0.0.1,reuseaddr,fork",
           f"UNIX-CONNECT:{path('run', 'api.sock')}", outside=True)
    wait_for(lambda: works(*kubectl("get", "--raw", "/readyz")), 10, "the way to the API")


def control_groups():
    """The group that pods are under.  Kubelets end pods that they do not know, so each has its own;
    with version 2 of control groups all share one, and there can be one node at a time."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "/"
    for controller in os.listdir("/sys/fs/cgroup"):
        os.makedirs(os.path.join("/sys/fs/cgroup", controller, NAMESPACE), exist_ok=True)
        if "cpuset" in controller.split(","):  # a new group has neither processors nor memory
            for name in ("cpuset.cpus", "cpuset.mems"):
                with open(os.path.join("/sys/fs/cgroup", controller, name)) as of_all, \
                     open(os.path.join("/sys/fs/cgroup", controller, NAMESPACE, name), "w") as ours:
                    ours.write(of_all.read())
    return "/" + NAMESPACE


def kubelet():
    for name in SYSCTLS:
        if not os.path.exists(path("run", "sysctl", name)):
            with open(os.path.join("/proc/sys", name)) as file:
                write(os.path.join("run/sysctl", name), file.read())
    if not os.path.exists("/var/lib/kubelet"):
        write("run/made-var-lib-kubelet", "")
    write("resolv.conf", "")  # the machine's own resolver is not for pods
    config = write("kubelet.json", json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupRoot": control_groups(),
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix://" + path("containerd.sock"),
        "podLogsDir": path("log", "pods"), "address": ADDRESS, "healthzBindAddress": "127.0.0.1",
        "tlsCertFile": path("pki", "kubelet-serving.crt"),
        "tlsPrivateKeyFile": path("pki", "kubelet-serving.key"),
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": path("pki", "ca.crt")}},
        "authorization": {"mode": "Webhook"}, "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE], "resolvConf": path("resolv.conf"), "syncFrequency": "10s",
        # Images that no registry can give back must not be collected.
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%",
                         "imagefs.available": "0%", "nodefs.inodesFree": "0%"}}))
    daemon("kubelet", "kubelet", f"--config={config}", f"--kubeconfig={path('config', 'kubelet')}",
           f"--root-dir={path('kubelet')}", f"--hostname-override={NODE}", f"--node-ip={ADDRESS}")
    daemon("kube-proxy", "kube-proxy", f"--kubeconfig={path('config', 'proxy')}",
           f"--hostname-override={NODE}", "--proxy-mode=nftables", f"--cluster-cidr={PODS}",
           f"--bind-address={ADDRESS}", "--healthz-bind-address=127.0.0.1:10256",
           "--metrics-bind-address=127.0.0.1:10249", "--conntrack-max-per-core=0",
           "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")


def dns():
    corefile = write("Corefile", f""".:53 {{
 bind {ADDRESS}
 errors
 kubernetes cluster.local in-addr.arpa {{
  kubeconfig {path('config', 'admin')}
  pods insecure
  ttl 1
 }}
}}
""")
    daemon("coredns", "coredns", "-conf", corefile)
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    run(*kubectl("apply", "-f", "-"), text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service",
         "metadata": {"name": "kube-dns", "namespace": "kube-system"},
         "spec": {"clusterIP": DNS_SERVICE, "ports": ports}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
         "metadata": {"name": "kube-dns-node", "namespace": "kube-system",
                      "labels": {"kubernetes.io/service-name": "kube-dns"}},
         "addressType": "IPv4", "ports": ports,
         "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}]}]}))


# --- a registry ---

REGISTRY, REGISTRY_USER, REGISTRY_PASSWORD = "127.0.0.1:5000", "puller", "open-sesame"
# htpasswd's bcrypt of it.
REGISTRY_HASH = "$2b$05$vcudavcudavcudavcudavO95X/LZyl3lUdijD9KPwH9PHOkj2apa."


def registry():
    """One that asks for a password, as a cluster without the internet has; False: not installed here."""
    if not all(shutil.which(tool) for tool in ("docker-registry", "skopeo")):
        return False
    config = write("registry/config.yml", json.dumps({
        "version": 0.1, "storage": {"filesystem": {"rootdirectory": path("registry", "data")}},
        "http": {"addr": REGISTRY},
        "auth": {"htpasswd": {"realm": "test", "path": write(
            "registry/htpasswd", f"{REGISTRY_USER}:{REGISTRY_HASH}\n")}}}))
    daemon("registry", "docker-registry", "serve", config)
    wait_for(lambda: listens(*REGISTRY.split(":")), 10, "the registry")
    return True


def push(archive, reference):
    """Its digest there."""
    words = ("skopeo", "--insecure-policy")
    login = f"{REGISTRY_USER}:{REGISTRY_PASSWORD}"
    run(*inside(*words, "copy", "-q", "--dest-tls-verify=false", "--dest-creds", login,
                "docker-archive:" + archive, f"docker://{reference}"), seconds=120)
    return json.loads(run(*inside(*words, "inspect", "--tls-verify=false", "--creds", login,
                                  f"docker://{reference}")))["Digest"]


# --- network policies ---

def enforce():
    """From here on the node's network enforces NetworkPolicy; until lift() or down()."""
    bridged = "/proc/sys/net/bridge/bridge-nf-call-iptables"
    if not works(*inside("test", "-e", bridged)):
        works("modprobe", "br_netfilter")
    # What pods of one node send each other crosses the bridge only: br_netfilter shows it to nftables.
    run(*inside("sh", "-c", f"echo 1 >{bridged}"))
    daemon("netpol", sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "netpol.py"))
    wait_for(lambda: works(*inside("nft", "list", "table", "inet", "vcuda_netpol")), 10, "the policies' table")


def lift():
    end("netpol")
    run(*inside("nft", "delete", "table", "inet", "vcuda_netpol"), check=False)


def machine():
    """The path of the network of a machine beside the node, which is no pod; gone with the node."""
    name = NAMESPACE + "-beside"
    if not os.path.exists("/run/netns/" + name):
        run("ip", "netns", "add", name)
        run("ip", "-n", NAMESPACE, "link", "add", "beside", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "-n", NAMESPACE, "link", "set", "beside", "master", BRIDGE, "up")
        run("ip", "-n", name, "addr", "add", BESIDE + "/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "link", "set", "eth0", "up")
    return "/run/netns/" + name


# --- images ---

def load(archive):
    run("ctr", "-a", path("containerd.sock"), "-n", "k8s.io", "images", "import", archive, seconds=120)


def make_image(name, files, command, links=(), entrypoint=False):
    """An image with one layer, made by hand and loaded: {place: file} and links."""
    with open(path("layer.tar"), "w+b") as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for place, source in files.items():
                tar.add(source, place)
            for link, target in links:
                info = tarfile.TarInfo(link)
                info.type, info.linkname = tarfile.SYMTYPE, target
                tar.addfile(info)
        layer = layer_of(file)
        config = {"Env": ["PATH=/bin"], **({"Entrypoint": command, "User": "65532:65532"}
                                           if entrypoint else {"Cmd": command})}
        write_archive(path("image.tar"), name, image_config(config, [layer[0]], ["make_image"]), [layer])
    load(path("image.tar"))
    os.unlink(path("image.tar"))
    os.unlink(path("layer.tar"))


def own_images():
    """What a pod is held together by, and a container with musl's ways: static busybox."""
    have = run("ctr", "-a", path("containerd.sock"), "-n", "k8s.io", "images", "ls", "-q").split()
    if PAUSE not in have:
        pause = os.path.join(BIN, "pause")
        if not os.path.exists(pause):
            source = write("pause.c", """#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void leave(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) ; }
int main(void) { signal(SIGINT, leave); signal(SIGTERM, leave); signal(SIGCHLD, reap); for (;;) pause(); }
""")
            run("gcc", "-O1", "-static", "-s", "-o", pause, source)
        make_image(PAUSE, {"pause": pause}, ["/pause"])
    if BUSYBOX not in have:
        busybox = shutil.which("busybox", path=environment()["PATH"])
        tools = run(busybox, "--list").split()
        make_image(BUSYBOX, {"bin/busybox": busybox}, ["/bin/sh"],
                   [("bin/" + tool, "busybox") for tool in tools if tool != "busybox"])


# --- up and down ---

def up(archives=()):
    began = time.monotonic()
    for folder in ("run", "log", "config"):
        os.makedirs(path(folder), exist_ok=True)
    for step in (network, keys, nvidia_runtime, containerd, own_images, control_plane, kubelet, dns):
        step()
    for archive in archives:
        load(archive)
    wait_for(lambda: works(*kubectl("get", "serviceaccount", "default")), 60, "service accounts")
    wait_for(lambda: works(*kubectl("wait", "--for=condition=Ready", "node/" + NODE, "--timeout=1s")),
             90, "the node is Ready")
    if gpu():  # as the GPU Operator leaves a node
        run(*kubectl("label", "--overwrite", "node", NODE, "nvidia.com/gpu.present=true"))
        run(*kubectl("apply", "-f", "-"), text=json.dumps(
            {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"},
             "handler": "nvidia"}))
    print(f"node.py: up in {time.monotonic() - began:.1f} s")


def end_containers():
    client = ("ctr", "-a", path("containerd.sock"), "-n", "k8s.io")
    for label in ("container", "sandbox"):  # sandboxes last: their shim ends with them
        names = run(*client, "containers", "ls", "-q",
                    f'labels."io.cri-containerd.kind"=={label}', check=False).split()
        for words in (("tasks", "kill", "-s", "SIGKILL"), ("tasks", "delete", "-f"), ("containers", "rm")):
            for process in [subprocess.Popen([*client, *words, name], stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL, env=environment())
                            for name in names]:
                process.wait(30)


def take_away_mounts():
    mounts = [line.split()[1] for line in open("/proc/mounts")]
    results = "/var/lib/cni/results"
    for name in os.listdir(results) if os.path.isdir(results) else ():
        if not name.startswith("vcuda-test-") and "loopback" not in name:
            continue
        with open(os.path.join(results, name)) as file:
            text = file.read()
        if STATE in text or name.startswith("vcuda-test-"):
            for interface in json.loads(text).get("result", {}).get("interfaces", []):
                mounts.append(interface.get("sandbox", ""))
            os.unlink(os.path.join(results, name))
    for place in sorted(set(mounts), reverse=True):
        if place.startswith(STATE + "/") or "/netns/cni-" in place:
            run("umount", "-l", place, check=False)
        if "/netns/cni-" in place and os.path.exists(place):
            os.unlink(place)


def down():
    names = [name[:-4] for name in os.listdir(path("run"))
             if name.endswith(".pid")] if os.path.isdir(path("run")) else []
    end("kubelet")
    end(*[name for name in names if name != "containerd"])
    if recorded("containerd"):
        end_containers()
    end("containerd")
    take_away_mounts()
    for name in (NAMESPACE, NAMESPACE + "-beside"):
        run("ip", "netns", "del", name, check=False)
    for _ in range(10):
        run("sh", "-c", f"find /sys/fs/cgroup/kubepods /sys/fs/cgroup/*/{NAMESPACE} -depth -type d"
            " -exec rmdir {} + 2>/dev/null", check=False)
        time.sleep(0.1)
    for name in SYSCTLS:
        if os.path.exists(path("run", "sysctl", name)):
            with open(path("run", "sysctl", name)) as was, open(os.path.join("/proc/sys", name), "w") as now:
                now.write(was.read())
    if os.path.exists(path("run", "made-var-lib-kubelet")):
        shutil.rmtree("/var/lib/kubelet", ignore_errors=True)
    for name in os.listdir("/var/log/containers") if os.path.isdir("/var/log/containers") else ():
        link = os.path.join("/var/log/containers", name)
        if os.readlink(link).startswith(STATE + "/"):
            os.unlink(link)
    with open("/proc/mounts") as file:
        left = [line for line in file if STATE + "/" in line]
    if left:
        raise RuntimeError(f"mounts are left: {left[:3]}")
    shutil.rmtree(STATE, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["up"]:
        up(sys.argv[2:])
    elif sys.argv[1:] == ["down"]:
        down()
    elif sys.argv[1:] == ["env"]:
        print(f"export KUBECONFIG={path('config', 'admin')} PATH={BIN}:$PATH")
    else:
        sys.exit("usage: node.py up [IMAGE.tar…] | down | env")
