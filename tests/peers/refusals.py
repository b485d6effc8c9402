# SPDX-License-Identifier: Apache-2.0
"""Each bad argument has one sentence.  Needs two workers of 64 MiB, of the network lab; argv[1] is a folder."""
import os
import sys

import safetensors.torch
import torch
from torch.optim import SGD, AdamW

from vcuda_peers import PeersError, UserNode

folder = sys.argv[1]
user = UserNode()


def layers(width=8, count=2):
    return torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(count)))


def refused(sentence, *arguments, then=None, **named):
    try:
        made = user.create_distributed_model(*arguments, **named)
        assert then, f"went through: {sentence}"
        then(*made)
    except PeersError as error:
        assert sentence in str(error) and "\n" not in str(error), f"'{error}' and not '{sentence}'"
    else:
        raise AssertionError(f"went through: {sentence}")


refused("a model before its optimizer, not the class AdamW", AdamW, layers())
refused("a model with parameters, not Sequential", torch.nn.Sequential(), AdamW)
refused("an optimizer's class, like AdamW, not an object of AdamW", layers(), AdamW(layers().parameters()))
refused("every is not a whole number of 1 or more: 0", layers(), SGD, checkpoint=folder, every=0)
refused("micro_batches is not a whole number of 1 or more: True", layers(), SGD, micro_batches=True)
refused("max_retries is not a whole number of 0 or more: -1", layers(), SGD, max_retries=-1)
refused("3 workers are wanted, and lab has 127.0.0.2, 127.0.0.3", layers(), SGD, workers=3)
refused("the worker 'eve' is wanted", layers(), SGD, workers=["eve"])
refused("1024.0 MiB are wanted, and there is 127.0.0.2: ", layers(), SGD, memory=1 << 30)
refused("verify is not a share of 0 to 1: 2", layers(), SGD, verify=2)
refused("verify wants two workers, and the job has 127.0.0.2", layers(), SGD, verify=0.5, workers=1)
refused("resume wants a model that was made with checkpoint=FOLDER", layers(), SGD, then=lambda *_: user.resume())

file = os.path.join(folder, "file")
open(file, "w").close()
refused(f"the checkpoints' folder {file}/x: Not a directory", layers(), SGD, checkpoint=file + "/x")

# Checkpoints: of another model, with another optimizer, broken.
kept = os.path.join(folder, "kept")


def write(model, optimizer):
    optimizer(lr=0.5)
    user.save()


def resume(model, optimizer):
    optimizer(lr=0.5)
    user.resume()


write(*user.create_distributed_model(layers(), SGD, checkpoint=kept))
path = os.path.join(kept, os.listdir(kept)[0])
refused("is a checkpoint of another model: '0.weight' is torch.float32 of 8 × 8, and here torch.float32 of 4 × 4", layers(4), SGD,
        checkpoint=kept, then=resume)
refused("is a checkpoint of another model: '2.weight' is not there, and here", layers(8, 3), SGD, checkpoint=kept, then=resume)
refused("is a checkpoint with the optimizer SGD, and here is AdamW", layers(), AdamW, checkpoint=kept, then=resume)
with open(path, "r+b") as out:
    out.seek(os.path.getsize(path) // 2)
    out.write(b"\xff\x00\xff\x00")
refused(f"none of the checkpoints in {kept} is whole: {os.path.basename(path)}", layers(), SGD, checkpoint=kept, then=resume)

# Of two workers one.
model, _ = user.create_distributed_model(layers(), SGD, workers=["127.0.0.3"], micro_batches=2)
assert {str(weight.device) for weight in model.parameters()} == {"cuda:1"} and model.micro_batches == 2
model, _ = user.create_distributed_model(layers(), SGD, memory=1 << 20, dtype=torch.float64)
assert {(weight.device, weight.dtype) for weight in model.parameters()} == {(torch.device("cuda:0"), torch.float64)}

# The meta device.
with torch.device("meta"):
    empty = layers()
refused("the model is on the meta device: weights=FOLDER says what fills it", empty, SGD)
refused("the weights /nowhere: ", empty, SGD, weights="/nowhere")
some = os.path.join(folder, "some.safetensors")
safetensors.torch.save_file({"0.weight": torch.ones(8, 8)}, some)
refused(f"the weights {some} have no '1.weight'", empty, SGD, weights=some)
with open(some, "r+b") as out:
    out.truncate(20)
refused(f"the weights {some}: ", empty, SGD, weights=some)
with torch.device("meta"):
    large = layers(1024, 40)
refused("the model needs 320.0 MiB (2 times its 160.0 MiB of weights, and 10% of a GPU kept free), and there is 127.0.0.2: ",
        large, SGD, weights=some)

assert user.check_job_status()["state"] == "placed"
print("right")
