# needs: kernels
# Gradients of every kind of layer, and gradients of gradients, against the CPU in f64.
import contextlib

import torch
from check import OLD, check, equal
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
image, line, row = torch.randn(2, 4, 9, 9), torch.randn(2, 4, 12), torch.randn(5, 8)
sequence, volume = torch.randn(3, 7, 6), torch.randn(1, 2, 5, 6, 7)
heads = torch.randn(2, 3, 8, 16)
LAYERS = {
    "linear": (lambda: nn.Linear(8, 5), row),
    "bilinear": (lambda: Twice(nn.Bilinear(8, 8, 4)), row),
    "convolution, 1 dimension": (lambda: nn.Conv1d(4, 6, 3, padding=1), line),
    "convolution": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1), image),
    "convolution, dilated": (lambda: nn.Conv2d(4, 6, 3, dilation=2), image),
    "convolution, in groups": (lambda: nn.Conv2d(4, 8, 3, groups=4), image),
    "convolution, 3 dimensions": (lambda: nn.Conv3d(2, 3, 3), volume),
    "transposed convolution": (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2), image),
    "batch norm": (lambda: nn.BatchNorm2d(4), image),
    "batch norm, evaluated": (lambda: nn.BatchNorm2d(4).eval(), image),
    "layer norm": (lambda: nn.LayerNorm(8), row),
    "group norm": (lambda: nn.GroupNorm(2, 4), image),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), image),
    "max pooling": (lambda: nn.MaxPool2d(2), image),
    "average pooling": (lambda: nn.AvgPool2d(3, stride=2), image),
    "adaptive pooling": (lambda: nn.AdaptiveAvgPool2d(3), image),
    "softmax": (lambda: nn.Softmax(1), row),
    "log softmax": (lambda: nn.LogSoftmax(1), row),
    "GELU": (nn.GELU, row),
    "SiLU": (nn.SiLU, row),
    "tanh": (nn.Tanh, row),
    "softplus": (nn.Softplus, row),
    "PReLU": (nn.PReLU, row),
    "upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), image),
    "padding": (lambda: nn.ReflectionPad2d(2), image),
    "fold": (lambda: nn.Unfold(3), image),
    "attention": (lambda: Attention(), heads),
    "transformer layer": (lambda: nn.TransformerEncoderLayer(6, 2, 12, 0.0, batch_first=True),
                          sequence),
    "RNN": (lambda: First(nn.RNN(6, 5, num_layers=2, batch_first=True)), sequence),
    "LSTM": (lambda: First(nn.LSTM(6, 5, batch_first=True)), sequence),
    "LSTM, two layers, both ways": (lambda: First(nn.LSTM(6, 5, num_layers=2, batch_first=True,
                                                          bidirectional=True)), sequence),
    "LSTM, projected": (lambda: First(nn.LSTM(6, 5, proj_size=3, batch_first=True)), sequence),
    "GRU": (lambda: First(nn.GRU(6, 5, num_layers=2, batch_first=True)), sequence),
}
# PyTorch has no second gradient of cuDNN's, nor of fused attention: there it takes its own.
RECURRENT = ("RNN", "LSTM", "GRU")
OWN = ("attention", "transformer layer")


class Twice(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x, x)


class First(Twice):
    def forward(self, x):
        return self.of(x)[0]


class Attention(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@contextlib.contextmanager
def own(name):
    """PyTorch's own functions, where there is no second gradient of the library's."""
    with contextlib.ExitStack() as stack:
        if name.startswith(RECURRENT):
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        if name in OWN and OLD:
            stack.enter_context(torch.backends.cuda.sdp_kernel(enable_flash=False,
                                                               enable_mem_efficient=False))
        elif name in OWN:
            from torch.nn.attention import SDPBackend, sdpa_kernel
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


def gradients(layer, x, twice):
    """Of the input and every weight; once, or of the gradients' squares."""
    x = x.detach().requires_grad_()
    of = [x, *layer.parameters()]
    out = layer(x)
    slopes = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device)
    loss = (out * slopes.reshape(out.shape)).sum()
    first = torch.autograd.grad(loss, of, create_graph=twice)
    if not twice:
        return first
    second = sum(g.square().sum() for g in first)
    if not second.requires_grad:  # the layer is linear in all that it has
        return [torch.zeros_like(t) for t in of]
    got = torch.autograd.grad(second, of, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(of, got)]


for name, (make, x) in LAYERS.items():
    layer = make()
    wide = make().double()
    wide.load_state_dict(layer.state_dict())
    wide.train(layer.training)
    layer = layer.cuda()
    for twice in (False, True):
        with own(name) if twice else contextlib.nullcontext():
            want = gradients(wide, x.double(), twice)
            got = gradients(layer, x.cuda(), twice)
        check(len(want) == len(got), name)
        scale = max(t.abs().max().item() for t in want)
        for i, (g, w) in enumerate(zip(got, want)):
            # A gradient that is zero but for rounding is held against the layer's others.
            within = 2e-3 * max(1.0, scale / max(w.abs().max().item(), 1e-30))
            equal(g, w, f"{name}: {'second ' if twice else ''}gradient {i}", within)

# In evaluation, and without gradients, a recurrent network asks for one size alone.
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    net = kind(6, 5).eval()
    wide = kind(6, 5).double().eval()
    wide.load_state_dict(net.state_dict())
    with torch.no_grad():
        equal(net.cuda()(sequence.cuda())[0], wide(sequence.double())[0], kind.__name__, 1e-4)
