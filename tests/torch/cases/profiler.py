# The profiler: ranges and operators of the CPU's side, and what was copied to and from the GPU, with the operator that
# asked for it.
import torch
from check import check
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

for turn in range(2):  # a second profile finds what the first one found
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        d = x.cuda()
        y = torch.mm(d, d).cpu()
    check((y - torch.mm(x, x)).abs().max() < 1e-3, "the product is right while it is profiled")
    found = {event.key: event for event in seen.key_averages()}
    for name in ("aten::mm", "cudaMemcpyAsync", "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"):
        check(name in found, f"{name} is not in {sorted(found)}")
    copies = [event for event in seen.events() if event.name.startswith("Memcpy")]
    check(len(copies) == 2, f"two copies: {[c.name for c in copies]}")
    for copy in copies:
        check(copy.time_range.end > copy.time_range.start, f"{copy.name} took some time")
    total = "self_device_time_total" if hasattr(copies[0], "self_device_time_total") else "self_cuda_time_total"
    check(getattr(found["Memcpy HtoD (Pageable -> Device)"], total) > 0, "it is the device's time")
    asked = [event for event in seen.events() if event.name == "aten::copy_" and event.kernels]
    check(len(asked) == 2, f"two operators copied: {[(e.name, e.kernels) for e in seen.events() if e.kernels]}")
