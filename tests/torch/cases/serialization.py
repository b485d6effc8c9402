# Saving tensors of the device, loading them onto it.
import io

import torch
from check import check, equal

x = torch.rand(100, 100)
file = io.BytesIO()
torch.save({"d": x.cuda(), "h": x}, file)
for where in ("cuda", "cpu"):
    file.seek(0)
    got = torch.load(file, map_location=where, weights_only=True)
    check(got["d"].device.type == where and got["h"].device.type == where, where)
    equal(got["d"].cpu(), x, f"loaded onto {where}")
file.seek(0)
got = torch.load(file, weights_only=True)
check(got["d"].is_cuda and not got["h"].is_cuda, "where they were")
