# SPDX-License-Identifier: Apache-2.0
"""A model in pieces on the GPUs of the program's workers, and its optimizer.

accelerate splits and moves; autograd has a thread for each GPU on the way back.  Nothing here
computes: what is ours is the count of memory, the names of the workers, and what becomes of a job.
"""
import contextlib
import functools
import json
import os
import sys
import warnings

import accelerate
import safetensors
import torch

from . import checkpoint as checkpoints
from .errors import STATUS_LOST, STATUS_NOT_READY, PeerLost, PeersError, mib
from .verify import Verifier

# Of a weight's bytes, beside the weight: its gradient, and what the optimizer keeps.
STATE = {"SGD": 0, "Adam": 2, "AdamW": 2, "NAdam": 2, "RAdam": 2, "RMSprop": 1, "Adagrad": 1, "Adadelta": 2,
         "Adamax": 2}
STATE_UNKNOWN = 2
HEADROOM = 0.9  # of the free memory: the rest is for activations and libraries
GONE = {STATUS_NOT_READY, STATUS_LOST}  # of a device whose agent is away


def _whole(name, value, least):
    if type(value) is not int or value < least:
        raise PeersError(f"{name} is not a whole number of {least} or more: {value!r}")


class DistributedModel(torch.nn.Module):
    """What a model in pieces can beside what it could: UserNode makes a model's class one of this, too. So
    whatever asks for the model's own class, names, signature or methods (state_dict, generate, a Trainer)
    goes on as it did."""
    job, micro_batches = None, 1

    @staticmethod
    def of(model, job=None, micro_batches=1):
        kind = type(model)
        model.__class__ = type(kind.__name__, (DistributedModel, kind), {"__module__": kind.__module__})
        model.job, model.micro_batches = job, micro_batches
        return model

    def __call__(self, *arguments, **named):
        with self.job.watch() if self.job else contextlib.nullcontext():
            if self.job:
                self.job.draw()
            return super().__call__(*arguments, **named)

    def backward(self, loss, **more):
        with self.job.watch() if self.job else contextlib.nullcontext():
            torch.autograd.backward(loss, **more)

    def step(self, batch, loss, micro_batches=None):
        """Forward and backward of BATCH = (inputs, targets) in so many pieces, whose gradients add up as
        those of the whole would where LOSS is a mean. The loss, as a tensor that has no gradient; the caller
        steps the optimizer. Launches are posts, so one thread keeps all GPUs busy: each piece has streams of
        its own, all forwards come first, and one backward goes through the pieces by autograd's thread of each
        GPU. They want the memory of the whole batch. Who verifies has one piece after the other."""
        inputs, targets = batch
        micro_batches = self.micro_batches if micro_batches is None else micro_batches
        if type(micro_batches) is not int or not 0 < micro_batches <= len(inputs):
            raise PeersError(f"micro_batches is not 1 to {len(inputs)}, the size of the batch: "
                             f"{micro_batches!r}")
        in_turn = micro_batches == 1 or (self.job and self.job.verifies())
        parts, streams = [], _Streams([] if in_turn else self.parameters(), micro_batches)
        for piece, (x, y) in enumerate(zip(inputs.tensor_split(micro_batches), targets.tensor_split(micro_batches))):
            with streams.of(piece):
                parts.append(loss(self(x), y) * (len(x) / len(inputs)))
            if in_turn:
                self.backward(parts[piece])
        if not in_turn:
            self.backward(parts)
        streams.join()
        return sum(part.detach() for part in parts)


@functools.cache
def _stream(device, piece):
    """The same in every step: PyTorch keeps memory for each stream."""
    return torch.cuda.Stream(device)


class _Streams:
    """Of each piece of a batch, one for each GPU that WEIGHTS lie on. They begin behind the current streams, which
    wait for them at join(): what one side has freed is not used by the other too early."""

    def __init__(self, weights, pieces):
        self._devices = sorted({weight.device.index for weight in weights if weight.is_cuda})
        if self._devices and hasattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch"):
            torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)  # they do: each piece has its own
        self._pieces = [[_stream(device, piece) for device in self._devices] for piece in range(pieces)]
        for mine in self._pieces:
            for stream in mine:
                stream.wait_stream(torch.cuda.current_stream(stream.device))

    @contextlib.contextmanager
    def of(self, piece):
        with contextlib.ExitStack() as current:
            if self._devices:
                device = torch.cuda.current_device()
                for stream in self._pieces[piece]:
                    current.enter_context(torch.cuda.stream(stream))
                current.enter_context(torch.cuda.device(device))  # which a stream's context has changed
            yield

    def join(self):
        for mine in self._pieces:
            for stream in mine:
                torch.cuda.current_stream(stream.device).wait_stream(stream)


class DistributedOptimizer:
    """KIND over the model's parameters, whose steps are the job's; a call without them makes it a KIND."""

    def __init__(self, job, model, kind):
        self.job, self._model, self._kind = job, model, kind

    def __call__(self, **arguments):
        kind = self._kind
        self.__class__ = type(kind.__name__, (_Steps, kind), {"__module__": kind.__module__})
        kind.__init__(self, self._model.parameters(), **arguments)
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise PeersError("the optimizer has no arguments yet: call it once, like optimizer(lr=5e-5), "
                         f"before .{name}")


class _Steps:
    def step(self, *arguments, **named):
        with self.job.watch():
            self.job.drain()
            loss = super().step(*arguments, **named)
            self.job.stepped()
            return loss


class UserNode:
    """The user's end: a program that `vcuda-peers run` started, and its one job."""

    def __init__(self):
        try:
            said = json.loads(os.environ["VCUDA_PEERS"])
        except KeyError:
            raise PeersError("this program has no workers: start it with vcuda-peers run NETWORK.yaml -- ..."
                             ) from None
        self.network, self._tell, self._refused = said["network"], said.get("tell"), said.get("refused", {})
        self.workers = [node for node, devices in said["workers"] for _ in range(devices)]  # of each GPU
        self._model = self._optimizer = self._folder = self._loss = self._newest = self._verifier = None
        self._step, self._every, self._disputes = 0, 1, []
        self._hook, sys.excepthook = sys.excepthook, self._ended
        there = torch.cuda.device_count()
        if there != len(self.workers):
            raise PeerLost(f"{self.network} offered {len(self.workers)} GPUs and {there} came")

    def tell(self, **what):
        """To `vcuda-peers run`, where that has started us."""
        if self._tell:
            with open(self._tell, "a") as file:
                file.write(json.dumps(what) + "\n")

    def _lost(self):
        """PeerLost, which names the workers that are there no more; None where all are."""
        gone = {}
        for device, node in enumerate(self.workers):
            try:
                torch.cuda.synchronize(device)
            except torch.AcceleratorError as error:
                if error.error_code in GONE:
                    gone[node] = device
        said = f"{self.network} lost {', '.join(gone)}, with the part of the model there"
        return PeerLost(said) if gone else None

    @contextlib.contextmanager
    def watch(self):
        """What fails within it since a worker is gone is PeerLost."""
        try:
            yield
        except RuntimeError as error:
            lost = self._lost()
            if lost:
                raise lost from error
            raise

    def draw(self):
        """Before a forward: whether a second worker computes a stage of it, too."""
        if self._verifier:
            self._verifier.draw()

    def verifies(self):
        return self._verifier is not None

    def drain(self):
        """What is computed by a second worker is compared now."""
        if self._verifier:
            self._verifier.drain()

    def _dispute(self, first, second, wrong):
        decided = "nobody could decide which is wrong"
        if wrong:
            decided = f"a third worker says that {wrong} is wrong"
        said = f"{first} and {second} differ in a stage of step {self._step}; {decided}"
        self._disputes.append({"step": self._step, "workers": [first, second], "wrong": wrong})
        for worker in [wrong] if wrong else [first, second]:
            self.tell(complaint={"worker": worker, "reason": said})
        warnings.warn(f"{self.network}: {said}", stacklevel=2)

    def _ended(self, kind, error, trace):
        """An exception that nobody caught: what a lost worker did ends the program with PeerLost's status."""
        lost = self._lost() if isinstance(error, RuntimeError) else error
        if not isinstance(lost, PeerLost):
            return self._hook(kind, error, trace)
        print(f"PeerLost: {lost}", file=sys.stderr)
        raise SystemExit(PeerLost.STATUS)

    def _devices(self, workers, memory, free):
        """Of the GPUs those of so many WORKERS, or of those that a list names, until MEMORY is reached."""
        names = list(dict.fromkeys(self.workers))
        if isinstance(workers, int):
            _whole("workers", workers, 1)
            if workers > len(names):
                raise PeersError(f"{workers} workers are wanted, and {self.network} has {', '.join(names)}")
            workers = names[:workers]
        for name in workers or ():
            if name not in names:
                raise PeersError(f"the worker '{name}' is wanted, and {self.network} has {', '.join(names)}")
        devices = [device for device, name in enumerate(self.workers) if workers is None or name in workers]
        if memory is None:
            return devices
        _whole("memory", memory, 1)
        for count in range(1, len(devices) + 1):
            if sum(free[device] for device in devices[:count]) >= memory:
                return devices[:count]
        raise PeersError(f"{mib(memory)} are wanted, and {self._there(devices, free)}")

    def _there(self, devices, free):
        refused = ", ".join(f"{node} ({why})" for node, why in self._refused.items())
        return (f"there is {', '.join(f'{self.workers[device]}: {mib(free[device])}' for device in devices)}"
                f"{f'; refused were {refused}' if refused else ''}")

    def _place(self, model, copies, weights, devices, free):
        """Splits MODEL over DEVICES, COPIES times its bytes in each; PeersError where it does not fit."""
        room = {device: int(free[device] * HEADROOM / copies) for device in devices}
        wanted = sum(p.numel() * p.element_size() for p in model.parameters())
        kept = sorted(getattr(model, "_no_split_modules", None) or []) or None
        # An even share first, so that every worker has a part; else what there is.
        even = accelerate.utils.get_balanced_memory(model, max_memory=dict(room),
                                                    no_split_module_classes=kept)
        for limits in (even, room):
            split = accelerate.infer_auto_device_map(model, max_memory=limits, no_split_module_classes=kept)
            if {"cpu", "disk"} & {str(device) for device in split.values()}:
                continue
            if weights:
                self._fill(model, weights, split)
            return accelerate.dispatch_model(model, split, force_hooks=True)
        raise PeersError(f"the model needs {mib(wanted * copies)} ({copies} times its {mib(wanted)} of "
                         f"weights, and {1 - HEADROOM:.0%} of a GPU kept free), and "
                         f"{self._there(devices, free)}")

    @staticmethod
    def _fill(model, weights, split):
        """Each weight from the safetensors WEIGHTS straight to where it lies."""
        try:
            accelerate.load_checkpoint_in_model(model, os.fspath(weights), device_map=split)
        except (OSError, ValueError, KeyError, safetensors.SafetensorError) as error:
            said = str(error).splitlines()[0] if str(error) else repr(error)
            raise PeersError(f"the weights {weights}: {said}") from None
        missing = [name for name, p in model.named_parameters() if p.is_meta]
        if missing:
            raise PeersError(f"the weights {weights} have no '{missing[0]}'")

    def create_distributed_model(self, model, optimizer=None, *, workers=None, memory=None, training=True,
                                 dtype=None, weights=None, micro_batches=1, checkpoint=None, every=100,
                                 max_retries=None, verify=0, seed=None):
        """(MODEL over the workers' GPUs, OPTIMIZER to be called with its arguments but the parameters; None
        for none). MODEL itself is moved. docs/PEERS.md has a row for each argument."""
        wants = "create_distributed_model wants"
        if isinstance(model, type):
            raise PeersError(f"{wants} a model before its optimizer, not the class {model.__name__}")
        if not isinstance(model, torch.nn.Module) or not any(True for _ in model.parameters()):
            raise PeersError(f"{wants} a model with parameters, not {type(model).__name__}")
        if optimizer and not (isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer)):
            raise PeersError(f"{wants} an optimizer's class, like AdamW, not an object of "
                             f"{type(optimizer).__name__}")
        _whole("micro_batches", micro_batches, 1)
        _whole("every", every, 1)
        if isinstance(verify, bool) or not isinstance(verify, (int, float)) or not 0 <= verify <= 1:
            raise PeersError(f"verify is not a share of 0 to 1: {verify!r}")
        if not weights and any(p.is_meta for p in model.parameters()):
            raise PeersError("the model is on the meta device: weights=FOLDER says what fills it")
        if checkpoint:
            checkpoints.listed(checkpoint)
        if max_retries is not None:
            _whole("max_retries", max_retries, 0)
            self.tell(max_retries=max_retries)
        copies = 1
        if training:
            copies += 1 + (STATE.get(optimizer.__name__, STATE_UNKNOWN) if optimizer else 0)
        with self.watch():
            free = [torch.cuda.mem_get_info(device)[0] for device in range(len(self.workers))]
            mine = {device: self.workers[device] for device in self._devices(workers, memory, free)}
            if verify and len(set(mine.values())) < 2:
                raise PeersError(f"verify wants two workers, and the job has {', '.join(set(mine.values()))}")
            model = self._place(model.to(dtype=dtype) if dtype else model, copies, weights, list(mine), free)
        self._model = DistributedModel.of(model, self, micro_batches)
        self._folder, self._every = checkpoint, every
        self._verifier = Verifier(model, verify, seed, mine, self._dispute) if verify else None
        self._optimizer = optimizer and DistributedOptimizer(self, model, optimizer)
        return self._model, self._optimizer

    def resume(self):
        """Brings model and optimizer, made anew, to the newest checkpoint that is whole. Its step, or 0."""
        if not self._folder:
            raise PeersError("resume wants a model that was made with checkpoint=FOLDER")
        with self.watch():
            self._step, self._newest = checkpoints.read(self._folder, self._model, self._optimizer)
        return self._step

    def stepped(self):
        """The optimizer has made a step."""
        self._step += 1
        if self._folder and self._step % self._every == 0:
            self.save()

    def save(self):
        """Writes a checkpoint."""
        with self.watch():
            self._newest = checkpoints.write(self._folder, self._step, self._model, self._optimizer)

    def report(self, loss):
        """What check_job_status says of the loss."""
        self._loss = float(loss)

    def check_job_status(self):
        """{network, state, step, loss, checkpoint, verified, unverified, disputes, workers}: of each GPU its
        worker, PyTorch's bytes there, and the model's pieces."""
        self.drain()
        pieces, done = getattr(self._model, "hf_device_map", {}), self._verifier
        state = ("disputed" if self._disputes else "running" if self._step else
                 "placed" if self._model else "idle")
        return {"network": self.network, "state": state, "step": self._step, "loss": self._loss,
                "checkpoint": self._newest, "verified": done.checked if done else 0,
                "unverified": done.unchecked if done else 0, "disputes": list(self._disputes), "workers": [
                    {"worker": node, "device": device, "allocated_bytes": torch.cuda.memory_allocated(device),
                     "modules": [name for name, on in pieces.items() if torch.device(on).index == device]}
                    for device, node in enumerate(self.workers)]}
