# SPDX-License-Identifier: Apache-2.0
"""A sidecar that is killed, a pod that ends, an agent that is replaced."""
import subprocess
import time

from cluster import (CHART, SPACE, SYSTEM, annotations, apply, container, environment, eventually,
                     execute, get, helm, k, kubectl, pod, pod_spec, process, put_app, ready, restarts, start)
import node

RIGHT = "sums are right"


def test_a_killed_sidecar_comes_back_and_the_program_goes_on():
    apply(pod("killed", wanted=annotations()))
    ready("killed")
    put_app("killed")
    app = start("killed", "/tmp/app", "bystander", "4096")
    assert "started" in app.stdout.readline()
    node.run("kill", "-KILL", str(process("killed", "vcuda-client")))
    eventually(lambda: restarts("killed", "vcuda-client") == (1, True), 40, "the sidecar is back")
    assert restarts("killed", "app") == (0, True)
    _, out = execute("killed", "vectorAdd")
    assert RIGHT in out, out
    out, _ = app.communicate(timeout=30)  # its input ends
    assert app.returncode == 0, out
    return out.strip().split("\n")[-1]


def test_without_a_grace_the_program_of_a_killed_sidecar_is_told():
    apply(pod("told", wanted=annotations(grace="0")))
    ready("told")
    put_app("told")
    app = start("told", "/tmp/app", "calls")
    assert "calling" in app.stdout.readline()
    node.run("kill", "-KILL", str(process("told", "vcuda-client")))
    out, _ = app.communicate(timeout=20)
    assert "error 911" in out, out
    eventually(lambda: restarts("told", "vcuda-client") == (1, True), 40, "the sidecar is back")
    _, out = execute("told", "vectorAdd")
    assert RIGHT in out, out


# Computes in the background from the start; when the pod ends, tries another program, and then lets
# the first one finish.
ENDING = """
until [ -x /tmp/app ]; do sleep 0.1; done
mkfifo /tmp/in
/tmp/app bystander 4096 </tmp/in >/tmp/out 2>&1 &
first=$!
exec 9>/tmp/in
finish() {
	sleep 1
	vectorAdd
	echo "second=$?"
	exec 9>&-
	wait $first
	echo "first=$?"
	cat /tmp/out
	exit 0
}
trap finish TERM
while :; do sleep 0.1; done
"""


def test_at_the_end_of_a_pod_programs_go_on_and_new_ones_are_refused():
    spec = pod_spec(container(command=["sh", "-c", ENDING]), terminationGracePeriodSeconds=30)
    apply(pod("ending", spec, annotations()))
    ready("ending")
    put_app("ending")
    eventually(lambda: "started" in execute("ending", "cat", "/tmp/out", check=False)[1], 20, "it runs")
    log = subprocess.Popen(["kubectl", "-n", SPACE, "logs", "-f", "ending", "-c", "app"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env=environment())
    k("delete", "pod", "ending", "--wait=false")
    out, _ = log.communicate(timeout=40)
    assert "second=" in out and "second=0" not in out, out  # refused: the sidecar drains
    assert "first=0" in out and "rounds right" in out, out  # and this one went on


def test_an_upgrade_lets_running_sessions_end_first():
    apply(pod("running", wanted=annotations()))
    ready("running")
    put_app("running")
    app = start("running", "/tmp/app", "bystander", "4096")
    assert "started" in app.stdout.readline()
    old = [one["metadata"]["name"] for one in get("pods", space=SYSTEM)["items"]
           if one["metadata"]["labels"].get("tensor-fusion.ai/component") == "agent"][0]
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "agent.logLevel=debug")
    eventually(lambda: get("pod", old, SYSTEM)["metadata"].get("deletionTimestamp"), 20,
               "the old agent is asked to end")
    time.sleep(2)
    assert app.poll() is None, app.stdout.read()
    app.stdin.close()
    out = app.stdout.read()
    assert app.wait(20) == 0 and "rounds right" in out, out
    eventually(lambda: old not in [p["metadata"]["name"] for p in get("pods", space=SYSTEM)["items"]],
               30, "the old agent is gone")
    kubectl("-n", SYSTEM, "rollout", "status", "daemonset", "--timeout=60s")
    eventually(lambda: RIGHT in execute("running", "vectorAdd", check=False)[1], 20,
               "the new agent serves the same pod")
