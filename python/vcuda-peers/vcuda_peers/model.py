# SPDX-License-Identifier: Apache-2.0
"""A model in pieces on the GPUs of the program's workers, and its optimizer.

accelerate splits and moves; autograd has a thread for each GPU on the way back.  Nothing here
computes: what is ours is the count of memory and the names of the workers.
"""
import json
import os

import accelerate
import torch

from .errors import PeersError

# Of a weight's bytes, beside the weight: its gradient, and what the optimizer keeps.
STATE = {"SGD": 0, "Adam": 2, "AdamW": 2, "NAdam": 2, "RAdam": 2, "RMSprop": 1, "Adagrad": 1, "Adadelta": 2, "Adamax": 2}
STATE_UNKNOWN = 2
HEADROOM = 0.9  # of the free memory: the rest is for activations and libraries


def _mib(count):
    return f"{count / 2**20:.1f} MiB"


def _place(model, copies, workers):
    """Splits MODEL over all GPUs, COPIES times its bytes in each; PeersError where it does not fit."""
    free = [torch.cuda.mem_get_info(device)[0] for device in range(torch.cuda.device_count())]
    room = {device: int(count * HEADROOM / copies) for device, count in enumerate(free)}
    wanted = sum(p.numel() * p.element_size() for p in model.parameters())
    kept = sorted(getattr(model, "_no_split_modules", None) or []) or None
    # An even share first, so that every worker has a part; else what there is.
    even = accelerate.utils.get_balanced_memory(model, max_memory=dict(room), no_split_module_classes=kept)
    for limits in (even, room):
        split = accelerate.infer_auto_device_map(model, max_memory=limits, no_split_module_classes=kept)
        if not {"cpu", "disk"} & {str(device) for device in split.values()}:
            return accelerate.dispatch_model(model, split, force_hooks=True)
    there = ", ".join(f"{name}: {_mib(count)}" for name, count in zip(workers, free))
    raise PeersError(f"the model needs {_mib(wanted * copies)} ({copies} times its {_mib(wanted)} of weights, and "
                     f"{1 - HEADROOM:.0%} of a GPU kept free), and there is {there}")


class DistributedModel(torch.nn.Module):
    """MODEL in pieces; what is asked of it is asked of MODEL."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def forward(self, *arguments, **named):
        return self.model(*arguments, **named)

    def backward(self, loss, **more):
        loss.backward(**more)

    def state_dict(self, *arguments, **named):
        """With MODEL's own names, so that it loads without us."""
        return self.model.state_dict(*arguments, **named)

    def load_state_dict(self, *arguments, **named):
        return self.model.load_state_dict(*arguments, **named)

    def step(self, batch, loss, micro_batches=1):
        """Forward and backward of BATCH = (inputs, targets) in so many pieces, whose gradients add up as those of the
        whole would where LOSS is a mean. The loss, as a tensor that has no gradient. Launches are posts, so one thread
        keeps all GPUs busy; the caller steps the optimizer."""
        inputs, targets = batch
        if not isinstance(micro_batches, int) or not 0 < micro_batches <= len(inputs):
            raise PeersError(f"micro_batches is not 1 to {len(inputs)}, the size of the batch: {micro_batches!r}")
        total = 0
        for x, y in zip(inputs.tensor_split(micro_batches), targets.tensor_split(micro_batches)):
            part = loss(self(x), y) * (len(x) / len(inputs))
            part.backward()
            total = total + part.detach()
        return total


class DistributedOptimizer:
    """KIND over the model's parameters; made by a call without them, then it is KIND's."""

    def __init__(self, model, kind):
        self._model, self._kind, self._made = model, kind, None

    def __call__(self, **arguments):
        self._made = self._kind(self._model.parameters(), **arguments)
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._made is None:
            raise PeersError(f"the optimizer has no arguments yet: call it once, like optimizer(lr=5e-5), before .{name}")
        return getattr(self._made, name)


class UserNode:
    """The user's end: a program that `vcuda-peers run` started."""

    def __init__(self):
        try:
            said = json.loads(os.environ["VCUDA_PEERS"])
        except KeyError:
            raise PeersError("this program has no workers: start it with vcuda-peers run NETWORK.yaml -- ...") from None
        self.network = said["network"]
        self.workers = [node for node, devices in said["workers"] for _ in range(devices)]  # of each GPU
        there = torch.cuda.device_count()
        if there != len(self.workers):
            raise PeersError(f"{self.network} offered {len(self.workers)} GPUs and {there} came")
        self._model = None

    def create_distributed_model(self, model, optimizer=None, *, training=True, dtype=None):
        """(MODEL over the workers' GPUs, OPTIMIZER to be called with its arguments but the parameters; None for none).
        MODEL itself is moved. TRAINING counts memory for gradients and the optimizer's state."""
        if isinstance(model, type):
            raise PeersError(f"create_distributed_model wants a model before its optimizer, not the class {model.__name__}")
        if not isinstance(model, torch.nn.Module) or not any(True for _ in model.parameters()):
            raise PeersError(f"create_distributed_model wants a model with parameters, not {type(model).__name__}")
        copies = 1
        if training:
            copies += 1 + (STATE.get(optimizer.__name__, STATE_UNKNOWN) if optimizer else 0)
        self._model = DistributedModel(_place(model.to(dtype=dtype) if dtype else model, copies, self.workers))
        return self._model, optimizer and DistributedOptimizer(self._model, optimizer)

    def check_job_status(self):
        """{network, state, workers}: of each GPU its worker, bytes that PyTorch has there, and the model's pieces."""
        pieces = getattr(self._model.model, "hf_device_map", {}) if self._model else {}
        return {"network": self.network, "state": "placed" if self._model else "idle", "workers": [
            {"worker": node, "device": device, "allocated_bytes": torch.cuda.memory_allocated(device),
             "modules": [name for name, on in pieces.items() if torch.device(on).index == device]}
            for device, node in enumerate(self.workers)]}
