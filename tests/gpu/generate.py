#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with a GPU: `generate` with weights that processes share gives the bits that it gives with weights of its own.

    tests/gpu/generate.py [--dist .dist] [--no-mask] [--layers 8]

A Llama of random weights is saved in several files. It writes 64 words natively and through vcuda after `from_pretrained`,
and after `vcuda.load` in two processes that run at once. Words and the logits behind each are the same in all four. The agent has
the weights once. Exit status 1 if not.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
WORDS = 64
SHARED = ("shared, first", "shared, second")


def save(folder, layers):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(7)
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=8192, num_hidden_layers=layers,
                         num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True,
                         bos_token_id=0, eos_token_id=1, pad_token_id=0)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="300MB")


def load(folder, shared):
    import torch
    import transformers
    if not shared:
        return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to("cuda")
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import vcuda
    config = transformers.AutoConfig.from_pretrained(folder)
    with vcuda.empty():
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    vcuda.load(model, folder)
    return model


def child(folder, shared):
    """Prints a digest of words and logits, then waits for a line: the weights stay until all have answered."""
    import torch
    model = load(folder, shared).eval()
    prompt = torch.arange(2, 34, device="cuda").reshape(1, 32) * 17
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=WORDS,
                             min_new_tokens=WORDS, output_logits=True, return_dict_in_generate=True)
    words, logits = out.sequences.cpu(), torch.cat(out.logits).cpu()
    assert words.shape == (1, 32 + WORDS) and logits.isfinite().all(), (words.shape, logits)
    digest = hashlib.sha256(words.numpy().tobytes() + logits.view(torch.uint8).numpy().tobytes())
    print(json.dumps({"digest": digest.hexdigest(), "different": len(set(words[0, 32:].tolist()))}), flush=True)
    sys.stdin.readline()


def start(folder, shared, prefix=(), env=None):
    command = [sys.executable, os.path.abspath(__file__), "--child", folder, *(["--shared"] if shared else [])]
    if prefix:
        command = prefix(command)
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer_of(process):
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit(f"generate.py: a process ended with {process.wait()} before it answered")


def end(process):
    process.communicate("\n", timeout=60)


def tensors_of(served):
    url = f"http://127.0.0.1:{served.ports['control']}/v1/tensors"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["tensors"]


def compare(options, folder):
    import stack
    answers = {}
    native = start(folder, False)
    answers["native, private"] = answer_of(native)
    end(native)
    size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".safetensors"))
    with stack.Stack(options.dist, "nvidia", libraries=stack.library_folders(),
                     options=["--set", f"store.bytes={(size >> 20) + 512}MiB"], pin=False) as served:
        mask = (lambda command: command) if options.no_mask else stack.masked
        alone = start(folder, False, mask, served.env())
        answers["vcuda, private"] = answer_of(alone)
        end(alone)
        assert not tensors_of(served), "a private load made tensors with names"
        at_once = [start(folder, True, mask, served.env()) for _ in SHARED]
        answers.update(zip(SHARED, map(answer_of, at_once)))
        held = tensors_of(served)
        for process in at_once:
            end(process)
    once = sum(int(tensor["bytes"]) for tensor in held)
    for name, answer in answers.items():
        print(f"{name:16} {answer['digest'][:16]}  {answer['different']} different words of {WORDS}")
    print(f"weights {size >> 20} MiB; the agent has {once >> 20} MiB in {len(held)} tensors")
    same = len({answer["digest"] for answer in answers.values()}) == 1
    right = same and 0.99 * size < once < 1.01 * size and min(answer["different"] for answer in answers.values()) > 1
    print("the same" if right else "NOT the same")
    return 0 if right else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", default=os.path.join(ROOT, ".dist"))
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--no-mask", action="store_true", help="/dev/nvidia* stays (without root)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--shared", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.shared)
        return 0
    sys.path.insert(0, os.path.join(ROOT, "bench", "torch"))
    with tempfile.TemporaryDirectory(prefix="vcuda-generate-") as folder:
        save(folder, options.layers)
        return compare(options, folder)


if __name__ == "__main__":
    sys.exit(main())
