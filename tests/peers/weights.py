# SPDX-License-Identifier: Apache-2.0
"""A model on the meta device is filled where it lies, from a folder of two safetensors files; what is tied stays together."""
import json
import os
import sys

import safetensors.torch
import torch

from vcuda_peers import UserNode

WIDTH, LAYERS = 64, 6


def tied():
    made = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    made[-1].weight = made[0].weight
    return made


def whole(*shape):
    """So small that each order of adding gives the same bits."""
    return torch.randint(-1, 2, shape).float()


folder = os.path.join(sys.argv[1], "weights")
os.makedirs(folder)
native = tied()
with torch.no_grad():
    for weight in native.parameters():
        weight.copy_(whole(WIDTH, WIDTH))
state = {name: value.detach() for name, value in native.state_dict().items() if name != f"{LAYERS - 1}.weight"}
names = sorted(state)
for number, part in enumerate((names[:2], names[2:]), 1):
    safetensors.torch.save_file({name: state[name] for name in part}, f"{folder}/model-{number}-of-2.safetensors")
with open(folder + "/model.safetensors.index.json", "w") as file:
    json.dump({"weight_map": {name: f"model-{1 + (name not in names[:2])}-of-2.safetensors" for name in names}}, file)

with torch.device("meta"):
    empty = tied()
user = UserNode()
model, _ = user.create_distributed_model(empty, training=False, weights=folder)
assert isinstance(model, torch.nn.Sequential) and model[0].weight is model[-1].weight
assert len({str(weight.device) for weight in model.parameters()}) == len(user.workers) == 2, model.hf_device_map
inputs = whole(4, WIDTH)
with torch.no_grad():
    assert torch.equal(model(inputs).cpu(), native(inputs))
print("right")
