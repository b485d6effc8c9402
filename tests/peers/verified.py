# SPDX-License-Identifier: Apache-2.0
"""A job whose workers are compared, and one of them is wrong.

    verified.py WRONG PASS SHARE      WRONG: a worker's ID or -; PASS: forward or backward

On WRONG's GPU a bit of what each layer there gives is flipped, or of its gradients, whichever copy of the layer runs there."""
import json
import sys
import warnings

import torch

from vcuda_peers import UserNode

WIDTH, LAYERS, STEPS = 32, 6, 8
wrong, which, share = sys.argv[1], sys.argv[2], float(sys.argv[3])
warnings.simplefilter("always")
user = UserNode()
bad = user.workers.index(wrong) if wrong in user.workers else None


def flipped(tensor):
    bits = tensor.detach().cpu()
    bits.view(torch.int32)[0, 0] ^= 1
    return bits.to(tensor.device)


class Spoilt(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return flipped(x) if which == "forward" else x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return flipped(grad) if which == "backward" else grad


class Layer(torch.nn.Linear):
    def forward(self, x):
        out = super().forward(x)
        return Spoilt.apply(out) if out.device.index == bad else out


class HostSGD(torch.optim.SGD):
    @torch.no_grad()
    def step(self):
        for weight in self.param_groups[0]["params"]:
            weight.copy_(weight.cpu() - 0.1 * weight.grad.cpu())


torch.manual_seed(7)
layers = torch.nn.Sequential(*(Layer(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
model, optimizer = user.create_distributed_model(layers, HostSGD, verify=share, seed=3)
optimizer(lr=0.1)
for step in range(STEPS):
    loss = model.step((torch.randn(4, WIDTH), torch.randn(4, WIDTH)), lambda out, want: (out.cpu() - want).square().mean())
    optimizer.step()
    optimizer.zero_grad()
    user.report(loss=loss)
with torch.no_grad():
    model(torch.randn(4, WIDTH))
assert all(type(p) is torch.nn.Parameter for p in model.parameters()) and len(list(model.parameters())) == LAYERS
print(json.dumps(user.check_job_status()))
