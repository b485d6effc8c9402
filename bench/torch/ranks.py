#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over NCCL, a process for each of two GPUs: BERT-base trained by DistributedDataParallel and
all-reduces of 256 MiB, natively, through one agent that has both GPUs, and through two agents with one each.

    bench/torch/ranks.py [--dist .dist] [--pairs 7] [--budget SECONDS] [--small] [--json FILE]
                         [--driver nvidia|software]

Every arm's processes live through the run and measure in turn; a row has medians, and those of the
PAIRS ratios to the first arm beside.  Losses have to be the native ones, bit for bit.  NVLS is off (NCCL_NVLS_ENABLE=0) in all arms, since
it cannot be had everywhere.  --driver software only shows that it runs: its GPU has no machine code of PyTorch's,
so that it has products by hand in place of BERT.
"""
import argparse
import contextlib
import faulthandler
import json
import os
import socket
import statistics
import sys
import time

import stack
from ratios import in_turn, interval

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 2
QUIET = "NCCL_NVLS_ENABLE=0"
NCCL = ("--warm", "3", "--set", "nccl.allowed=true", "--set", f"nccl.environment={QUIET}")


##### A rank #####

def trained(small):
    """step(): one of training, its loss on the GPU."""
    import torch
    from torch.nn.parallel import DistributedDataParallel
    from transformers import BertConfig, BertForMaskedLM
    torch.manual_seed(5)
    size = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2} if small else {}
    model = BertForMaskedLM(BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, **size)).cuda()
    model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(11 + torch.distributed.get_rank())
    words = torch.randint(0, 30000, (16, 128)).cuda()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def multiplied():
    """The same of products, which every GPU has."""
    import torch
    w = torch.ones(64, 64).cuda()
    x = torch.full((64, 64), 1 / 64 / (1 + torch.distributed.get_rank())).cuda()

    def step():
        slope = torch.mm(x, w)
        torch.distributed.all_reduce(slope)
        w.copy_(slope)
        return slope[0, 0]
    return step


def rank_main(words):
    """Measures once for each line of standard input."""
    faulthandler.enable()
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(int(os.environ["LOCAL_GPU"]))
    dist.init_process_group("nccl")
    step = multiplied() if words.driver == "software" else trained(words.small)
    mib = 1 if words.small else 256
    flat = torch.zeros(mib << 18).cuda()
    rounds = 2 if words.small else 10
    gate = torch.zeros(1).cuda()

    def together():
        """Nobody begins before all have come. Not barrier(), whose tensor is filled by a kernel."""
        dist.all_reduce(gate)
        torch.cuda.synchronize()
    for line in sys.stdin:
        if not line.strip():
            break
        losses = []
        together()
        start = time.perf_counter()
        for _ in range(rounds):
            losses.append(step())
        torch.cuda.synchronize()
        trained_s = (time.perf_counter() - start) / rounds
        together()
        start = time.perf_counter()
        for _ in range(rounds):
            dist.all_reduce(flat)
        torch.cuda.synchronize()
        reduced_s = (time.perf_counter() - start) / rounds
        print(json.dumps({"step_ms": 1e3 * trained_s, "reduce_gbps": flat.nbytes / reduced_s / 1e9,
                          "losses": [loss.item().hex() for loss in losses]}), flush=True)
    dist.destroy_process_group()


##### The arms #####

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Arm:
    """RANKS processes with these environments."""

    def __init__(self, name, environments, words, mask, log):
        self.name, port = name, str(free_port())
        command = [sys.executable, os.path.abspath(__file__), "--rank", "--driver", words.driver,
                   *(["--small"] if words.small else [])]
        together = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS)}
        self.ranks = [stack.Arm(f"{name}-{rank}", command, dict(env, **together, RANK=str(rank)), mask, log)
                      for rank, env in enumerate(environments)]

    def measure(self, seconds):
        for rank in self.ranks:
            rank.ask()
        answers = [rank.answer(seconds) for rank in self.ranks]
        return {"step_ms": max(one["step_ms"] for one in answers),
                "reduce_gbps": min(one["reduce_gbps"] for one in answers),
                "losses": [one["losses"] for one in answers]}

    def stop(self):
        for rank in self.ranks:
            rank.end()  # of all, before one is waited for
        for rank in self.ranks:
            rank.stop()


def report(samples, file):
    first = samples["native"] if "native" in samples else next(iter(samples.values()))
    print(f"{'':14}{'step, ms':>10}{'of the first':>25}{'reduce, GB/s':>14}{'of the first':>25}  losses")
    for name, got in samples.items():
        steps = [one["step_ms"] / beside["step_ms"] for one, beside in zip(got, first)]
        rates = [one["reduce_gbps"] / beside["reduce_gbps"] for one, beside in zip(got, first)]
        same = all(one["losses"] == beside["losses"] for one, beside in zip(got, first))
        ranges = ["{:.3f} ({:.3f} to {:.3f})".format(statistics.median(some), *interval(some)) for some in (steps, rates)]
        print(f"{name:14}{statistics.median(one['step_ms'] for one in got):10.2f}{ranges[0]:>25}"
              f"{statistics.median(one['reduce_gbps'] for one in got):14.2f}{ranges[1]:>25}  "
              f"{'the same' if same else 'DIFFERENT'}")
    if file:
        with open(file, "w") as out:
            json.dump(samples, out, indent=1)
    return all(one["losses"] == beside["losses"] for got in samples.values() for one, beside in zip(got, first))


def compare(words):
    began = time.monotonic()
    nvidia = words.driver == "nvidia"
    local = [{"LOCAL_GPU": str(rank)} for rank in range(RANKS)]
    env = dict(os.environ)
    if not nvidia:
        env["VCUDA_SOFTGPU_DEVICES"] = os.environ["VCUDA_SOFTGPU_DEVICES"] = str(RANKS)
    with contextlib.ExitStack() as on_exit:
        def agent(*flags):
            return on_exit.enter_context(stack.Stack(words.dist, words.driver, None, stack.library_folders() if nvidia else (),
                                                     (*NCCL, *flags), pin=False))
        both, apart = agent(), []
        for rank in range(RANKS):
            os.environ["VCUDA_SOFTGPU_IDENTITY"] = f"node {rank}"
            apart.append(agent("--set", f"gpus={rank}"))
        settings = {"one-agent": [both.env(**one) for one in local],
                    "two-agents": [one.env(LOCAL_GPU="0") for one in apart]}
        if nvidia:
            key, _, value = QUIET.partition("=")
            settings = {"native": [dict(os.environ, **one, **{key: value}) for one in local], **settings}
        arms = [Arm(name, some, words, nvidia and name != "native", both.work) for name, some in settings.items()]
        for arm in arms:
            on_exit.callback(arm.stop)
            arm.measure(240)  # what is not counted: making communicators, plans
        samples = in_turn(arms, words.pairs, began + words.budget)
        return report(samples, words.json)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dist", default=os.path.join(HERE, "..", "..", ".dist"))
    parser.add_argument("--driver", default="nvidia", choices=("nvidia", "software"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.rank:
        return rank_main(words)
    try:
        return 0 if compare(words) else 1
    except stack.Failed as failure:
        sys.exit(f"ranks: {failure}")


if __name__ == "__main__":
    sys.exit(main())
