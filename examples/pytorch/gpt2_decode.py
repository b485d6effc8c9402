#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (124 million parameters, fp16) writes tokens one by one."""
import torch

import common


def build(device, small=False, show=False):
    from transformers import GPT2Config, GPT2LMHeadModel
    common.seeded()
    config = GPT2Config()
    if small:
        config = GPT2Config(vocab_size=1000, n_embd=64, n_layer=2, n_head=4,
                            bos_token_id=0, eos_token_id=0)
    tokens = 8 if small else 64
    kind = torch.float16 if torch.device(device).type == "cuda" else torch.float32
    with torch.device(device):
        model = GPT2LMHeadModel(config).to(kind).eval()
        prompt = torch.randint(1, config.vocab_size, (1, 16))

    def run():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                             max_new_tokens=tokens, min_new_tokens=tokens, pad_token_id=0)
        return {"tokens": out.cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
