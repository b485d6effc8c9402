# The profiler: the CPU's side always; the device's side needs CUPTI, which is not served: a message,
# no crash. PyTorch's own message came before 2.15, which is silent.
import torch
from check import check, equal, python
from torch.profiler import ProfilerActivity, profile, record_function

x = torch.rand(64, 64)
d = x.cuda()
with profile(activities=[ProfilerActivity.CPU]) as seen:
    with record_function("mine"):
        torch.mm(d, d).cpu()
names = {event.key for event in seen.key_averages()}
check({"mine", "aten::mm"} <= names, f"names {sorted(names)[:10]}")
torch.cuda.nvtx.range_push("range")
torch.cuda.nvtx.mark("mark")
torch.cuda.nvtx.range_pop()

# In a process of its own, since what CUPTI prints is its own.
got = python("""
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.rand(64, 64)
d = x.cuda()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    y = torch.mm(d, d).cpu()
assert (y - torch.mm(x, x)).abs().max() < 1e-3
assert "aten::mm" in {e.key for e in seen.key_averages()}
print(seen.key_averages().table(row_limit=3)[:20])
""")
check(got.returncode == 0, f"with CUDA activities: status {got.returncode}: {got.stderr[-400:]}")
check("CUPTI" in got.stdout + got.stderr, f"it says so: {got.stderr[-400:]}")
said = [line for line in got.stderr.splitlines() if line.startswith("vcuda: a profiler uses CUPTI")]
check(len(said) == 1, f"vcuda says so once: {got.stderr[-400:]}")
