# SPDX-License-Identifier: Apache-2.0
"""vLLM with small models of random weights: what its engine makes of prompts in each of its modes, a row each.

The engine is a process of its own, as vLLM starts it by default; nothing is downloaded."""
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import answers
import torch
import vllm
from answers import answer
from safetensors.torch import save_file

SHAPE = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
         "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 8192, "max_position_embeddings": 2048,
         "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": 1,
         "initializer_range": 0.1}  # of less, most tokens are as likely as each other
LETTERS = [chr(code) for code in range(33, 127)]
PROMPTS = [[(7 * i + 13 * j) % 8000 + 2 for j in range(5 + 40 * i)] for i in range(6)]
HOME = tempfile.mkdtemp(prefix="vllm-rows-") if "--make" not in sys.argv else None
SERVER_SECONDS = 180


def make(folder, kind, more):
    """A model: its configuration, random weights in bfloat16, a tokenizer whose tokens are letters and numbers."""
    import tokenizers
    import transformers
    torch.manual_seed(5)
    config = getattr(transformers, f"{kind}Config")(**SHAPE, **more)
    getattr(transformers, f"{kind}ForCausalLM")(config).to(torch.bfloat16).save_pretrained(folder)
    words = ["<begin>", "<end>", *LETTERS]
    words += [f"<{number}>" for number in range(len(words), SHAPE["vocab_size"])]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<end>"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<begin>",
                                         eos_token="<end>").save_pretrained(folder)


@functools.cache
def model(kind="Llama", **more):
    """Its folder.  Another process makes it: vLLM forks its engine, which does not survive what makes a model."""
    folder = os.path.join(HOME, f"{kind}-{len(os.listdir(HOME))}")
    subprocess.run([sys.executable, __file__, "--make", folder, kind, json.dumps(more)], check=True, timeout=SERVER_SECONDS)
    return folder


@contextlib.contextmanager
def engine(folder=None, **options):
    """An engine for that model, which ends with the block.  Its cache's size is given: others may use the GPU as well."""
    given = {"enforce_eager": True, "max_model_len": 1024, "max_num_seqs": 16, **options}
    made = vllm.LLM(model=folder or model(), seed=3, gpu_memory_utilization=0.05, kv_cache_memory_bytes=1 << 30,
                    disable_log_stats=True, **given)
    try:
        yield made
    finally:
        made.llm_engine.engine_core.shutdown()


def asked(ids):
    return {"prompt_token_ids": ids}


def written(made, tokens=24, prompts=None, lora=None, **sampling):
    """Tokens and their log probabilities."""
    how = vllm.SamplingParams(**{"temperature": 0.0, "max_tokens": tokens, "ignore_eos": True, "detokenize": False,
                                 "logprobs": 2, **sampling})
    outs = made.generate([asked(ids) for ids in prompts or PROMPTS], how, use_tqdm=False, lora_request=lora)
    return [(list(out.outputs[0].token_ids),
             [sorted((token, one.logprob) for token, one in step.items()) for step in out.outputs[0].logprobs or ()])
            for out in outs]


@answer
def eager():
    with engine() as made:
        return written(made)


@answer
def sampled():
    with engine() as made:
        return written(made, temperature=0.9, top_p=0.9, top_k=50, seed=11)


@answer
def compiled_and_captured():
    """torch.compile and CUDA graphs, which is the default."""
    with engine(enforce_eager=False, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8, 16]}) as made:
        return written(made), written(made)


@answer
def graphs_of_all():
    """The whole model in one graph, attention too."""
    with engine(enforce_eager=False, compilation_config={"cudagraph_capture_sizes": [1, 2, 4, 8, 16],
                                                         "cudagraph_mode": "FULL"}) as made:
        return written(made)


@answer
def prefixes_and_chunks():
    """Prompts that begin alike, cut into chunks of 128 tokens.  The engine is in this process: what one of its own
    puts into a step depends on when a prompt reaches it."""
    long = [[5] * 600 + ids for ids in PROMPTS]
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    try:
        with engine(enable_prefix_caching=True, enable_chunked_prefill=True, max_num_batched_tokens=128) as made:
            return written(made, prompts=long), written(made, prompts=long)
    finally:
        del os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"]


@answer
def experts():
    with engine(model("Mixtral", num_local_experts=8, num_experts_per_tok=2)) as made:
        return written(made)


@answer
def weights_in_fp8():
    with engine(quantization="fp8") as made:
        return written(made)


@answer
def cache_in_fp8():
    with engine(kv_cache_dtype="fp8") as made:
        return written(made)


@answer
def guessed_by_ngrams():
    again = [ids[:20] * 4 for ids in PROMPTS]
    with engine(speculative_config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}) as made:
        return written(made, prompts=again)


@answer
def asleep_and_awake():
    """Weights go to the host and the memory of the cache is given back, then both return."""
    with engine(enable_sleep_mode=True) as made:
        before = written(made)
        made.sleep(level=1)
        made.wake_up()
        return before, written(made)


@answer
def adapted():
    """By a low-rank adapter, and without it."""
    folder = os.path.join(HOME, "adapter")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
        json.dump({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"], "bias": "none"}, file)
    torch.manual_seed(6)
    save_file({f"base_model.model.model.layers.{layer}.self_attn.{name}.lora_{side}.weight": 0.3 * torch.randn(*sides)
               for layer in range(SHAPE["num_hidden_layers"]) for name, out in (("q_proj", 512), ("v_proj", 256))
               for side, sides in (("A", (8, 512)), ("B", (out, 8)))}, os.path.join(folder, "adapter_model.safetensors"))
    with engine(enable_lora=True, max_lora_rank=8) as made:
        return written(made), written(made, lora=vllm.lora.request.LoRARequest("one", 1, folder))


@answer
def grammar():
    """What is written fits an expression: a mask of the tokens goes to the GPU at each step."""
    from vllm.sampling_params import StructuredOutputsParams
    with engine() as made:
        how = vllm.SamplingParams(temperature=0.0, max_tokens=12,
                                  structured_outputs=StructuredOutputsParams(regex="[0-9]{4}-[a-f]{3}"))
        return [out.outputs[0].text for out in made.generate([asked(ids) for ids in PROMPTS], how, use_tqdm=False)]


@answer
def embeddings():
    with engine(runner="pooling", convert="embed") as made:
        return [out.outputs.embedding for out in made.embed([asked(ids) for ids in PROMPTS], use_tqdm=False)]


@answer
def served():
    """`vllm serve`, asked over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model(), "--port", str(port),
                               "--host", "127.0.0.1", "--max-model-len", "1024", "--enforce-eager", "--seed", "3",
                               "--kv-cache-memory-bytes", str(1 << 30), "--gpu-memory-utilization", "0.05"], stdout=sys.stderr)
    try:
        end = time.monotonic() + SERVER_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server is not there: status {server.poll()}") from None
                time.sleep(0.2)
        wanted = {"model": model(), "prompt": PROMPTS, "max_tokens": 16, "temperature": 0, "logprobs": 1, "ignore_eos": True}
        with urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/completions", json.dumps(wanted).encode(),
                {"Content-Type": "application/json"}), timeout=60) as got:
            return [(one["text"], one["logprobs"]["token_logprobs"]) for one in json.load(got)["choices"]]
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@answer
def two_gpus():
    """A process for each GPU, and all-reduces between them."""
    if torch.cuda.device_count() < 2:
        return "one GPU"
    with engine(tensor_parallel_size=2) as made:
        return written(made)


if __name__ == "__main__":  # an engine that is spawned reads this file again
    if sys.argv[1:2] == ["--make"]:
        make(*sys.argv[2:4], json.loads(sys.argv[4]))
    else:
        answers.main("vllm", vllm.__version__)
