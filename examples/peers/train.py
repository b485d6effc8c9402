# SPDX-License-Identifier: Apache-2.0
"""A loop of plain PyTorch whose model lies on the GPUs of several people's machines.

    vcuda-peers run lab.yaml --retries 3 -- python3 train.py --checkpoint DIR
    vcuda-peers run lab.yaml --retries 3 -- python3 train.py --checkpoint DIR --model bert-base-uncased

Without --model it is a stack of linear layers, whose loss and step are computed on the host: the software GPU runs
cuBLAS, and PyTorch's own kernels are machine code.  With --model it is any model and tokenizer of transformers.
"""
import argparse
import types

import torch
from torch.utils.data import DataLoader

from vcuda_peers import UserNode

TEXTS = ["a peer lends its GPU", "and never its shell", "the model is in pieces", "the loop is as it was"] * 4


class Layers(torch.nn.Module):
    """Has what transformers' models have: forward(input_ids, attention_mask=, labels=) with a .loss."""

    def __init__(self, width=32, count=6):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(count)))

    def forward(self, input_ids, attention_mask=None, labels=None):
        out = self.layers(input_ids).cpu()
        return types.SimpleNamespace(loss=(out - labels.cpu()).square().mean())


class HostSGD(torch.optim.SGD):
    """SGD whose sums are the host's."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.copy_(weight.cpu() - group["lr"] * weight.grad.cpu())


def small():
    torch.manual_seed(0)
    samples = torch.randn(16, 2, 32)
    rows = [{"input_ids": x, "attention_mask": torch.ones(1), "label": y} for x, y in samples]
    return Layers(), HostSGD, rows, 0.25


def hugging_face(name):
    from transformers import AutoModelForCausalLM, AutoTokenizer
    tokenizer, model = AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    rows = [tokenizer(text, padding="max_length", max_length=16, truncation=True, return_tensors="pt") for text in TEXTS]
    rows = [{key: row[key][0] for key in ("input_ids", "attention_mask")} | {"label": row["input_ids"][0]} for row in rows]
    return model, torch.optim.AdamW, rows, 5e-5


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", help="of transformers: its name or its folder")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--checkpoint", help="the folder of checkpoints, from which it goes on")
    parser.add_argument("--verify", type=float, default=0.0, help="the share of batches that a second worker computes a part of, too")
    options = parser.parse_args()
    model, kind, tokenized_dataset, lr = hugging_face(options.model) if options.model else small()

    user = UserNode()
    distributed_model, distributed_optimizer = user.create_distributed_model(
        model, kind, checkpoint=options.checkpoint, every=2, verify=options.verify)
    distributed_optimizer(lr=lr)  # without parameters: they are the model's
    device = "cuda:0"
    done = user.resume() if options.checkpoint else 0

    step = 0
    for epoch in range(options.epochs):
        for batch in DataLoader(tokenized_dataset, batch_size=8):
            step += 1
            if step <= done:
                continue
            input_ids = batch["input_ids"].to(device)
            attention_mask = batch["attention_mask"].to(device)
            labels = batch["label"].to(device)

            distributed_optimizer.zero_grad()
            outputs = distributed_model(input_ids, attention_mask=attention_mask, labels=labels)
            loss = outputs.loss
            loss.backward()
            distributed_optimizer.step()
            user.report(loss=loss)
        print(f"Epoch {epoch + 1}/{options.epochs} completed, loss {user.check_job_status()['loss']}", flush=True)
    print(f"Job Status: {user.check_job_status()}")


if __name__ == "__main__":
    main()
