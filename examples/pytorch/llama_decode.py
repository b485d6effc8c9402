#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model in the shape of Llama 3.2 1B (bf16) writes tokens one by one."""
import torch

import common


def build(device, small=False, show=False):
    from transformers import LlamaConfig, LlamaForCausalLM
    common.seeded()
    config = LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192,
                         num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8,
                         head_dim=64, max_position_embeddings=4096, tie_word_embeddings=True,
                         bos_token_id=0, eos_token_id=1)
    if small:
        config = LlamaConfig(vocab_size=1000, hidden_size=64, intermediate_size=128,
                             num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, bos_token_id=0, eos_token_id=1)
    tokens = 8 if small else 64
    with torch.device(device):
        model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
        prompt = torch.randint(2, config.vocab_size, (1, 32))

    def run():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                             max_new_tokens=tokens, min_new_tokens=tokens, pad_token_id=0)
        return {"tokens": out.cpu()}

    return run


if __name__ == "__main__":
    common.main(__doc__, build)
