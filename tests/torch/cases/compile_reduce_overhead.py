# needs: kernels
# needs: 2.11
# torch.compile(mode="reduce-overhead"): CUDA graphs with private pools, replayed with new inputs.
import torch
from check import equal

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
model = model.cuda().eval()
compiled = torch.compile(model, mode="reduce-overhead")
with torch.no_grad():
    for i in range(12):
        x = torch.randn(8, 128, device="cuda")
        torch.compiler.cudagraph_mark_step_begin()
        equal(compiled(x).clone(), model(x), f"call {i}", 1e-4)

