# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's own kernels compute: Hugging Face's models and Trainer with a model that is one of DistributedModel,
gradient checkpointing, pieces of a batch, and a stage as one node of the graph.

    frameworks.py FOLDER [gpus]     FOLDER is written to; gpus: over the first two GPUs, not on the CPU"""
import os
import sys

import accelerate
import torch
import transformers

from vcuda_peers import DistributedModel
from vcuda_peers.verify import _Record

KINDS = {
    "gpt2": transformers.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=0),
    "llama": transformers.LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
                                      num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=True),
}
GPUS = "gpus" in sys.argv[2:]
tokens = torch.randint(1, 64, (4, 16), generator=torch.Generator().manual_seed(1))
if GPUS:
    tokens = tokens.to("cuda:0")
    torch.use_deterministic_algorithms(True)  # bits are compared
    # A checkpoint keeps the random state of the GPUs that a block's arguments lie on, and accelerate moves these within.
    KINDS["gpt2"].update({"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})
# The last of the three blocks is the second GPU's.
PLACES = {"gpt2": {"transformer.wte": 0, "transformer.wpe": 0, "transformer.drop": 0, "transformer.h.0": 0, "transformer.h.1": 0,
                   "transformer.h.2": 1, "transformer.ln_f": 1, "lm_head": 0},
          "llama": {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 0, "model.layers.2": 1, "model.norm": 1,
                    "model.rotary_emb": 0, "lm_head": 0}}


def made(config):
    torch.manual_seed(7)
    return transformers.AutoModelForCausalLM.from_config(config)


def laid(model):
    places = PLACES[model.config.model_type] if GPUS else {"": "cpu"}
    return accelerate.dispatch_model(model, places, force_hooks=True)


def distributed(model):
    return DistributedModel.of(laid(model))


def gradients(model):
    model.zero_grad()
    torch.manual_seed(11)  # of dropout
    loss = model(tokens, labels=tokens).loss
    loss.backward()
    return [loss.detach()] + [p.grad.clone() for p in model.parameters()]


def same(one, other, what):
    assert len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other)), what


for name, config in KINDS.items():
    native = (laid(made(config)) if GPUS else made(config)).train()
    wanted = gradients(native)
    model = distributed(made(config)).train()
    assert isinstance(model, type(native)) and isinstance(model, DistributedModel)
    assert type(model).__name__ == type(native).__name__ and list(model.state_dict()) == list(native.state_dict())
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    same(gradients(model), wanted, name)
    blocks = model.transformer.h if name == "gpt2" else model.model.layers
    stages = [blocks[1], blocks[2].mlp, model.get_input_embeddings(), model.lm_head, model]
    for checkpointing in (None, {"use_reentrant": False}):
        if checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
            same(gradients(model), wanted, f"{name} checkpointed")
        for stage in stages:
            record = _Record(stage, next(stage.parameters()).device.index or 0)
            same(gradients(model), wanted, f"{name}: {type(stage).__name__} as a node, {checkpointing}")
            record.close()
            assert record.out and any(grad is not None for grad in record.back), type(stage)
    model.gradient_checkpointing_disable()
    text = dict(max_new_tokens=5, do_sample=False, pad_token_id=0)
    same([model.eval().generate(tokens, **text)], [native.eval().generate(tokens, **text)], "generate")
    record = _Record(blocks[1], 0)
    same([model.generate(tokens, **text)], [native.generate(tokens, **text)], "generate, with a cache, through a node")
    record.close()
    assert record.given and record.grads is None

    # Pieces of a batch add up to the whole.
    def loss_of(out, target):
        return torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), target.flatten())
    parts = {}
    for count in (1, 4):
        model.zero_grad()
        parts[count] = [model.step((tokens, tokens), loss_of, micro_batches=count)] + [p.grad.clone() for p in model.parameters()]
    for one, other in zip(parts[1], parts[4]):
        torch.testing.assert_close(one, other)

    # A Trainer, and what it saves is the model's own.
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return len(tokens)

        def __getitem__(self, at):
            return {"input_ids": tokens[at], "labels": tokens[at], "a column that the model does not take": 1}

    def trained(model, folder):
        arguments = transformers.TrainingArguments(
            output_dir=os.path.join(sys.argv[1], folder), max_steps=3, per_device_train_batch_size=2, report_to="none", use_cpu=not GPUS,
            disable_tqdm=True, seed=5, save_steps=2, gradient_checkpointing=True, dataloader_pin_memory=False, logging_steps=1)
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Data())
        trainer.train()
        trainer.save_model()
        return [log["loss"] for log in trainer.state.log_history if "loss" in log], list(trainer.model.parameters())

    theirs, mine = trained(laid(made(config)) if GPUS else made(config), name + "-native"), trained(distributed(made(config)), name + "-ours")
    assert mine[0] == theirs[0] and len(mine[0]) == 3, (mine[0], theirs[0])
    same(mine[1], theirs[1], "trained")
    saved = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(sys.argv[1], name + "-ours"))
    same(list(saved.parameters()), [p.cpu() for p in mine[1]], "saved")
print("right")
