# arm: alone
# What torch.cuda.memory tells, and that the allocator's memory comes back.
import gc

import torch
from check import check

MIB = 1 << 20
torch.cuda.init()
free_before, _ = torch.cuda.mem_get_info()
check(torch.cuda.memory_allocated() == 0, "nothing is allocated at first")
x = torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
check(torch.cuda.memory_allocated() == 8 * MIB, f"allocated {torch.cuda.memory_allocated()}")
check(torch.cuda.memory_reserved() >= 8 * MIB, "reserved")
y = torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
free, total = torch.cuda.mem_get_info()
check(free <= free_before - 32 * MIB + 2 * MIB, f"free went from {free_before} to {free}")
del y
check(torch.cuda.max_memory_allocated() == 32 * MIB, "the most that was allocated")
torch.cuda.reset_peak_memory_stats()
check(torch.cuda.max_memory_allocated() == 8 * MIB, "the most since then")
stats = torch.cuda.memory_stats()
check(stats["allocation.all.allocated"] == 2 and stats["num_ooms"] == 0, "statistics")
check("allocated" in torch.cuda.memory_summary().lower(), "summary")
check(any(s["total_size"] >= 8 * MIB for s in torch.cuda.memory_snapshot()), "snapshot")
del x
gc.collect()
torch.cuda.empty_cache()
check(torch.cuda.memory_reserved() == 0, "all given back")
again, _ = torch.cuda.mem_get_info()
for _ in range(200):  # the allocator returns and asks: no leak
    torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
last, _ = torch.cuda.mem_get_info()
# What is free on a GPU is not this program's alone: a worker that the agent keeps warm takes half a GiB,
# kernels that libraries load and page tables some 20 MiB.  200 rounds that leak would take 3 GiB.
check(last >= again - 1024 * MIB, f"{last} bytes free after 200 rounds, {again} before")
