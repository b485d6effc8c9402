#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""T5-base translates a sentence with `generate`, token by token.

With google-t5/t5-base where the hub or its cache has it (needs sentencepiece); else a model of
the same shape with random weights reads and writes random tokens, and says so.
"""
import torch

import common


def pretrained():
    """Tokenizer and model, or None where they cannot be had."""
    from transformers import T5ForConditionalGeneration, T5Tokenizer
    name = "google-t5/t5-base"
    for local in (True, False):
        if not local and not common.hub_reachable():
            return None
        try:
            tokenizer = T5Tokenizer.from_pretrained(name, local_files_only=local)
            model = T5ForConditionalGeneration.from_pretrained(name, local_files_only=local)
            return tokenizer, model
        except (OSError, ImportError, ValueError):
            continue
    return None


def build(device, small=False, show=False):
    from transformers import T5Config, T5ForConditionalGeneration
    common.seeded()
    config = T5Config(vocab_size=32128, d_model=768, d_kv=64, d_ff=3072, num_layers=12,
                      num_heads=12, decoder_start_token_id=0)
    if small:
        config = T5Config(vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2,
                          num_heads=4, decoder_start_token_id=0)
    tokens = 8 if small else 40
    with torch.device(device):
        model = T5ForConditionalGeneration(config).eval()
        # Tied to random embeddings, it would only repeat its input.
        model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
        prompt = torch.randint(3, config.vocab_size, (1, 12))

    def run():
        out = model.generate(prompt, do_sample=False, max_new_tokens=tokens,
                             min_new_tokens=tokens)
        return {"tokens": out.cpu()}

    return run


def translate(device, tokenizer, model):
    from transformers import TextStreamer
    model = model.to(device)
    text = "translate English to German: How old are you?"
    print(text)
    ids = tokenizer(text, return_tensors="pt").input_ids.to(device)
    model.generate(ids, streamer=TextStreamer(tokenizer))


if __name__ == "__main__":
    found = pretrained()
    if found:
        translate("cuda" if torch.cuda.is_available() else "cpu", *found)
    else:
        common.main(__doc__, build)
