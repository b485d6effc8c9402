# SPDX-License-Identifier: Apache-2.0
"""What a user runs: one step over the workers against the same on the CPU.  Weights and data are small whole numbers,
so that every order of adding gives the same bits; PyTorch's own kernels carry no PTX: the loss is the host's.

    train.py WIDTH LAYERS BATCH [SGD] [pieces]     more than 4 layers: each weight has one number in a row, or the sums were not whole"""
import copy
import json
import sys

import torch
from torch.optim import SGD, AdamW
from torch.utils.checkpoint import checkpoint

from vcuda_peers import DistributedModel, PeersError, UserNode

WIDTH, LAYERS, BATCH = (int(word) for word in sys.argv[1:4])
DENSE, KIND = LAYERS <= 4, SGD if "SGD" in sys.argv else AdamW


def whole(*shape):
    return torch.randint(-1, 2, shape).float()


def loss_of(out, target):
    return (out.cpu() * target).sum() / 8


torch.manual_seed(7)
native = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
with torch.no_grad():
    for weight in native.parameters():
        weight.copy_(whole(WIDTH, WIDTH) if DENSE else torch.eye(WIDTH)[torch.randperm(WIDTH)])
inputs, targets = whole(BATCH, WIDTH), whole(BATCH, WIDTH)
user = UserNode()
try:
    model, optimizer = user.create_distributed_model(copy.deepcopy(native), KIND)
except PeersError as error:
    sys.exit(f"refused: {error}")
try:
    optimizer.step()
except PeersError as error:
    assert "optimizer(lr=5e-5)" in str(error), error
else:
    sys.exit("an optimizer without arguments stepped")
optimizer(lr=5e-5)
assert [id(p) for group in optimizer.param_groups for p in group["params"]] == [id(p) for p in model.parameters()]

loss = loss_of(native(inputs), targets)
loss.backward()
wanted = [weight.grad for weight in native.parameters()]


def mean(out, target):
    """Of one sample's loss: what step() keeps, however many pieces."""
    return loss_of(out, target) * (BATCH / len(target))


def same(of, remote):
    assert remote.item() == loss.item(), (remote.item(), loss.item())
    for want, weight in zip(wanted, of.parameters()):
        assert torch.equal(weight.grad.cpu(), want), "gradients"


remote = loss_of(model(inputs), targets)
model.backward(remote)
assert {weight.grad.device.type for weight in model.parameters()} == {"cuda"}
same(model, remote)
model.zero_grad()
same(model, model.step((inputs, targets), mean))
here = DistributedModel.of(copy.deepcopy(native))  # to add gradients of pieces up takes a kernel: on the CPU
here.zero_grad()
same(here, here.step((inputs, targets), mean, micro_batches=4))
if "pieces" in sys.argv:  # on the GPUs, each on its own streams; what is the inputs' needs no sums there
    model.requires_grad_(False)
    wanted_here, mine = (inputs.clone().requires_grad_() for _ in range(2))
    grad, = torch.autograd.grad(loss_of(native(wanted_here), targets), wanted_here)
    assert model.step((mine, targets), mean, micro_batches=4).item() == loss.item()
    assert torch.equal(mine.grad, grad), "the gradients of the inputs, in pieces"
    model.requires_grad_(True)
try:
    model.step((inputs, targets), mean, micro_batches=0)
except PeersError as error:
    assert f"1 to {BATCH}" in str(error), error
else:
    sys.exit("micro_batches=0 went through")

model.zero_grad()
remote = loss_of(checkpoint(model, inputs, use_reentrant=False), targets)
model.backward(remote)
same(model, remote)

if not DENSE:
    print("status " + json.dumps(user.check_job_status()))
    sys.exit(print("right"))
with torch.no_grad():  # the gradients' signs, on the host: the weights stay small whole numbers
    for mine, there in zip(native.parameters(), model.parameters()):
        mine -= mine.grad.sign()
        there.copy_(there.cpu() - there.grad.cpu().sign())
assert torch.equal(model(inputs).cpu(), native(inputs)), "the output after a step"
assert list(model.state_dict()) == list(native.state_dict())
print("status " + json.dumps(user.check_job_status()))
print("right")
