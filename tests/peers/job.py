# SPDX-License-Identifier: Apache-2.0
"""A job of 12 steps with checkpoints, whose workers die under it.

    job.py FOLDER STEPS PID@STEP ...      FOLDER/final has the weights; PID is killed, once, in that step

What a step adds to a weight is computed on the host: PyTorch's own kernels carry no PTX."""
import hashlib
import os
import signal
import sys
import time

import torch

from vcuda_peers import UserNode

WIDTH, LAYERS, BATCH = 64, 6, 8
folder, steps = sys.argv[1], int(sys.argv[2])
deaths = {int(step): int(pid) for pid, step in (word.split("@") for word in sys.argv[3:])}


class HostSGD(torch.optim.Optimizer):
    """SGD with momentum, whose sums are the host's; the momentum lies beside its weight."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                kept = self.state[weight].get("momentum")
                momentum = weight.grad.cpu() + (0.5 * kept.cpu() if kept is not None else 0)
                self.state[weight]["momentum"] = momentum.to(weight.device)
                weight.copy_(weight.cpu() - group["lr"] * momentum)


torch.manual_seed(7)
layers = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
user = UserNode()
model, optimizer = user.create_distributed_model(layers, HostSGD, checkpoint=os.path.join(folder, "checkpoints"), every=2,
                                                 max_retries=len(deaths))
optimizer(lr=0.25)
begin = user.resume()
print(f"begins at {begin} on {','.join(user.workers)}", flush=True)
for step in range(begin, steps):
    torch.manual_seed(step)
    out = model(torch.randn(BATCH, WIDTH)).cpu()
    loss = (out - torch.randn(BATCH, WIDTH)).square().mean()
    mark = os.path.join(folder, f"killed-at-{step}")
    if step in deaths and not os.path.exists(mark):
        open(mark, "w").close()
        print(f"kills at {time.monotonic()}", flush=True)
        os.kill(deaths[step], signal.SIGKILL)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    user.report(loss=loss)
    if step == begin:
        print(f"steps at {time.monotonic()}", flush=True)
status = user.check_job_status()
assert (status["step"], status["loss"]) == (steps, loss.item()), status
digest = hashlib.sha256()
for weight in model.state_dict().values():
    digest.update(weight.cpu().numpy().tobytes())
print(f"final {digest.hexdigest()}")
