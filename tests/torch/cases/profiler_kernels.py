# The profiler's record of kernels: the operator's, those of cuBLAS, those of a graph; each begins after the call that
# launched it and belongs to an operator.
# needs: kernels
import collections
import json
import os
import tempfile

import torch
from check import check
from torch.profiler import ProfilerActivity, profile

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
x = torch.randn(64, 256, device="cuda")
static = torch.zeros(10, device="cuda")
model(x).sum().backward()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    static += 1
    static *= 2
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    for _ in range(5):
        model(x).sum().backward()
    graph.replay()
    torch.cuda.synchronize()
path = os.path.join(tempfile.mkdtemp(), "trace.json")
seen.export_chrome_trace(path)
with open(path, encoding="utf-8") as file:
    events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
calls = collections.defaultdict(list)
for e in events:
    if e.get("cat") in ("cuda_runtime", "cuda_driver"):
        calls[e["args"]["correlation"]].append(e)
kernels = [e for e in events if e.get("cat") == "kernel"]
names = " ".join(e["name"] for e in kernels)
check(len(kernels) >= 5 * 8, f"{len(kernels)} kernels")
check("gemm" in names or "cutlass" in names or "xmma" in names, f"cuBLAS's: {names[:300]}")
check("elementwise" in names, f"PyTorch's: {names[:300]}")
replayed = [e for e in kernels if e["args"].get("graph id", 0)] or \
    [e for e in kernels if any(c["name"] == "cudaGraphLaunch" for c in calls[e["args"]["correlation"]])]
check(len(replayed) == 2, f"two of the graph: {[e['name'] for e in replayed]}")
for e in kernels:
    launched = calls[e["args"]["correlation"]]
    check(len(launched) == 1, f"{e['name'][:60]}: launched by {[c['name'] for c in launched]}")
    check(e["ts"] >= launched[0]["ts"], f"{e['name'][:60]} began {launched[0]['ts'] - e['ts']} us before its call")
    check(e["dur"] > 0 and e["args"]["grid"][0] > 0, f"{e['name'][:60]}: {e['args']}")
    if launched[0]["name"] != "cudaGraphLaunch":
        check(e["args"].get("External id", 0) > 0, f"{e['name'][:60]} belongs to no operator")
mm = [e for e in seen.key_averages() if e.key == "aten::addmm"][0]
check(mm.device_time_total > 0, "aten::addmm has the time of its kernels")
