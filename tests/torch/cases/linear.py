# torch.nn.Linear with a bias: addmm by way of cublasLt, its epilogue included.
import torch
from check import equal

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
WITHIN = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
for kind, within in WITHIN.items():
    cpu = torch.nn.Linear(48, 96).to(kind)
    gpu = torch.nn.Linear(48, 96).to(kind)
    gpu.load_state_dict(cpu.state_dict())
    gpu = gpu.cuda()
    for shape in ((1, 48), (33, 48), (2, 17, 48)):
        x = torch.randn(*shape).to(kind)
        with torch.no_grad():
            want = torch.nn.functional.linear(x.double(), cpu.weight.double(), cpu.bias.double())
            equal(gpu(x.cuda()), want, f"linear {kind} {shape}", within)
