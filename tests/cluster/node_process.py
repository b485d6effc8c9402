# SPDX-License-Identifier: Apache-2.0
"""What the node stands on: its folder and addresses, commands in its network, and its processes, each recorded by pid and
start time and ended by both, so that a stranger is never hit."""
import os
import signal
import subprocess
import time

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "vcuda")
BIN = os.path.join(CACHE, "cluster", "bin")
# pack.sh puts the network plugins beside our own; Debian's are where Debian has them.
CNI = os.path.join(CACHE, "cluster", "cni")
if not os.path.isdir(CNI):
    CNI = "/usr/lib/cni"
STATE = os.environ.get("VCUDA_CLUSTER", "/tmp/vcuda-cluster")
NAMESPACE = os.environ.get("VCUDA_CLUSTER_NETNS", "vcuda-cluster")
PORT = int(os.environ.get("VCUDA_CLUSTER_PORT", "16443"))
NODE, BRIDGE = "node", "vcuda0"
ADDRESS, PODS, SERVICES = "198.18.0.1", "198.18.0.0/16", "198.19.0.0/16"
API_SERVICE, DNS_SERVICE = "198.19.0.1", "198.19.0.10"
BESIDE = "198.18.0.254"  # machine()
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")  # kubelet sets them
PAUSE, BUSYBOX = "localhost/pause:test", "localhost/busybox:test"


def path(*words):
    return os.path.join(STATE, *words)


def environment(**more):
    return dict(os.environ, PATH=BIN + ":" + os.environ["PATH"], **more)


def run(*command, text=None, check=True, seconds=60, env=None):
    got = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True,
                         timeout=seconds, env=env or environment())
    if check and got.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))[:200]}: {got.stderr.strip()[-800:]}")
    return got.stdout


def write(name, text, mode=0o600):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w") as file:
        file.write(text)
    os.chmod(path(name), mode)
    return path(name)


def wait_for(what, seconds, message):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds} s: {message} (logs: {path('log')})")
        time.sleep(0.1)


def works(*command):
    try:
        return subprocess.run(command, capture_output=True, timeout=10, env=environment()).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def kubectl(*words):
    return ("kubectl", "--kubeconfig", path("config", "admin"), *words)


def inside(*command):
    # Not `ip netns exec`: that one mounts a new /sys over the control groups.
    return ("nsenter", f"--net=/run/netns/{NAMESPACE}", *command)


def listens(host, port):
    """Whether something does in the node's network."""
    return works(*inside("bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}"))


# --- processes ---

def start_time(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def recorded(name):
    """The pid of a process that runs, or None."""
    try:
        with open(path("run", name + ".pid")) as file:
            pid, born = file.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if start_time(int(pid)) == born else None


def daemon(name, *command, outside=False):
    if recorded(name):
        return
    with open(path("log", name + ".log"), "a") as log:
        process = subprocess.Popen(command if outside else inside(*command), stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, start_new_session=True,
                                   env=environment(XDG_CONFIG_HOME=path("config-home")))
    write(os.path.join("run", name + ".pid"), f"{process.pid} {start_time(process.pid)}\n")


def end(*names):
    for name in names:
        pid = recorded(name)
        if pid:
            os.kill(pid, signal.SIGTERM)
    for name in names:
        for _ in range(50):
            if not recorded(name):
                break
            time.sleep(0.1)
        pid = recorded(name)
        if pid:
            os.kill(pid, signal.SIGKILL)
        if os.path.exists(path("run", name + ".pid")):
            os.unlink(path("run", name + ".pid"))
