# SPDX-License-Identifier: Apache-2.0
"""A share of the micro-batches has one stage computed by a second worker, too, forward and backward.

A stage is a piece of the model's hf_device_map. In a micro-batch that is drawn it becomes one node of
autograd's graph, whose ins and outs, and their gradients, are copied to the host; the second worker computes
before the weights change.
"""
import contextlib
import copy
import ctypes
import io
import pickle
import random

import accelerate
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

# By a number's bits, of the largest one: between unlike GPUs or libraries.
TOLERANCE = {16: 2e-2, 32: 2e-3, 64: 1e-9}
CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict)  # are never called: their children are stages
# Of what cannot be computed twice.
UNCOPIED = (RuntimeError, pickle.PicklingError, TypeError, AttributeError, EOFError)


def _kind(device):
    """Equal for two GPUs that give the same bits."""
    version = ctypes.c_int(-1)
    with torch.cuda.device(device):
        blas = ctypes.CDLL(f"libcublas.so.{torch.version.cuda.split('.')[0]}")
        blas.cublasGetVersion_v2(ctypes.c_void_p(torch.cuda.current_blas_handle()), ctypes.byref(version))
    return torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device), version.value


def _same(one, other, exact):
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if exact or not one.is_floating_point():
        return torch.equal(*(side.contiguous().view(-1).view(torch.uint8) for side in (one, other)))
    most = other.double().nan_to_num(0, 0, 0).abs().max().item() if other.numel() else 0
    return torch.allclose(one.double(), other.double(), rtol=0, equal_nan=True,
                          atol=most * TOLERANCE.get(torch.finfo(one.dtype).bits, 0.25))


def _learns(leaf):
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _host(leaves):
    return [leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else None for leaf in leaves]


class _Call:
    """FORWARD on LEAVES, in a graph of its own."""

    def __init__(self, forward, tree, leaves, weights, graph):
        self.of = [leaf.detach().requires_grad_() if _learns(leaf) else leaf for leaf in leaves]
        # Not to be kept by who checkpoints around us; and a stage may write to what it is given.
        as_it_is = torch.autograd.graph.saved_tensors_hooks(lambda kept: kept, lambda kept: kept)
        with torch.set_grad_enabled(graph), as_it_is:
            given = [leaf.clone() if _learns(leaf) else leaf for leaf in self.of]
            arguments, named = tree_unflatten(given, tree)
            self.out, self.tree = tree_flatten(forward(*arguments, **named))
        self.of += weights

    def back(self, grads):
        """The gradients of leaves and weights, None where there is none."""
        roots = [(leaf, grad.to(leaf.device)) for leaf, grad in zip(self.out, grads) if grad is not None]
        of = [leaf for leaf in self.of if _learns(leaf)]
        came = iter(torch.autograd.grad([leaf for leaf, _ in roots], of, [grad for _, grad in roots],
                                        allow_unused=True, retain_graph=True))
        return [next(came) if _learns(leaf) else None for leaf in self.of]


class _Node(torch.autograd.Function):
    @staticmethod
    def forward(ctx, record, tree, graph, count, *given):
        call = _Call(record.forward, tree, given[:count], record.weights, graph)
        ctx.set_materialize_grads(False)
        ctx.call, ctx.record, record.tree = call, None, call.tree
        if record.out is None:
            ctx.record, record.out = record, _host(call.out)
        out = tuple(leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in call.out)
        ctx.mark_non_differentiable(*(leaf for leaf, was in zip(out, call.out)
                                      if isinstance(leaf, torch.Tensor) and not _learns(was)))
        return out

    @staticmethod
    def backward(ctx, *grads):
        back = ctx.call.back(grads)
        if ctx.record:
            ctx.record.grads, ctx.record.back = _host(grads), _host(back)
        return None, None, None, None, *back


class _Record:
    """In place of STAGE's forward: what its worker says in the first call."""

    def __init__(self, stage, device):
        self.stage, self.device = stage, device
        self.forward, self.own = stage.forward, "forward" in stage.__dict__
        self.weights = [p for p in stage.parameters() if p.requires_grad]
        self.given = self.out = self.grads = None
        self.back = []
        stage.forward = self

    def __call__(self, *arguments, **named):
        if self.given is None:
            self.given, kept = b"", io.BytesIO()
            with contextlib.suppress(*UNCOPIED):
                torch.save((arguments, named), kept)  # the caches among them are copied, too
                self.given, self.random = kept.getvalue(), torch.cuda.get_rng_state(self.device)
            self.autocast = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        leaves, tree = tree_flatten((arguments, named))
        out = _Node.apply(self, tree, torch.is_grad_enabled(), len(leaves), *leaves, *self.weights)
        return tree_unflatten(out, self.tree)

    def close(self):
        self.stage.forward = self.forward
        if not self.own:
            del self.stage.forward

    def again(self, device, job):
        """What came out, and the gradients, when DEVICE computes."""
        memo = {id(job): None} | {id(b): b.detach().to(device, copy=True) for b in self.stage.buffers()}
        memo |= {id(p): torch.nn.Parameter(p.detach().to(device, copy=True), p.requires_grad)
                 for p in self.stage.parameters()}
        twin = accelerate.hooks.remove_hook_from_module(copy.deepcopy(self.stage, memo), recurse=True)
        given = torch.load(io.BytesIO(self.given), map_location=f"cuda:{device}", weights_only=False)
        leaves, tree = tree_flatten(given)
        with torch.random.fork_rng([device]), torch.autocast("cuda", *self.autocast):
            torch.cuda.set_rng_state(self.random, device)
            call = _Call(twin, tree, leaves, [memo[id(p)] for p in self.weights], self.grads is not None)
        return _host(call.out) + (_host(call.back(self.grads)) if self.grads else [])


class Verifier:
    """Draws micro-batches and stages by SEED. A difference goes to DISPUTE(one worker, other, who is wrong or
    None)."""

    def __init__(self, model, share, seed, workers, dispute):
        """WORKERS: {device: its worker} of those that the job may have."""
        self.share, self.random, self.workers = share, random.Random(seed), workers
        self.dispute, self.job = dispute, model.job
        self.record, self.checked, self.unchecked, self.kinds = None, 0, 0, {}
        modules, self.stages = dict(model.named_modules()), []
        left = [(modules[name], device) for name, device in model.hf_device_map.items() if name in modules]
        for stage, device in left:
            if isinstance(stage, CONTAINERS):
                left += [(child, device) for child in stage.children()]
            else:
                self.stages.append((stage, device))

    def draw(self):
        """Before a forward of the model."""
        if self.random.random() < self.share:
            self.drain()
            self.record = _Record(*self.random.choice(self.stages))

    def _agree(self, one, other, devices):
        self.kinds |= {device: _kind(device) for device in devices if device not in self.kinds}
        exact = self.kinds[devices[0]] == self.kinds[devices[1]]
        return len(one) == len(other) and all(_same(a, b, exact) for a, b in zip(one, other) if a is not None)

    def drain(self):
        """Compares what is recorded: before the weights change."""
        record, self.record = self.record, None
        if record is None:
            return
        record.close()
        first, name = record.device, self.workers.get
        others = list({name(device): device for device in self.workers
                       if name(device) != name(first)}.values())
        second, *third = self.random.sample(others, len(others))[:2]
        mine, theirs = (record.out or []) + record.back, self._again(record, second)
        if theirs is None:
            self.unchecked += 1
            return
        self.checked += 1
        if self._agree(mine, theirs, (first, second)):
            return
        wrong = None
        for judge in third:
            said = self._again(record, judge) or []
            right = self._agree(mine, said, (first, judge)), self._agree(theirs, said, (second, judge))
            wrong = {(True, False): name(second), (False, True): name(first)}.get(right)
        self.dispute(name(first), name(second), wrong)

    def _again(self, record, device):
        """None where it cannot be."""
        if record.out is not None:
            with contextlib.suppress(*UNCOPIED):
                return record.again(device, self.job)
        return None
