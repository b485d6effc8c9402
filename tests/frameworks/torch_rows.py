# SPDX-License-Identifier: Apache-2.0
"""PyTorch's compilers and what is built on it (torch.compile in all modes, Triton, transformers), a row each."""
import answers
import torch
import triton
import triton.language as tl
from answers import answer

torch.manual_seed(0)
MODEL = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.LayerNorm(256),
                            torch.nn.Linear(256, 16))


def some(*shape, kind=None):
    """Made on the CPU: PyTorch's own kernels are machine code, which the software GPU does not run."""
    return torch.randn(*shape).to(kind or torch.float32).cuda()


X = torch.randn(8, 128)
WANT = MODEL(X).detach()
MODEL, X = MODEL.cuda(), X.cuda()


def compiled(mode):
    torch._dynamo.reset()
    model = torch.compile(MODEL, mode=mode)
    outs = []
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            outs.append(model(X).cpu())
    return outs


@answer
def compile_default():
    return compiled("default")


@answer
def compile_reduce_overhead():
    return compiled("reduce-overhead")


@answer
def compile_max_autotune():
    # Which kernel wins is a matter of time: the numbers are compared with eager's, not with native's.
    return all(torch.allclose(one, WANT, atol=1e-2) for one in compiled("max-autotune"))


@answer
def compile_max_autotune_no_graphs():
    return all(torch.allclose(one, WANT, atol=1e-2) for one in compiled("max-autotune-no-cudagraphs"))


@answer
def compile_backward():
    torch._dynamo.reset()
    torch.compile(MODEL)(X).square().mean().backward()
    return [p.grad.cpu() for p in MODEL.parameters()]


@answer
def compile_dynamic():
    torch._dynamo.reset()
    model = torch.compile(lambda x: torch.nn.functional.softmax(x * 2, -1).cumsum(0), dynamic=True)
    return [model(torch.ones(n, 7).cuda()).cpu() for n in (3, 9, 200)]


@answer
def flex_attention():
    from torch.nn.attention.flex_attention import flex_attention as attend
    torch._dynamo.reset()
    q = some(1, 2, 256, 64)
    return torch.compile(attend)(q, q, q, score_mod=lambda s, b, h, i, j: s - abs(i - j) * 0.1).cpu()


@triton.jit
def product_kernel(a, b, c, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    rows, columns = row + tl.arange(0, BLOCK), column + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        total = tl.dot(tl.load(a + rows[:, None] * n + inner[None, :]), tl.load(b + inner[:, None] * n + columns[None, :]), total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@answer
def triton_product():
    a = some(256, 256, kind=torch.float16)
    c = torch.empty(256, 256, device="cuda")
    product_kernel[(4, 4)](a, a, c, 256, BLOCK=64)
    return c.cpu()


@answer
def sparse_matrices():
    x = torch.randn(64, 64)
    x, right = torch.where(x > 1, x, 0), some(64, 8)
    return [(sparse.cuda() @ right).cpu() for sparse in (x.to_sparse(), x.to_sparse_csr())]


@answer
def semi_structured():
    from torch.sparse import to_sparse_semi_structured
    x = torch.tensor([0, 0, 1, 1], dtype=torch.float16).tile((128, 32)).cuda()
    return torch.mm(to_sparse_semi_structured(x), torch.ones(128, 64, dtype=torch.float16).cuda()).cpu()


@answer
def lstm_training():
    torch.manual_seed(1)
    model = torch.nn.LSTM(64, 128, num_layers=2, batch_first=True, dropout=0.0, bidirectional=True).cuda()
    model(some(8, 32, 64))[0].square().mean().backward()
    return [p.grad.cpu() for p in model.parameters()]


@answer
def packed_sequences():
    torch.manual_seed(1)
    model = torch.nn.GRU(16, 32).cuda()
    packed = torch.nn.utils.rnn.pack_padded_sequence(some(9, 4, 16), [9, 7, 3, 1])
    out, _ = torch.nn.utils.rnn.pad_packed_sequence(model(packed)[0])
    out.sum().backward()
    return out.detach().cpu(), [p.grad.cpu() for p in model.parameters()]


@answer
def ctc_loss():
    torch.manual_seed(1)
    x = torch.randn(50, 4, 20).log_softmax(2).cuda().requires_grad_()
    targets = torch.randint(1, 20, (4 * 10,), dtype=torch.int32)
    lengths = torch.full((4,), 10, dtype=torch.int32)
    loss = torch.nn.functional.ctc_loss(x, targets, torch.full((4,), 50, dtype=torch.int32), lengths)
    loss.backward()
    return loss.detach().cpu(), x.grad.cpu()


@answer
def generation():
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500)).cuda().eval()
    return model.generate(torch.arange(8, device="cuda")[None], max_new_tokens=20, do_sample=False).cpu()


answers.main("PyTorch", f"{torch.__version__} with Triton {triton.__version__}")
