# needs: kernels
# Many operations of PyTorch, each against the CPU in f64.
import torch
from check import check, equal
from torch.nn import functional as F

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
x, y = torch.randn(40, 50), torch.rand(40, 50) + 0.5
image = torch.randn(2, 8, 20, 20)
CASES = {
    "arithmetic": (lambda a, b: (a + b) * a / b - a ** 2, (x, y)),
    "functions": (lambda a: a.exp() + a.sin() + a.tanh() + a.abs().sqrt(), (x,)),
    "reductions": (lambda a: torch.stack([a.sum(), a.mean(), a.std(), a.amax(), a.norm()]), (x,)),
    "softmax": (lambda a: a.softmax(1), (x,)),
    "layer norm": (lambda a: F.layer_norm(a, (50,)), (x,)),
    "sort": (lambda a: a.sort(1).values, (x,)),
    "topk": (lambda a: a.topk(5).values, (x,)),
    "cumsum": (lambda a: a.cumsum(0), (x,)),
    "where": (lambda a, b: torch.where(a > 0, a, b), (x, y)),
    "index": (lambda a: a[a > 0.5], (x,)),
    "nonzero": (lambda a: (a > 1).nonzero(), (x,)),
    "gather": (lambda a: a.gather(1, a.argsort(1)), (x,)),
    "scatter": (lambda a: torch.zeros_like(a).scatter_add(1, a.argsort(1), a), (x,)),
    "cat": (lambda a, b: torch.cat([a, b], 1).t().contiguous(), (x, y)),
    "unique": (lambda a: (a * 2).round().unique(), (x,)),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (x, y)),
    "attention": (lambda a: F.scaled_dot_product_attention(*[a.reshape(1, 4, 10, 50)] * 3), (x,)),
    "convolution": (lambda a, w: F.conv2d(a, w, padding=1), (image, torch.randn(4, 8, 3, 3))),
    "transposed convolution": (lambda a, w: F.conv_transpose2d(a, w, stride=2),
                               (image, torch.randn(8, 4, 3, 3))),
    "grouped convolution": (lambda a, w: F.conv2d(a, w, groups=8),
                            (image, torch.randn(8, 1, 3, 3))),
    "pooling": (lambda a: F.max_pool2d(a, 2) + F.avg_pool2d(a, 2), (image,)),
    "batch norm": (lambda a: F.batch_norm(a, None, None, training=True), (image,)),
    "interpolate": (lambda a: F.interpolate(a, scale_factor=2.0, mode="bilinear"), (image,)),
    "embedding": (lambda w: F.embedding(torch.arange(20, device=w.device), w), (x,)),
}
for name, (what, inputs) in CASES.items():
    want = what(*(t.double() for t in inputs))
    got = what(*(t.cuda() for t in inputs))
    equal(got, want, name, 1e-4)

# Gradients through convolution, batch norm and pooling.
net = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
                          torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(1296, 5))
wide = torch.nn.Sequential(*[type(m)(*a) for m, a in zip(net, (
    (8, 16, 3), (16,), (), (2,), (), (1296, 5)))]).double()
wide.load_state_dict(net.state_dict())
wide(image.double()).square().sum().backward()
gpu = net.cuda()
gpu(image.cuda()).square().sum().backward()
for (name, p), q in zip(gpu.named_parameters(), wide.parameters()):
    # The first bias's gradient is zero but for rounding: batch norm takes the mean away.
    if name != "0.bias":
        equal(p.grad, q.grad, f"gradient of {name}", 1e-3)

for kind in (torch.nn.LSTM, torch.nn.GRU):
    rnn = kind(16, 32, num_layers=2, batch_first=True)
    wide_rnn = kind(16, 32, num_layers=2, batch_first=True).double()
    wide_rnn.load_state_dict(rnn.state_dict())
    sequence = torch.randn(3, 7, 16)
    equal(rnn.cuda()(sequence.cuda())[0], wide_rnn(sequence.double())[0], kind.__name__, 1e-4)

chances = torch.randn(12, 2, 6).log_softmax(2)
targets = torch.randint(1, 6, (2, 4), dtype=torch.int32)
lengths = [torch.tensor(n, dtype=torch.int32) for n in ([12, 12], [4, 4])]
equal(F.ctc_loss(chances.cuda(), targets, *lengths), F.ctc_loss(chances.double(), targets.long(),
      *lengths), "CTC loss", 1e-4)

# Mixed precision with a scaler, and the fused optimizer.
model = torch.nn.Linear(20, 3).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cuda")
losses = []
data, labels = torch.randn(64, 20, device="cuda"), torch.randint(0, 3, (64,), device="cuda")
for _ in range(30):
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        loss = F.cross_entropy(model(data), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
check(losses[-1] < losses[0], f"training: {losses[0]} to {losses[-1]}")
