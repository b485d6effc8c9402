# What PyTorch tells about the device.
import torch
from check import check

p = torch.cuda.get_device_properties(0)
check(p.name and p.name == torch.cuda.get_device_name(0), f"name '{p.name}'")
check((p.major, p.minor) == torch.cuda.get_device_capability(0), "capability")
check(p.major >= 7, f"compute capability {p.major}.{p.minor}")
check(p.multi_processor_count > 0, "multiprocessors")
check(p.total_memory >= 64 << 20, f"{p.total_memory} bytes")
free, total = torch.cuda.mem_get_info()
check(total == p.total_memory and 0 < free <= total, f"{free} of {total} bytes are free")
check(torch.cuda.current_device() == 0, "current device")
with torch.cuda.device(0):
    check(torch.cuda.current_device() == 0, "current device inside")
check(torch.cuda.get_arch_list(), "architectures of the build")
check("cuda:0" == str(torch.empty(1, device="cuda").device), "device of a tensor")
