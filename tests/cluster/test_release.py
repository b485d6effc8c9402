# SPDX-License-Identifier: Apache-2.0
"""Other ways to install, and the end.  Last, since the others want the release as it was."""
import glob

from cluster import (CHART, SPACE, SYSTEM, agents, annotations, apply, everything, eventually, execute, get, helm,
                     kubectl, pod, put_app, ready, start)
from test_pods import RIGHT, before


def test_of_two_agents_the_freer_one_is_taken():
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set", "agent.kind=Deployment,agent.replicas=2")
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", "--timeout=60s")
    eventually(lambda: len(agents()) == 2, 60, "only the two are there")
    holders = []
    for name in ("first", "second"):
        apply(pod(name, wanted=annotations()))
        ready(name)
        put_app(name)
        holders.append(start(name, "/tmp/app", "hold", str(3 << 30)))
        assert "holding" in holders[-1].stdout.readline()
    assert sorted(agents().values()) == [1, 1], agents()
    for holder in holders:
        holder.stdin.close()
        assert holder.wait(20) == 0


def test_with_a_token_only_those_who_have_it_compute():
    helm("upgrade", "vcuda", CHART, "--reset-then-reuse-values", "--set",
         f"auth.enabled=true,auth.token=sesame-{'x' * 24},auth.namespaces={{{SPACE}}}")
    kubectl("-n", SYSTEM, "rollout", "status", "deployment", "--timeout=60s")
    apply(pod("token", wanted=annotations()))
    ready("token", 90)
    _, out = execute("token", "vectorAdd")
    assert RIGHT in out, out
    _, out = execute("token", "/lib/vcuda/vcuda-client", "probe", "--agent",
                     f"vcuda-agent.{SYSTEM}.svc", check=False)
    assert "refused" in out and "token" in out, out
    _, out = execute("token", "sh", "-c", "grep -r sesame /run /lib/vcuda 2>/dev/null; env | grep -i sesame",
                     check=False)
    assert "sesame" not in out, "the program can read the token"


def test_uninstall_leaves_nothing_behind():
    kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=90s")
    helm("uninstall", "vcuda", "--wait", "--timeout", "90s")
    eventually(lambda: not get("pods", space=SYSTEM)["items"], 60, "no pod is left")
    kubectl("delete", "namespace", SYSTEM, "--wait=true", "--timeout=60s")
    left = {name for name in everything() - before["all"] if f"/{SPACE}" not in name}
    assert not left, sorted(left)
    assert not glob.glob("/dev/shm/vcuda-*"), "shared memory is left on the node"
