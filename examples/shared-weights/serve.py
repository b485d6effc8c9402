#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One Llama from many pods: every pod has all of the model, the agent has its weights once.

    serve.py FOLDER [--port 8080]      FOLDER: config.json, tokenizer, *.safetensors, as `save_pretrained` writes it
    serve.py FOLDER --prompt TEXT      answers once
    serve.py FOLDER --check            loads, compares each weight with the file, and ends

The first pod uploads the weights, the others map them: `curl -d 'Once upon' POD:8080`.
"""
import argparse
import http.server
import time

import torch
import transformers

import vcuda


def load(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    with vcuda.empty():
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=config.dtype or torch.bfloat16)
    begin = time.monotonic()
    vcuda.load(model, folder)
    print(f"weights after {time.monotonic() - begin:.3f} s", flush=True)
    return model.eval()


def check(model, folder):
    from safetensors import safe_open
    count = 0
    for path in vcuda.weights.files_of(folder):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                assert torch.equal(model.state_dict()[name].cpu(), file.get_tensor(name)), name
                count += 1
    print(f"{count} weights are as in the files", flush=True)


def answer(model, tokenizer, prompt):
    tokens = tokenizer(prompt, return_tensors="pt").to("cuda")
    with torch.no_grad():
        out = model.generate(**tokens, max_new_tokens=64, do_sample=False)
    return tokenizer.decode(out[0], skip_special_tokens=True)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # the readiness probe
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        length = min(int(self.headers.get("Content-Length", 0)), 1 << 16)
        text = answer(self.server.model, self.server.tokenizer, self.rfile.read(length).decode(errors="replace")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--prompt")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    model = load(options.folder)
    if options.check:
        check(model, options.folder)
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    if options.prompt is not None:
        print(answer(model, tokenizer, options.prompt))
        return
    server = http.server.HTTPServer(("", options.port), Handler)
    server.model, server.tokenizer = model, tokenizer
    server.serve_forever()


if __name__ == "__main__":
    main()
