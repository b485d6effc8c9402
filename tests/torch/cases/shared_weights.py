# needs: 2.11
# Weights that processes share: a file, a sharded folder with tied weights into a model without memory, what does not fit;
# another process has the same memory and uploads nothing. Bit by bit what was in the files.
import json
import os
import struct
import sys
import tempfile

import torch
from check import check, equal, python, raises

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
import vcuda  # noqa: E402

KINDS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64",
         torch.float8_e4m3fn: "F8_E4M3", torch.bool: "BOOL"}


def save(path, state):
    told, data = {}, b""
    for name, tensor in state.items():
        content = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        told[name] = {"dtype": KINDS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(told).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


class Model(torch.nn.Module):
    def __init__(self, tie):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 8)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
        self.head = torch.nn.Linear(8, 50, bias=False)
        self.register_buffer("angles", torch.arange(4) * 0.5, persistent=False)
        if tie:
            self.head.weight = self.embedding.weight


folder = tempfile.mkdtemp()
every = {str(kind): torch.randn(3, 5).to(kind) for kind in KINDS if kind not in (torch.bool, torch.int64)}
every["whole"] = torch.arange(-7, 7).reshape(2, 7)
every["flags"] = torch.tensor([True, False, True])
one = os.path.join(folder, "one.safetensors")
save(one, every)
got = vcuda.load_file(one, evictable=False)
for name, tensor in every.items():
    check(got[name].dtype == tensor.dtype and got[name].is_cuda, name)
    equal(got[name].cpu().view(torch.uint8), tensor.view(torch.uint8), name)
    check(got[name].data_ptr() % tensor.element_size() == 0, f"{name} is aligned, wherever the file has it")

torch.manual_seed(1)
reference = Model(tie=True).to(torch.bfloat16)
state = reference.state_dict()
del state["head.weight"]  # as safetensors keeps tied weights
shards = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(state)}
model_folder = os.path.join(folder, "model")
os.mkdir(model_folder)
for shard in set(shards.values()):
    save(os.path.join(model_folder, shard), {name: state[name] for name in state if shards[name] == shard})
with open(os.path.join(model_folder, "model.safetensors.index.json"), "w") as out:
    json.dump({"weight_map": shards}, out)

with vcuda.empty():
    model = Model(tie=True)
check(all(p.is_meta for p in model.parameters()) and not model.angles.is_meta, "parameters are on the meta device, buffers not")
vcuda.load(model, model_folder, evictable=False)
check(model.head.weight is model.embedding.weight, "tied weights are one")
for name, tensor in reference.state_dict().items():
    equal(model.state_dict()[name].cpu(), tensor, name)
check(model.angles.is_cuda and not any(p.requires_grad for p in model.parameters()), "buffers came along, no gradients")
equal(model.angles.cpu(), torch.arange(4) * 0.5, "the buffer")

with torch.device("meta"):
    bare = Model(tie=True)
raises(vcuda.Error, lambda: vcuda.load(bare, model_folder, evictable=False), "angles", "vcuda.empty()")
with vcuda.empty():
    other = Model(tie=False)
raises(vcuda.Error, lambda: vcuda.load(other, model_folder, evictable=False), "head.weight")

before = [t["name"] for t in vcuda.names("weights.")]
code = f"""
import sys; sys.path.insert(0, {sys.path[0]!r})
import torch, vcuda
from vcuda import weights
whole, parts = weights.open_file({one!r}, evictable=False)
print(whole.made, weights.Part(whole, "x", *parts["whole"]).torch().cpu().tolist())
"""
done = python(code)
check(done.stdout.strip() == f"False {every['whole'].tolist()}", f"another process: {done.stdout} {done.stderr[-500:]}")
check([t["name"] for t in vcuda.names("weights.")] == before, "nothing new was made")
