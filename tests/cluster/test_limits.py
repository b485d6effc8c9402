# SPDX-License-Identifier: Apache-2.0
"""vram-limit and gpu-count of a pod, in the agent's ledger."""
import re

from cluster import (GPU_MIB, GPU_NAME, GPUS, annotations, apply, container, eventually, execute, k, pod,
                     pod_spec, put_app, ready, start, why)

GIB = 1 << 30
STEP = 64 << 20


def takes(name, container=None):
    _, out = execute(name, "sh", "-c", f"/tmp/app limit {STEP} </dev/null", container=container)
    seen = re.search(r"sees (\d+) GPUs of (\d+) bytes, info (\d+) of (\d+)", out)
    got = re.search(r"error (\d+) after (\d+) bytes", out)
    assert seen and got, out
    return [int(x) for x in seen.groups() + got.groups()]


def test_a_pod_of_4_gib_sees_4_gib_and_gets_no_more():
    apply(pod("small", wanted=annotations(vram_limit="4Gi", gpu_count="1")))
    ready("small")
    put_app("small")
    count, total, free, info, error, got = takes("small")
    assert (count, total, free, info) == (1, 4 * GIB, 4 * GIB, 4 * GIB), (count, total, free, info)
    assert error == 2 and 4 * GIB - STEP <= got <= 4 * GIB, (error, got)
    _, out = execute("small", "nvidia-smi")
    assert "4096 MiB" in out and f"{GPU_MIB} MiB" not in out and out.count(GPU_NAME) == 1, out


def test_the_limit_is_the_pods_not_the_processes():
    apply(pod("shared", pod_spec(container("a"), container("b")),
              annotations(vram_limit="4Gi", gpu_count="1")))
    ready("shared")
    for which in "ab":
        put_app("shared", which)
    holder = start("shared", "/tmp/app", "hold", str(3 * GIB), container="a")
    assert "holding" in holder.stdout.readline()
    _, total, free, _, error, got = takes("shared", "b")
    assert (total, free, error) == (4 * GIB, GIB, 2), (total, free, error)
    assert GIB - STEP <= got <= GIB, got
    holder.stdin.close()
    assert holder.wait(20) == 0


def test_without_a_limit_it_sees_what_there_is():
    apply(pod("whole", wanted=annotations()))
    ready("whole")
    put_app("whole")
    count, total, _, _, error, got = takes("whole")
    # A driver counts what it keeps for itself in one place and not in the other: a part in a hundred.
    assert (count, error) == (GPUS, 2), (count, error)
    assert abs(total / (GPU_MIB << 20) - 1) < 0.02 and got > 0.85 * total, (total, got)


def test_a_pod_gets_as_many_gpus_as_it_asks_for():
    apply(pod("many", wanted=annotations(gpu_count=str(GPUS), vram_limit="1Gi")),
          pod("more", wanted=annotations(gpu_count=str(GPUS + 1))))
    ready("many")
    put_app("many")
    _, out = execute("many", "sh", "-c", f"/tmp/app limit {STEP} </dev/null")
    places = re.findall(r"GPU \d works: (\S+)", out)
    assert len(set(places)) == len(places) == GPUS and f"of {GIB} bytes" in out, out
    # No agent has so many: the pod does not start, and its event says why.
    eventually(lambda: f"{GPUS + 1} GPUs" in why("more"), 40, "the reason in an event")
    k("delete", "pod", "more", "--wait=false")
    return f"{GPUS}"
