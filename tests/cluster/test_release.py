# SPDX-License-Identifier: Apache-2.0
"""The end: uninstalling.  Last, since the others want the release."""
import glob

from cluster import SPACE, SYSTEM, Api, eventually, everything, get, helm, kubectl
from test_pods import as_stored, before, plain_pod


def test_uninstall_leaves_nothing_behind():
    kubectl("delete", "namespace", SPACE, "--wait=true", "--timeout=90s")
    helm("uninstall", "vcuda", "--wait", "--timeout", "90s")
    eventually(lambda: not get("pods", space=SYSTEM)["items"], 60, "no pod is left")
    kubectl("delete", "namespace", SYSTEM, "--wait=true", "--timeout=60s")
    left = {name for name in everything() - before["all"] if f"/{SPACE}" not in name}
    assert not left, sorted(left)
    assert not glob.glob("/dev/shm/vcuda-*"), "shared memory is left on the node"
