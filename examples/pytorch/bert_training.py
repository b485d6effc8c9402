#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains BERT-base on masked words of random sentences: AdamW, bf16, the loss read every step."""
import torch

import common


def build(device, small=False, show=False, batch=16, steps=8):
    from transformers import BertConfig, BertForMaskedLM
    common.seeded()
    config = BertConfig()
    length = 128
    if small:
        config = BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2,
                            num_attention_heads=4, intermediate_size=128)
        batch, steps, length = 2, 2, 32
    with torch.device(device):
        model = BertForMaskedLM(config)
        words = torch.randint(5, config.vocab_size, (batch, length))
        hidden = torch.rand(batch, length) < 0.15
        targets = torch.where(hidden, words, -100)
        inputs = torch.where(hidden, 3, words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    kind = torch.device(device).type

    def run():
        model.train()
        losses = []
        for _ in common.progress(range(steps), "train", show):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(kind, torch.bfloat16):
                loss = model(input_ids=inputs, labels=targets).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return {"losses": torch.tensor(losses)}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
