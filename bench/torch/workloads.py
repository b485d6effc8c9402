# SPDX-License-Identifier: Apache-2.0
"""What is measured.  The models are those of examples/; the micro workloads and one call of each
library are made here.  The runner reads this list without importing PyTorch, so makers import what they need.

A maker takes (device, small) and returns run(): one repetition of `steps` steps.  A bound is on
the ratio remote/native, or on the remote time of a step in microseconds.
"""
from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    steps: int
    make: Callable
    ratio: Optional[float] = None  # at most
    step_us: Optional[float] = None  # at most
    delayed: dict = field(default_factory=dict)  # added round trip in us: ratio at most
    extra: bool = False  # not part of a standard run


def example(module, **options):
    def make(device, small):
        import importlib
        return importlib.import_module(module).build(device, small, **options)

    return make


def small_op(device, small):
    import torch
    count = 500 if small else 20000
    y = torch.ones(1024, device=device)

    def run():
        z = y
        for _ in range(count):
            z = z * 1.0001
        return {"value": z[:4].cpu()}

    return run


def item(device, small):
    import torch
    count = 200 if small else 2000
    x = torch.tensor(0.5).to(device)

    def run():
        total = 0.0
        for _ in range(count):
            total += x.item()
        return {"total": total}

    return run


def product(device, small):
    """Products and a read: what runs on the software GPU too."""
    import torch
    torch.manual_seed(0)
    a = torch.rand(64, 64).to(device)

    def run():
        value = 0.0
        for _ in range(50):
            b = torch.mm(a, a)
            value = b.cpu()[0, 0].item()
        return {"value": value}

    return run


def graph(device, small):
    """Twelve transformer layers captured once; each replay gets new input and its sum is read."""
    import torch
    torch.manual_seed(0)
    with torch.device(device):
        layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
        model = torch.nn.Sequential(*[layer] * 12).half().eval()
        inputs = torch.randn(200, 1, 64, 768).half()
        static = inputs[0].clone()

    def forward():
        with torch.no_grad():
            return model(static).float().sum()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            forward()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = forward()

    def run():
        sums = []
        for one in inputs:
            static.copy_(one)
            captured.replay()
            sums.append(out.item())
        return {"sums": torch.tensor(sums)}

    return run


def repeated(make):
    """make(torch, device, small) gives a function of no arguments, called 50 times."""
    def maker(device, small):
        import torch
        torch.manual_seed(0)
        once = make(torch, device, small)

        def run():
            for _ in range(4 if small else 50):
                out = once()
            return {"value": out.detach()}  # where it is: what is timed is the operation

        return run

    return maker


@repeated
def solve(torch, device, small):
    a, b = torch.randn(10 if small else 1000, 64, 64, device=device), torch.randn(10 if small else 1000, 64, 4, device=device)
    return lambda: torch.linalg.solve(a, b)


@repeated
def transform(torch, device, small):
    x = torch.randn(*(2 * [64 if small else 1024]), dtype=torch.complex64, device=device)
    return lambda: torch.fft.fft2(x)


@repeated
def eigenvalues(torch, device, small):
    a = torch.randn(*(2 * [32 if small else 512]), device=device)
    a = a + a.T
    return lambda: torch.linalg.eigh(a)[0]


@repeated
def sparse_product(torch, device, small):
    side = 100 if small else 10000
    at = torch.randint(side, (2, side * 20), device=device)
    a = torch.sparse_coo_tensor(at, torch.rand(side * 20, device=device), (side, side)).coalesce().to_sparse_csr()
    b = torch.randn(side, 64, device=device)
    return lambda: a @ b


@repeated
def recurrent(torch, device, small):
    model = torch.nn.LSTM(64, 128 if small else 512, num_layers=2, batch_first=True).to(device)
    x = torch.randn(8, 8 if small else 64, 64, device=device)

    def once():
        model.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        return loss

    return once


WORKLOADS = [
    Workload("poly", "polynomial fit, .item() each step", 2000, example("polynomial_fit"), 0.95),
    Workload("t5", "T5-base generate", 40, example("t5_translate"), 0.85,
             delayed={50: None, 200: 1.0, 1000: 1.25}),
    Workload("gpt2", "GPT-2 fp16 decode", 64, example("gpt2_decode"), 0.90),
    Workload("llama", "Llama-1B bf16 decode", 64, example("llama_decode"), 0.90),
    Workload("resnet1", "ResNet-50 batch 1", 20, example("resnet50_inference"), 1.0),
    Workload("resnet64", "ResNet-50 batch 64, 38 MB pageable", 10,
             example("resnet50_inference", batch=64, steps=10), 1.3),
    Workload("bert", "BERT-base training", 8, example("bert_training"), 1.0,
             delayed={50: None, 200: 1.02, 1000: 1.10}),
    Workload("graph", "CUDA graph replay", 200, graph, 1.10),
    Workload("op", "one small op, sustained", 20000, small_op, 0.8),
    Workload("item", ".item()", 2000, item, step_us=30),
    Workload("unet", "diffusion UNet, 20 steps", 20, example("unet_diffusion"), extra=True),
    Workload("resnet-train", "ResNet-50 training, DataLoader", 8, example("resnet50_training"),
             extra=True),
    Workload("solve", "linalg.solve, 1000 of 64 x 64", 50, solve, 1.05, extra=True),
    Workload("fft", "fft2 of 1024 x 1024", 50, transform, 1.0, extra=True),
    Workload("eigh", "linalg.eigh of 512", 50, eigenvalues, 1.1, extra=True),
    Workload("spmm", "CSR by dense, 200,000 values", 50, sparse_product, 1.05, extra=True),
    Workload("lstm", "LSTM training", 50, recurrent, 1.0, extra=True),
    Workload("jax", "JAX: transformer training", 10, example("transformer_training"), 1.05, extra=True),
    Workload("cupy", "CuPy: option prices", 200, example("elementwise"), 0.8, extra=True),
    Workload("product", "small product and read", 50, product, delayed={200: None, 1000: None},
             extra=True),
]
COLD_BOUND = 0.1  # seconds that a cold start may take longer than natively
BY_NAME = {workload.name: workload for workload in WORKLOADS}
